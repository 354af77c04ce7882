"""Linear algebra as in scipy.linalg. `overwrite_*` and `check_finite` are taken and mean nothing:
arrays are immutable, and what is not finite gives NaN."""

# ruff: noqa: F401
from lamina.scipy.linalg.decompositions import cho_factor as cho_factor
from lamina.scipy.linalg.decompositions import cholesky as cholesky
from lamina.scipy.linalg.decompositions import eigh as eigh
from lamina.scipy.linalg.decompositions import hessenberg as hessenberg
from lamina.scipy.linalg.decompositions import lu as lu
from lamina.scipy.linalg.decompositions import lu_factor as lu_factor
from lamina.scipy.linalg.decompositions import polar as polar
from lamina.scipy.linalg.decompositions import qr as qr
from lamina.scipy.linalg.decompositions import qr_multiply as qr_multiply
from lamina.scipy.linalg.decompositions import rsf2csf as rsf2csf
from lamina.scipy.linalg.decompositions import schur as schur
from lamina.scipy.linalg.decompositions import svd as svd
from lamina.scipy.linalg.functions import expm as expm
from lamina.scipy.linalg.functions import expm_frechet as expm_frechet
from lamina.scipy.linalg.functions import funm as funm
from lamina.scipy.linalg.functions import sqrtm as sqrtm
from lamina.scipy.linalg.solving import cho_solve as cho_solve
from lamina.scipy.linalg.solving import det as det
from lamina.scipy.linalg.solving import inv as inv
from lamina.scipy.linalg.solving import lu_solve as lu_solve
from lamina.scipy.linalg.solving import solve as solve
from lamina.scipy.linalg.solving import solve_sylvester as solve_sylvester
from lamina.scipy.linalg.solving import solve_triangular as solve_triangular
from lamina.scipy.linalg.special_matrices import block_diag as block_diag
from lamina.scipy.linalg.special_matrices import circulant as circulant
from lamina.scipy.linalg.special_matrices import companion as companion
from lamina.scipy.linalg.special_matrices import convolution_matrix as convolution_matrix
from lamina.scipy.linalg.special_matrices import dft as dft
from lamina.scipy.linalg.special_matrices import fiedler as fiedler
from lamina.scipy.linalg.special_matrices import fiedler_companion as fiedler_companion
from lamina.scipy.linalg.special_matrices import hadamard as hadamard
from lamina.scipy.linalg.special_matrices import hankel as hankel
from lamina.scipy.linalg.special_matrices import helmert as helmert
from lamina.scipy.linalg.special_matrices import hilbert as hilbert
from lamina.scipy.linalg.special_matrices import invhilbert as invhilbert
from lamina.scipy.linalg.special_matrices import invpascal as invpascal
from lamina.scipy.linalg.special_matrices import leslie as leslie
from lamina.scipy.linalg.special_matrices import pascal as pascal
from lamina.scipy.linalg.special_matrices import toeplitz as toeplitz
from lamina.scipy.linalg.tridiagonal import eigh_tridiagonal as eigh_tridiagonal
