"""Factorisations and triangular systems: LAPACK's, and those of small matrices, one in each vector lane."""
