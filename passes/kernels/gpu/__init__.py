"""Kernels for GPUs, in folders by what they compute:

emit            generics: element-wise work, reductions, rows, transposes
gemm            matrix products on tensor cores and by threads
attention       attention and its gradient
factorisations  factorisations, solvers, eigenvalues
fft             Fourier transforms
scan, sort      running sums and extremes; merge sort, radix sort
scatter         scatters, and those whose places windows select
steps           one kernel for all steps of a small program

`device` holds what every kernel is made with, and the way down to NVVM.
"""
