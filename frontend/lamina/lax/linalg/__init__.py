"""Linear algebra on matrices in the last two axes: factorisations, eigenvalues, linear systems.

Names and meanings are those of jax.lax.linalg. Small matrices are computed by generated code, all
others by LAPACK; the fused form of a program tells which. Where a factorisation does not exist the
result is NaN.
"""

# ruff: noqa: F401
from lamina.lax.linalg.cholesky import cholesky as cholesky
from lamina.lax.linalg.cholesky import cholesky_p as cholesky_p
from lamina.lax.linalg.cholesky import cholesky_update as cholesky_update
from lamina.lax.linalg.cholesky import cholesky_update_p as cholesky_update_p
from lamina.lax.linalg.eig import EigImplementation as EigImplementation
from lamina.lax.linalg.eig import eig as eig
from lamina.lax.linalg.eig import eig_p as eig_p
from lamina.lax.linalg.eigh import EighImplementation as EighImplementation
from lamina.lax.linalg.eigh import eigh as eigh
from lamina.lax.linalg.eigh import eigh_p as eigh_p
from lamina.lax.linalg.eigh import tridiagonal as tridiagonal
from lamina.lax.linalg.eigh import tridiagonal_p as tridiagonal_p
from lamina.lax.linalg.lu import lu as lu
from lamina.lax.linalg.lu import lu_p as lu_p
from lamina.lax.linalg.lu import lu_pivots_to_permutation as lu_pivots_to_permutation
from lamina.lax.linalg.lu import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from lamina.lax.linalg.qdwh import qdwh as qdwh
from lamina.lax.linalg.qr import geqp3 as geqp3
from lamina.lax.linalg.qr import geqp3_p as geqp3_p
from lamina.lax.linalg.qr import geqrf as geqrf
from lamina.lax.linalg.qr import geqrf_p as geqrf_p
from lamina.lax.linalg.qr import householder_product as householder_product
from lamina.lax.linalg.qr import householder_product_p as householder_product_p
from lamina.lax.linalg.qr import ormqr as ormqr
from lamina.lax.linalg.qr import ormqr_p as ormqr_p
from lamina.lax.linalg.qr import qr as qr
from lamina.lax.linalg.qr import qr_p as qr_p
from lamina.lax.linalg.schur import hessenberg as hessenberg
from lamina.lax.linalg.schur import hessenberg_p as hessenberg_p
from lamina.lax.linalg.schur import schur as schur
from lamina.lax.linalg.schur import schur_p as schur_p
from lamina.lax.linalg.svd import SvdAlgorithm as SvdAlgorithm
from lamina.lax.linalg.svd import svd as svd
from lamina.lax.linalg.svd import svd_p as svd_p
from lamina.lax.linalg.symmetric_product import symmetric_product as symmetric_product
from lamina.lax.linalg.symmetric_product import symmetric_product_p as symmetric_product_p
from lamina.lax.linalg.triangular_solve import triangular_solve as triangular_solve
from lamina.lax.linalg.triangular_solve import triangular_solve_p as triangular_solve_p
from lamina.lax.linalg.tridiagonal_solve import tridiagonal_solve as tridiagonal_solve
from lamina.lax.linalg.tridiagonal_solve import tridiagonal_solve_p as tridiagonal_solve_p
