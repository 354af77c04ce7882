"""Kernels for GPUs, in folders by what they compute:

emit            generics: element-wise work, reductions, rows, transposes
product         matrix products on tensor cores and by threads
attention       attention and its gradient
linear_algebra  factorisations, solvers, eigenvalues
order           scans, sorts, scatters, Fourier transforms
steps           one kernel for all steps of a small program

`device` holds what every kernel is made with, and the way down to NVVM.
"""
