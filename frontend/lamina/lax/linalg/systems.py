"""Systems of linear equations by LU factors: what lamina.numpy and rules solve with."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.lax.linalg.matrices import matmul


def solve(a: Any, b: Any) -> Any:
    """The x with a x = b for square matrices a and matrices b with equal leading axes.

    One factorisation serves values and derivatives: those are systems with the same matrix.
    """
    factors, _, permutation = lax.linalg.lu(lax.stop_gradient(a))
    return lax.custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        solve=lambda _, y: lu_solve(factors, permutation, y),
        transpose_solve=lambda _, y: lu_solve(factors, permutation, y, trans=1),
    )


def lu_solve(factors: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """The x with a x = b, or a^T x = b for trans=1, a^H x = b for trans=2, from a's LU factors."""
    solve = lax.linalg.triangular_solve
    if trans == 0:
        x = solve(factors, take_rows(b, permutation), left_side=True, lower=True,
                  unit_diagonal=True)  # fmt: skip
        return solve(factors, x, left_side=True, lower=False)
    if trans not in (1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    how = {"left_side": True, "transpose_a": True, "conjugate_a": trans == 2}
    x = solve(factors, b, lower=False, **how)
    x = solve(factors, x, lower=True, unit_diagonal=True, **how)
    return take_rows(x, inverse(permutation))


def inverse(permutation: Any) -> Any:
    """The permutations that undo these."""
    index = lax.broadcasted_iota(permutation.dtype, permutation.shape, permutation.ndim - 1)
    return lax.sort((permutation, index), permutation.ndim - 1)[1]


def take_rows(x: Any, permutation: Any) -> Any:
    """The rows of matrices in the order of permutations."""
    if 0 in x.shape:
        return x
    if len(x.shape) == 2:
        return _take_leading(x, permutation)
    index = lax.broadcast_in_dim(permutation, x.shape, range(len(x.shape) - 1))
    return lax.take_along_axis(x, index, len(x.shape) - 2, mode="promise_in_bounds")


def _take_leading(x: Any, order: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return lax.gather(x, lax.expand_dims(order, (1,)), numbers, (1, x.shape[1]),
                      mode="promise_in_bounds")  # fmt: skip
