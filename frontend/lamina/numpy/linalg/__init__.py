"""Linear algebra as in numpy.linalg, on matrices in the last two axes; others are a batch."""

# ruff: noqa: F401
from lamina.numpy.linalg.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)  # fmt: skip
from lamina.numpy.linalg.determinants import det, slogdet
from lamina.numpy.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from lamina.numpy.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_power,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    trace,
    vecdot,
)  # fmt: skip
from lamina.numpy.linalg.solving import inv, lstsq, pinv, solve, tensorinv, tensorsolve
