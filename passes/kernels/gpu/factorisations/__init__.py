"""Kernels of factorisations, solvers and eigenvalues, for one matrix or many."""
