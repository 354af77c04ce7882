"""qdwh: the polar decomposition by dynamically weighted Halley iterations."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.lax.linalg.matrices import adjoint, eye, matmul, real, symmetrize


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """U, H, the number of iterations and whether they converged: x = U H, U with orthonormal
    columns and H Hermitian positive semidefinite, for a matrix with no more columns than rows.

    Nakatsukasa, Bai, Gygi, "Optimizing Halley's iteration for computing the matrix polar
    decomposition" (2010), all iterations by QR, which is stable for any condition.
    """
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh takes matrices of static sizes only")
    m, n = x.shape
    if m < n:
        raise ValueError(f"qdwh requires no more columns than rows, got a matrix of shape {(m, n)}")
    if is_hermitian and m != n:
        raise ValueError(f"a Hermitian matrix is square, got one of shape {(m, n)}")
    limit = 10 if max_iterations is None else int(max_iterations)
    kind = real(x).dtype
    eps = float(np.finfo(kind).eps) if eps is None else float(eps)

    def number(value: float) -> Any:
        return lax.full((), value, kind)

    # Bounds of the singular values: an upper one of the largest, a lower one of the smallest.
    size = real(lax.abs(x))
    rows, columns = (lax.reduce_max(lax.reduce_sum(size, (axis,)), (0,)) for axis in (0, 1))
    above = lax.sqrt(lax.mul(rows, columns))
    above = lax.select(lax.eq(above, number(0)), number(1), above)
    u = lax.div(x, lax.convert_element_type(above, x.dtype))
    small = number(eps)
    tolerance = number((4 * eps) ** (1 / 3))

    def unfinished(state: Any) -> Any:
        _, low, change, count = state
        more = lax.bitwise_or(
            lax.gt(change, tolerance), lax.gt(lax.sub(number(1), low), number(5 * eps))
        )
        return lax.bitwise_and(more, lax.lt(count, np.int32(limit)))

    def step(state: Any) -> Any:
        u, low, _, count = state
        squared = lax.mul(low, low)
        gamma = lax.div(lax.sub(number(1), squared), lax.mul(squared, squared))
        gamma = lax.cbrt(lax.mul(number(4), lax.max(gamma, number(0))))
        root = lax.sqrt(lax.add(number(1), gamma))
        inner = lax.div(lax.mul(number(8), lax.sub(number(2), squared)), lax.mul(squared, root))
        inner = lax.add(lax.sub(number(8), lax.mul(number(4), gamma)), inner)
        a = lax.add(root, lax.div(lax.sqrt(lax.max(inner, number(0))), number(2)))
        a = lax.select(lax.lt(lax.sub(number(1), low), small), number(3), a)
        b = lax.div(lax.square(lax.sub(a, number(1))), number(4))
        c = lax.sub(lax.add(a, b), number(1))
        as_x = lambda y: lax.convert_element_type(y, x.dtype)  # noqa: E731
        stacked = lax.concatenate([lax.mul(as_x(lax.sqrt(c)), u), eye((n, n), x.dtype)], 0)
        q, _ = lax.linalg.qr(stacked, full_matrices=False)
        q1, q2 = lax.slice_in_dim(q, 0, m), lax.slice_in_dim(q, m, m + n)
        ratio = lax.div(b, c)
        weight = lax.div(lax.sub(a, ratio), lax.sqrt(c))
        new = lax.add(
            lax.mul(as_x(ratio), u), lax.mul(as_x(weight), matmul(q1, adjoint(q2)))
        )
        if is_hermitian:
            new = symmetrize(new)
        low = lax.div(
            lax.mul(low, lax.add(a, lax.mul(b, squared))), lax.add(number(1), lax.mul(c, squared))
        )
        low = lax.min(low, number(1))
        change = lax.sqrt(lax.reduce_sum(lax.square(lax.abs(lax.sub(new, u))), (0, 1)))
        return new, low, change, lax.add(count, np.int32(1))

    start = (u, small, number(1), lax.full((), 0, np.int32))
    u, _, change, count = lax.while_loop(unfinished, step, start)
    # A Newton-Schulz step restores what rounding took from orthogonality.
    half = lax.full((), 0.5, x.dtype)
    three = lax.full((), 3, x.dtype)
    u = lax.mul(half, lax.sub(lax.mul(three, u), matmul(u, matmul(adjoint(u), u))))
    return u, symmetrize(matmul(adjoint(u), x)), count, lax.le(change, tolerance)
