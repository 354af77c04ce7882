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
    """The polar decomposition x = U H: (U, H, iterations, converged), U with orthonormal columns
    and H Hermitian positive semidefinite.

    x               floats or complex numbers of shape (m, n), m >= n.
    is_hermitian    says that x is Hermitian, which is then kept.
    max_iterations  at most so many; None: 10.
    eps             the accuracy that counts as converged; None: that of the dtype.
    dynamic_shape   None.

    Nakatsukasa, Bai, Gygi, "Optimizing Halley's iteration for computing the matrix polar
    decomposition" (2010), all iterations by QR, which is stable for any condition. Raises
    ValueError where there are more columns than rows; NotImplementedError for a dynamic_shape.

    >>> u, h, _, converged = lax.linalg.qdwh(jnp.array([[0.0, 2.0], [-3.0, 0.0]]))
    >>> print(abs(h.round(3)), converged)
    [[3. 0.]
     [0. 2.]] True
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
    start = _at_most_one(x)
    small, tolerance = (lax.full((), value, kind) for value in (eps, (4 * eps) ** (1 / 3)))

    def unfinished(state: Any) -> Any:
        _, low, change, count = state
        one, enough = (lax.full((), value, kind) for value in (1, 5 * eps))
        more = lax.bitwise_or(lax.gt(change, tolerance), lax.gt(lax.sub(one, low), enough))
        return lax.bitwise_and(more, lax.lt(count, np.int32(limit)))

    def step(state: Any) -> Any:
        u, low, _, count = state
        weights, low = _weights(low, small)
        new = _halley(u, *weights)
        if is_hermitian:
            new = symmetrize(new)
        change = lax.sqrt(lax.reduce_sum(lax.square(lax.abs(lax.sub(new, u))), (0, 1)))
        return new, low, change, lax.add(count, np.int32(1))

    state = (start, small, lax.full((), 1, kind), lax.full((), 0, np.int32))
    u, _, change, count = lax.while_loop(unfinished, step, state)
    # A Newton-Schulz step restores what rounding took from orthogonality.
    half = lax.full((), 0.5, x.dtype)
    three = lax.full((), 3, x.dtype)
    u = lax.mul(half, lax.sub(lax.mul(three, u), matmul(u, matmul(adjoint(u), u))))
    return u, symmetrize(matmul(adjoint(u), x)), count, lax.le(change, tolerance)


def _at_most_one(x: Any) -> Any:
    """x divided by an upper bound of its singular values."""
    size = real(lax.abs(x))
    rows, columns = (lax.reduce_max(lax.reduce_sum(size, (axis,)), (0,)) for axis in (0, 1))
    above = lax.sqrt(lax.mul(rows, columns))
    zero, one = (lax.full((), value, size.dtype) for value in (0, 1))
    above = lax.select(lax.eq(above, zero), one, above)
    return lax.div(x, lax.convert_element_type(above, x.dtype))


def _weights(low: Any, small: Any) -> tuple[tuple[Any, Any, Any], Any]:
    """a, b and c of a step, for a lower bound of the singular values; and that bound after it."""

    def number(value: float) -> Any:
        return lax.full((), value, low.dtype)

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
    low = lax.div(
        lax.mul(low, lax.add(a, lax.mul(b, squared))), lax.add(number(1), lax.mul(c, squared))
    )
    return (a, b, c), lax.min(low, number(1))


def _halley(u: Any, a: Any, b: Any, c: Any) -> Any:
    """u (a + b u* u) (1 + c u* u)^-1, by the QR decomposition of sqrt(c) u above the identity."""
    m, n = u.shape

    def as_u(y: Any) -> Any:
        return lax.convert_element_type(y, u.dtype)

    stacked = lax.concatenate([lax.mul(as_u(lax.sqrt(c)), u), eye((n, n), u.dtype)], 0)
    q, _ = lax.linalg.qr(stacked, full_matrices=False)
    q1, q2 = lax.slice_in_dim(q, 0, m), lax.slice_in_dim(q, m, m + n)
    ratio = lax.div(b, c)
    weight = lax.div(lax.sub(a, ratio), lax.sqrt(c))
    return lax.add(lax.mul(as_u(ratio), u), lax.mul(as_u(weight), matmul(q1, adjoint(q2))))
