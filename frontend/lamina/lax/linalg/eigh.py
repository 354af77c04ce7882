"""eigh: eigenvalues and eigenvectors of Hermitian matrices; tridiagonal, their first step."""

from __future__ import annotations

import enum
from typing import Any

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, get_aval
from lamina.core.placed import of_batches
from lamina.lax.linalg.matrices import (
    adjoint,
    column,
    diagonal,
    eye_like,
    matmul,
    real,
    row,
    symmetrize,
)  # fmt: skip
from lamina.lax.linalg.rules import batched_in_front, check_matrix, lapack, real_dtype


class EighImplementation(enum.Enum):
    """How eigenvalues are computed. On a CPU always by LAPACK's divide and conquer (QR)."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


# ---- user functions ----------------------------------------------------------------------------
def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Eigenvectors, in columns, and rising real eigenvalues of Hermitian matrices, in this order
    (NumPy gives eigenvalues first).

    x                 floats or complex numbers of shape (..., n, n).
    lower             which triangle is read without symmetrize_input.
    symmetrize_input  takes (x + x^H) / 2; otherwise only one triangle is read.
    sort_eigenvalues  whether they must rise; here they always do.
    subset_by_index   gives the eigenvalues from the first position up to the second.
    implementation    None or EighImplementation.QR.

    Raises NotImplementedError for another implementation; TypeError or ValueError where matrices
    are not square.

    >>> v, w = lax.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> print(w)
    [1. 3.]
    """
    if implementation not in (None, EighImplementation.QR):
        raise NotImplementedError(f"eigh has no implementation {implementation} on a CPU.")
    check_matrix("eigh", get_aval(x), square=True)
    v, w = eigh_p.bind(symmetrize(x) if symmetrize_input else x, lower=bool(lower))
    low, high = subset_by_index or (0, w.shape[-1])
    if (low, high) != (0, w.shape[-1]):
        v, w = (lax.slice_in_dim(y, low, high, axis=-1) for y in (v, w))
    return v, w


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """The tridiagonal form T = Q^H a Q of Hermitian matrices: (matrix, d, e, taus).

    a      floats or complex numbers of shape (..., n, n).
    lower  which triangle is read; reflectors are put beside it.

    The matrix holds T and the vectors of the Householder reflectors whose product is Q; d is T's
    diagonal, e the one next to it, both real, and taus are the reflectors' factors. Raises
    ValueError where matrices are not square.

    >>> _, d, e, _ = lax.linalg.tridiagonal(jnp.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]))
    >>> print(d, e)
    [2. 3. 4.] [1. 1.]
    """
    return tuple(tridiagonal_p.bind(a, lower=bool(lower)))


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_matrix("eigh", x, square=True)
    return [x.strip_weak_type(), ShapedArray(x.shape[:-1], real_dtype(x))]


def _jvp(primals: Any, tangents: Any, *, lower: bool) -> tuple[Any, Any]:
    # Giles (2008), 3.1: dw = diag(V^H dA V), dV = V (F * V^H dA V), F_ij = 1 / (w_j - w_i).
    (a,), (da,) = primals, tangents
    v, w = eigh_p.bind(a, lower=lower)
    inner = matmul(matmul(adjoint(v), da), v)
    right, left = (lax.convert_element_type(f(w), a.dtype) for f in (row, column))
    one = eye_like(inner)
    gaps = lax.add(one, lax.sub(right, left))
    weights = lax.sub(lax.div(lax.full((), 1, a.dtype), gaps), one)
    return [v, w], [matmul(v, lax.mul(weights, inner)), real(diagonal(inner))]


eigh_p: Primitive = Primitive(
    "eigh",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=lambda ctx, x, *, lower: lapack("syevd", [x], ctx.avals_out, lower=lower),
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: eigh_p),
    placed=of_batches(2),
)


def _tridiagonal_abstract_eval(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_matrix("tridiagonal", a, square=True)
    *batch, n = a.shape[:-1]
    if n == 0:
        raise TypeError(f"tridiagonal requires matrices of a row or more, got {a.str_long()}")
    real_type = real_dtype(a)
    return [
        a.strip_weak_type(),
        ShapedArray((*batch, n), real_type),
        ShapedArray((*batch, n - 1), real_type),
        ShapedArray((*batch, n - 1), a.dtype),
    ]


tridiagonal_p: Primitive = Primitive(
    "tridiagonal",
    multiple_results=True,
    abstract_eval=_tridiagonal_abstract_eval,
    lowering=lambda ctx, a, *, lower: lapack("sytrd", [a], ctx.avals_out, lower=lower),
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: tridiagonal_p),
    placed=of_batches(2),
)
