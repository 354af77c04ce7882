"""Kernels whose elements depend on each other's order: scans, sorts, scatters, Fourier transforms."""
