"""det and slogdet, by LU factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lamina import lax
from lamina.control_flow import custom_jvp
from lamina.lax.linalg.matrices import diagonal, is_complex, real
from lamina.lax.linalg.systems import solve, take_rows
from lamina.numpy._eager import compiled
from lamina.numpy.linalg.arguments import check_square, matrices
from lamina.numpy.promotion import Array, ArrayLike
from lamina.numpy.reductions import prod, sum


class SlogdetResult(NamedTuple):
    """What slogdet gives."""

    sign: Array
    logabsdet: Array


@compiled
def det(a: ArrayLike) -> Array:
    """The determinant.

    a  square matrices (..., n, n); ValueError of others

    >>> print(jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])).round(3))
    -2.0
    """
    (a,) = matrices("det", a)
    check_square("det", a)
    n = a.shape[-1]
    if n == 0:
        return lax.full(a.shape[:-2], 1, a.dtype)
    if n == 1:
        return a[..., 0, 0]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if n == 3:
        p = [[a[..., i, j] for j in range(3)] for i in range(3)]
        return (
            p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1])
            - p[0][1] * (p[1][0] * p[2][2] - p[1][2] * p[2][0])
            + p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0])
        )
    return _det(a)


def _signs(pivots: Array, dtype: Any) -> Array:
    """1 or -1: of an even or an odd number of interchanges of rows."""
    place = lax.broadcasted_iota(np.int32, pivots.shape, len(pivots.shape) - 1)
    odd = sum(lax.convert_element_type(lax.ne(pivots, place), np.int32), -1) % 2
    return lax.convert_element_type(1 - 2 * odd, dtype)


@custom_jvp
def _det(a: Any) -> Any:
    factors, pivots, _ = lax.linalg.lu(a)
    return prod(diagonal(factors), -1) * _signs(pivots, a.dtype)


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    """d det(A) = tr(det(A) A^-1 dA) (Jacobi), also where one pivot is zero: det(A) is multiplied
    in before the last pivot is divided by."""
    (a,), (da,) = primals, tangents
    n = a.shape[-1]
    factors, pivots, permutation = lax.linalg.lu(a)
    pivot_row = diagonal(factors)
    others = prod(pivot_row[..., :-1], -1) * _signs(pivots, a.dtype)
    value = others * pivot_row[..., -1]
    y = lax.linalg.triangular_solve(
        factors, take_rows(da, permutation), left_side=True, lower=True, unit_diagonal=True
    )
    y = lax.concatenate([y[..., :-1, :] * value[..., None, None], y[..., -1:, :]], y.ndim - 2)
    # The last unknown is y times the other pivots.
    last = y[..., -1:, :] * others[..., None, None]
    rest = y[..., :-1, :] - factors[..., :-1, -1:] * last
    above = lax.linalg.triangular_solve(
        factors[..., : n - 1, : n - 1], rest, left_side=True, lower=False
    )
    return value, sum(diagonal(lax.concatenate([above, last], y.ndim - 2)), -1)


@compiled(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign (or phase) of the determinant and the logarithm of its size, by "lu" or by "qr".

    a       square matrices (..., n, n); ValueError of others
    method  "lu" (default) or "qr"

    >>> sign, size = jnp.linalg.slogdet(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> print(sign, size)
    -1.0 0.0
    """
    (a,) = matrices("slogdet", a)
    check_square("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(
            f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'."
        )
    return SlogdetResult(*(_slogdet_qr(a) if method == "qr" else _slogdet(a)))


def _sign_and_size(pivot_row: Array, sign: Array) -> tuple[Array, Array]:
    size = lax.abs(pivot_row)
    is_zero = lax.eq(size, lax.full_like(size, 0))
    unit = lax.div(pivot_row, lax.convert_element_type(
        lax.select(is_zero, lax.full_like(size, 1), size), pivot_row.dtype))  # fmt: skip
    return prod(unit, -1) * sign, sum(lax.log(size), -1)


@custom_jvp
def _slogdet(a: Any) -> Any:
    factors, pivots, _ = lax.linalg.lu(a)
    return _sign_and_size(diagonal(factors), _signs(pivots, a.dtype))


@_slogdet.defjvp
def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (da,) = primals, tangents
    sign, size = _slogdet(a)
    change = sum(diagonal(solve(a, da)), -1)
    if not is_complex(a):
        return (sign, size), (lax.full_like(sign, 0), change)
    turn = change - lax.convert_element_type(real(change), a.dtype)
    return (sign, size), (turn * sign, real(change))


def _slogdet_qr(a: Array) -> tuple[Array, Array]:
    packed, taus = lax.linalg.geqrf(a)
    # det(I - tau v v^H) = 1 - tau |v|^2, with an implied 1 in v.
    below = lax.linalg.matrices.tril(packed, -1)
    length = 1 + sum(lax.convert_element_type(lax.square(lax.abs(below)), a.dtype), -2)
    return _sign_and_size(diagonal(packed), prod(1 - taus * length, -1))
