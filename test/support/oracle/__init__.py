"""JAX as the judge: the same program by both, and which of its versions judges what."""
