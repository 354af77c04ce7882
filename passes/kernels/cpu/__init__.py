"""Kernels for CPUs, in folders by what they compute:

gemm            matrix products and convolutions: blocks in registers, dot-product instructions
attention       attention and its gradient, in blocks that stay in cache
factorisations  LAPACK calls, and small matrices of which each vector lane holds one
fft             Fourier transforms, generated for their lengths
scan            running sums and extremes, recurrences
small_matrices  ops on many small matrices
collectives     calls between devices

gemm and attention are passes from linalg to vector loops; the others are written in LLVM IR, with `emit`.
"""
