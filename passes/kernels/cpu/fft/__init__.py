"""Fourier transforms of any length, complex and real, as LLVM IR."""
