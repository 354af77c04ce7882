"""Linear algebra on matrices in the last two axes: factorisations, eigenvalues, linear systems.

Names and meanings are those of jax.lax.linalg. Small matrices are computed by generated code, all
others by LAPACK; the fused form of a program tells which. Where a factorisation does not exist the
result is NaN.
"""

# ruff: noqa: F401
from lamina.lax.linalg.cholesky import cholesky, cholesky_p, cholesky_update, cholesky_update_p
from lamina.lax.linalg.eig import EigImplementation, eig, eig_p
from lamina.lax.linalg.eigh import EighImplementation, eigh, eigh_p, tridiagonal, tridiagonal_p
from lamina.lax.linalg.lu import (
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
)  # fmt: skip
from lamina.lax.linalg.qdwh import qdwh
from lamina.lax.linalg.qr import (
    geqp3,
    geqp3_p,
    geqrf,
    geqrf_p,
    householder_product,
    householder_product_p,
    ormqr,
    ormqr_p,
    qr,
    qr_p,
)  # fmt: skip
from lamina.lax.linalg.schur import hessenberg, hessenberg_p, schur, schur_p
from lamina.lax.linalg.svd import SvdAlgorithm, svd, svd_p
from lamina.lax.linalg.symmetric_product import symmetric_product, symmetric_product_p
from lamina.lax.linalg.triangular_solve import triangular_solve, triangular_solve_p
from lamina.lax.linalg.tridiagonal_solve import tridiagonal_solve, tridiagonal_solve_p
