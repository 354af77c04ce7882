"""Factorisations and eigenvalues: cholesky qr svd eigh eig and their kin."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from lamina import lax
from lamina.numpy._eager import compiled
from lamina.numpy.indexing import take_along_axis
from lamina.numpy.linalg.arguments import check_rank, check_square, matrices
from lamina.numpy.promotion import Array, ArrayLike


class EigResult(NamedTuple):
    """What eig gives."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What eigh gives."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What qr gives."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What svd gives."""

    U: Array
    S: Array
    Vh: Array


@compiled(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular L with L L^H = a, or with upper the U with U^H U = a; NaN where a is not
    positive definite.

    a                 square matrices (..., n, n); ValueError of others
    upper             whether U is wanted
    symmetrize_input  whether the mean of a and its conjugate transpose is taken first
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    (a,) = matrices("cholesky", a)
    check_square("cholesky", a)
    if upper and not symmetrize_input:
        a = lax.linalg.matrices.adjoint(a)  # its upper triangle is the one to read
    factor = lax.linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return lax.linalg.matrices.adjoint(factor) if upper else factor


@compiled(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Q and R with a = Q R: of k = min(m, n) columns and rows ("reduced"), of m ("complete"), R
    alone ("r"), or LAPACK's reflectors, transposed, and their factors ("raw").

    a     matrices (..., m, n)
    mode  "reduced", "complete", "r" or "raw"
    >>> q, r = jnp.linalg.qr(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> jnp.allclose(q @ r, jnp.array([[1.0, 2.0], [3.0, 4.0]]), atol=1e-5)
    Array(True, dtype=bool)
    """
    (a,) = matrices("qr", a)
    check_rank("qr", a)
    if mode == "raw":
        packed, taus = lax.linalg.geqrf(a)
        return QRResult(lax.linalg.matrices.transposed(packed), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = lax.linalg.qr(a, full_matrices=mode in ("full", "complete"))
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult: ...
@compiled(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """U, S, Vh with a = U diag(S) Vh and S falling; S alone without compute_uv.

    hermitian  a is, and so its eigenvalues are computed instead.

    a                matrices (..., m, n)
    full_matrices    whether U and Vh are square
    compute_uv       whether they are wanted
    subset_by_index  a static pair (first, end) of the singular values wanted

    >>> print(jnp.linalg.svd(jnp.diag(jnp.array([3.0, 4.0])), compute_uv=False).round(3))
    [4. 3.]
    """
    (a,) = matrices("svd", a)
    check_rank("svd", a)
    if hermitian:
        return _hermitian_svd(a, compute_uv, subset_by_index)
    out = lax.linalg.svd(
        a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*out) if compute_uv else out


def _hermitian_svd(a: Array, compute_uv: bool, subset: tuple[int, int] | None) -> Any:
    check_square("svd", a)
    v, w = lax.linalg.eigh(a)
    size = lax.abs(w)
    axis = len(w.shape) - 1
    index = lax.broadcasted_iota(np.int32, w.shape, axis)
    _, order = lax.sort((lax.neg(size), index), axis)
    low, high = subset or (0, w.shape[-1])
    order = lax.slice_in_dim(order, low, high, axis=axis)
    w = take_along_axis(w, order, -1)
    s = lax.abs(w)
    if not compute_uv:
        return s
    u = take_along_axis(v, order[..., None, :], -1)
    sign = lax.convert_element_type(lax.sign(w), a.dtype)
    return SVDResult(u, s, lax.linalg.matrices.adjoint(lax.mul(u, sign[..., None, :])))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, falling.

    x  matrices (..., m, n)
    >>> print(jnp.linalg.svdvals(jnp.diag(jnp.array([3.0, 4.0]))).round(3))
    [4. 3.]
    """
    return svd(x, compute_uv=False)


@compiled(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Rising eigenvalues and eigenvectors, in columns, of Hermitian matrices. Without
    symmetrize_input only the triangle that UPLO names is read.

    a                 square matrices (..., n, n); ValueError of others
    UPLO              "L" or "U"
    symmetrize_input  whether the mean of a and its conjugate transpose is taken first
    >>> print(jnp.linalg.eigh(jnp.diag(jnp.array([4.0, 3.0]))).eigenvalues.round(3))
    [3. 4.]
    """
    (a,) = matrices("eigh", a)
    check_square("eigh", a)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    v, w = lax.linalg.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The rising eigenvalues of Hermitian matrices.

    a                 square matrices (..., n, n); ValueError of others
    UPLO              "L" or "U": which triangle is read
    symmetrize_input  whether the mean of a and its conjugate transpose is taken first
    >>> print(jnp.linalg.eigvalsh(jnp.diag(jnp.array([4.0, 3.0]))).round(3))
    [3. 4.]
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@compiled
def eig(a: ArrayLike) -> EigResult:
    """Complex eigenvalues and eigenvectors, in columns.

    a  square matrices (..., n, n); ValueError of others
    >>> sorted(jnp.linalg.eig(jnp.diag(jnp.array([4.0, 3.0]))).eigenvalues.real.tolist())
    [3.0, 4.0]
    """
    (a,) = matrices("eig", a)
    check_square("eig", a)
    return EigResult(*lax.linalg.eig(a, compute_left_eigenvectors=False))


@compiled
def eigvals(a: ArrayLike) -> Array:
    """Complex eigenvalues, in no order.

    a  square matrices (..., n, n); ValueError of others
    >>> sorted(jnp.linalg.eigvals(jnp.diag(jnp.array([4.0, 3.0]))).real.tolist())
    [3.0, 4.0]
    """
    (a,) = matrices("eigvals", a)
    check_square("eigvals", a)
    (w,) = lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return w
