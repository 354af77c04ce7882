"""Cholesky factors: cholesky, and cholesky_update by a matrix of rank one."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, get_aval
from lamina.core.array_class import Array
from lamina.core.placed import of_batches
from lamina.lax import hlo
from lamina.lax.linalg.matrices import eye_like, matmul, symmetrize, tril
from lamina.lax.linalg.rules import batched_in_front, check_matrix, lapack


# ---- user functions ----------------------------------------------------------------------------
def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L L^H = x, for Hermitian positive definite matrices x; NaN where
    a matrix is not positive definite.

    x                 floats or complex numbers of shape (..., n, n).
    symmetrize_input  takes (x + x^H) / 2; otherwise only the lower triangle is read.

    Raises TypeError or ValueError where matrices are not square, or for integers.

    >>> print(lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]
    """
    check_matrix("cholesky", get_aval(x), square=True)
    return cholesky_p.bind(symmetrize(x) if symmetrize_input else x)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangular R' with R'^T R' = R^T R + w w^T: a factor after a change of rank one, in
    n^2 steps.

    r_matrix  R, an upper triangular matrix of floats of shape (n, n).
    w_vector  w, a vector of n floats of its dtype.

    Raises TypeError where sizes or dtypes differ.

    >>> print(lax.linalg.cholesky_update(jnp.eye(2), jnp.array([jnp.sqrt(3.0), 0.0])))
    [[2. 0.]
     [0. 1.]]
    """
    return cholesky_update_p.bind(r_matrix, w_vector)


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray) -> ShapedArray:
    check_matrix("cholesky", x, square=True)
    return x.strip_weak_type()


def _jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    # Giles, "An extended collection of matrix derivative results", 3.2 (2008).
    (x,), (dx,) = primals, tangents
    factor = cholesky_p.bind(x)
    inner = lax.linalg.triangular_solve(
        factor, dx, left_side=False, lower=True, transpose_a=True, conjugate_a=True
    )
    inner = lax.linalg.triangular_solve(factor, inner, left_side=True, lower=True)
    one = lax.full((), 1, x.dtype)
    halved = lax.div(tril(inner), lax.add(eye_like(inner), one))
    return factor, matmul(factor, halved)


cholesky_p: Primitive = Primitive(
    "cholesky",
    abstract_eval=_abstract_eval,
    lowering=lambda ctx, x: hlo.cholesky(x, True),
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: cholesky_p),
    placed=of_batches(2),
)


def _update_abstract_eval(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    check_matrix("cholesky_update", r, square=True)
    if w.shape != r.shape[:-1] or w.dtype != r.dtype:
        raise TypeError(
            f"cholesky_update requires a vector of the matrix's size and dtype, got "
            f"{r.str_long()} and {w.str_long()}"
        )
    return r.strip_weak_type()


cholesky_update_p: Primitive = Primitive(
    "cholesky_update",
    abstract_eval=_update_abstract_eval,
    lowering=lambda ctx, r, w: lapack("cholesky_update", [r, w], ctx.avals_out)[0],
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: cholesky_update_p),
    placed=of_batches(2, 1),
)
