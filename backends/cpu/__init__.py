"""Code for CPUs: kernels, library calls, and the entry that calls them."""
