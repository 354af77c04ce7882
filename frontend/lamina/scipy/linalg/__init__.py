"""Linear algebra as in scipy.linalg. `overwrite_*` and `check_finite` are taken and mean nothing:
arrays are immutable, and what is not finite gives NaN."""

# ruff: noqa: F401
from lamina.scipy.linalg.decompositions import (
    cho_factor,
    cholesky,
    eigh,
    hessenberg,
    lu,
    lu_factor,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from lamina.scipy.linalg.functions import expm, expm_frechet, funm, sqrtm
from lamina.scipy.linalg.solving import (
    cho_solve,
    det,
    inv,
    lu_solve,
    solve,
    solve_sylvester,
    solve_triangular,
)
from lamina.scipy.linalg.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from lamina.scipy.linalg.tridiagonal import eigh_tridiagonal
