"""lu: LU factors with partial pivoting, and lu_pivots_to_permutation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_DIFFERENTIABLE, NOT_LINEAR, Primitive, ShapedArray, Zero, get_aval
from lamina.core.array_class import Array
from lamina.core.placed import of_batches
from lamina.lax import hlo
from lamina.lax.linalg.matrices import eye, leading, matmul, tril, triu
from lamina.lax.linalg.rules import batched_in_front, check_matrix, lapack
from lamina.lax.linalg.systems import take_rows

_INT = np.dtype(np.int32)


# ---- user functions ----------------------------------------------------------------------------
def lu(x: Any) -> tuple[Any, Any, Any]:
    """P x = L U by partial pivoting: (lu, pivots, permutation).

    x  floats or complex numbers of shape (..., m, n).

    lu holds U and below it L, whose diagonal of ones is not stored; pivots the interchanges of
    rows, one after the other, as int32; permutation what they make, so that x[permutation] = L U.
    Raises ValueError for fewer than two dimensions.

    >>> lu, pivots, permutation = lax.linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> print(lu, pivots, permutation)
    [[4.   4.  ]
     [0.25 1.  ]] [1 1] [1 0]
    """
    return tuple(lu_p.bind(x))


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The permutation that a sequence of interchanges of rows makes, as int32.

    pivots            int32 of shape (..., k): row i changes places with row pivots[i].
    permutation_size  the number of rows, k at least.

    Raises ValueError for other dtypes or fewer rows.

    >>> print(lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2]), 3))
    [2 0 1]
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("lu", x)
    *batch, m, n = x.shape
    return [
        x.strip_weak_type(),
        ShapedArray((*batch, min(m, n)), _INT),
        ShapedArray((*batch, m), _INT),
    ]


def _lowering(ctx: Any, x: Any) -> list[Any]:
    factors, pivots, permutation = ctx.avals_out
    if 0 in factors.shape:
        order = hlo.iota(permutation.shape, _INT, len(permutation.shape) - 1)
        return [*lapack("getrf", [x], [factors, pivots]), order]
    return lapack("getrf", [x], ctx.avals_out)


def _jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """From A = L U: L^-1 dA U^-1 = L^-1 dL + dU U^-1, the first strictly lower, the second upper.
    Factors that are not square are completed by columns and rows of the identity."""
    (x,), (dx,) = primals, tangents
    factors, pivots, permutation = lu_p.bind(x)
    *batch, m, n = x.shape
    k = min(m, n)
    dx = take_rows(dx, permutation)
    lower = lax.add(_padded(tril(leading(factors, m, k), -1), m, m), eye((*batch, m, m), x.dtype))
    upper = _padded(triu(leading(factors, k, n)), n, n)
    if k < n:
        rest = eye((*batch, n, n), x.dtype)
        below = lax.ge(lax.broadcasted_iota(_INT, rest.shape, len(batch)), np.int32(k))
        upper = lax.select(below, rest, upper)
    inner = lax.linalg.triangular_solve(lower, dx, left_side=True, lower=True, unit_diagonal=True)
    inner = lax.linalg.triangular_solve(upper, inner, left_side=False, lower=False)
    dl = matmul(lower, _padded(leading(tril(inner, -1), m, k), m, n))
    du = matmul(_padded(leading(triu(inner), k, n), m, n), upper)
    zeros = [Zero(get_aval(p).to_tangent_aval()) for p in (pivots, permutation)]
    return [factors, pivots, permutation], [lax.add(dl, du), *zeros]


def _padded(x: Any, rows: int, columns: int) -> Any:
    """Matrices filled up with zeros."""
    *batch, m, n = x.shape
    if (m, n) == (rows, columns):
        return x
    config = [*[(0, 0, 0)] * len(batch), (0, rows - m, 0), (0, columns - n, 0)]
    return lax.pad(x, lax.full((), 0, x.dtype), config)


lu_p: Primitive = Primitive(
    "lu",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: lu_p),
    placed=of_batches(2),
)


def _permutation_abstract_eval(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if not pivots.shape or pivots.dtype != _INT:
        raise ValueError(
            f"lu_pivots_to_permutation requires int32 pivots of 1 or more dimensions, got "
            f"{pivots.str_long()}"
        )
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing dimension of "
            f"the pivots. Got pivots size {pivots.shape[-1]}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), _INT)


def _permutation_lowering(ctx: Any, pivots: Any, *, permutation_size: int) -> Any:
    if 0 in ctx.avals_in[0].shape:
        return hlo.iota(ctx.aval_out.shape, _INT, len(ctx.aval_out.shape) - 1)
    return lapack("permutation", [pivots], ctx.avals_out)[0]


lu_pivots_to_permutation_p: Primitive = Primitive(
    "lu_pivots_to_permutation",
    abstract_eval=_permutation_abstract_eval,
    lowering=_permutation_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: lu_pivots_to_permutation_p),
    placed=of_batches(1),
)
