"""Quasi-Newton methods: BFGS, and L-BFGS, which keeps a few vectors instead of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lamina import lax
from lamina.api import value_and_grad
from lamina.core import dtypes
from lamina.numpy.promotion import Array
from lamina.scipy.optimize.line_search import inner, line_search, scaled


def _size(x: Array, norm: float) -> Array:
    from lamina.numpy.linalg import vector_norm

    return vector_norm(x, ord=norm)


class _Bfgs(NamedTuple):
    x: Array
    value: Array
    before: Array  # the value before the last step
    gradient: Array
    inverse: Array
    status: Array
    calls: Array
    steps: Array


_RUNNING, _CONVERGED, _TOO_MANY, _NO_STEP = -1, 0, 1, 3


def minimize_bfgs(
    fun: Callable[[Any], Any],
    x0: Array,
    maxiter: int | None = None,
    norm: float = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> tuple[Any, ...]:
    """The fields of OptimizeResults. Nocedal & Wright (2006), algorithm 6.1."""
    n = x0.shape[0]
    most = 200 * n if maxiter is None else maxiter
    both = value_and_grad(fun)
    value, gradient = both(x0)
    eye = np.eye(n, dtype=x0.dtype)

    def integer(v: int) -> Array:
        return lax.full((), v, np.int32)

    def status(gradient: Array, steps: Array) -> Array:
        running = lax.select(steps >= most, integer(_TOO_MANY), integer(_RUNNING))
        return lax.select(_size(gradient, norm) < gtol, integer(_CONVERGED), running)

    def step(s: _Bfgs) -> _Bfgs:
        direction = -(s.inverse @ s.gradient)
        point, found, calls = line_search(
            both, s.x, direction, s.value, s.gradient, line_search_maxiter, s.before
        )
        move = point.step * direction
        change = point.gradient - s.gradient
        curvature = (change * move).sum()
        usable = curvature > 0
        rho = 1 / lax.select(usable, curvature, lax.full_like(curvature, 1))
        left = eye - rho * move[:, None] * change[None, :]
        inverse = left @ s.inverse @ left.T + rho * move[:, None] * move[None, :]
        inverse = lax.select(usable, inverse, s.inverse)
        steps = s.steps + 1
        ended = status(point.gradient, steps)
        ended = lax.select(
            lax.bitwise_not(found) & (ended != _CONVERGED), integer(_NO_STEP), ended
        )
        return _Bfgs(s.x + move, point.value, s.value, point.gradient, inverse, ended, s.calls + calls,
                     steps)  # fmt: skip

    # As if a step of the gradient's length had been taken along it, with half of that gain.
    before = value + lax.sqrt((gradient * gradient).sum()) / 2
    start = _Bfgs(x0, value, before, gradient, lax.full((n, n), 0, x0.dtype) + eye,
                  status(gradient, integer(0)), integer(1), integer(0))  # fmt: skip
    end = lax.while_loop(lambda s: s.status == _RUNNING, step, start)
    return (end.x, end.status == _CONVERGED, end.status, end.value, end.gradient, end.inverse,
            end.calls, end.calls, end.steps)  # fmt: skip


class _Lbfgs(NamedTuple):
    x: Array
    value: Array
    gradient: Array
    moves: Array
    changes: Array
    weights: Array
    scale: Array
    status: Array
    calls: Array
    steps: Array


def minimize_lbfgs(
    fun: Callable[[Any], Any],
    x0: Array,
    maxiter: int | None = None,
    norm: float = np.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun: int | None = None,
    maxgrad: int | None = None,
    maxls: int = 20,
) -> tuple[Any, ...]:
    """The fields of OptimizeResults. Nocedal & Wright (2006), algorithms 7.4 and 7.5."""
    n = x0.shape[0]
    unlimited = np.iinfo(np.int32).max
    most = unlimited if maxiter is None and maxfun is None and maxgrad is None else maxiter
    most = unlimited if most is None else most
    most_calls = min(unlimited if v is None else v for v in (maxfun, maxgrad))
    real = dtypes.real_dtype(x0.dtype)

    def both(x: Any) -> tuple[Array, Array]:
        value, gradient = value_and_grad(fun)(x)
        return value, lax.conj(gradient) if dtypes.is_complex(x0.dtype) else gradient

    value, gradient = both(x0)

    def integer(v: int) -> Array:
        return lax.full((), v, np.int32)

    def step(s: _Lbfgs) -> _Lbfgs:
        along = _direction(s)
        point, found, calls = line_search(both, s.x, along, s.value, s.gradient, maxls)
        move, change = scaled(point.step, along), point.gradient - s.gradient
        curvature = inner(change, move)
        usable = curvature > 0
        safe = lax.select(usable, curvature, lax.full_like(curvature, 1))
        weight = lax.select(usable, 1 / safe, lax.full_like(safe, 0))
        scale = lax.select(usable, curvature / inner(change, change), s.scale)
        steps, calls = s.steps + 1, s.calls + calls
        status = lax.select(calls >= most_calls, integer(2), integer(_RUNNING))
        status = lax.select(steps >= most, integer(_TOO_MANY), status)
        status = lax.select(s.value - point.value < ftol, integer(4), status)
        status = lax.select(lax.bitwise_not(found), integer(5), status)
        status = lax.select(_size(point.gradient, norm) < gtol, integer(_CONVERGED), status)
        return _Lbfgs(s.x + move, point.value, point.gradient, _pushed(s.moves, move),
                      _pushed(s.changes, change), _pushed(s.weights, weight), scale, status, calls,
                      steps)  # fmt: skip

    table = lax.full((maxcor, n), 0, x0.dtype)
    first = lax.select(_size(gradient, norm) < gtol, integer(_CONVERGED), integer(_RUNNING))
    weights, scale = lax.full((maxcor,), 0, real), lax.full((), 1, real)
    start = _Lbfgs(x0, value, gradient, table, table, weights, scale, first, integer(1), integer(0))
    end = lax.while_loop(lambda s: s.status == _RUNNING, step, start)
    success = (end.status == _CONVERGED) | (end.status == 4)
    status = lax.select(success, integer(0), end.status)
    return (end.x, success, status, end.value, end.gradient, None, end.calls, end.calls,
            end.steps)  # fmt: skip


def _direction(s: _Lbfgs) -> Array:
    """Minus the inverse Hessian that the last moves tell of, times the gradient: by two loops."""
    kept = s.weights.shape[0]

    def back(i: Any, state: Any) -> Any:
        q, alphas = state
        j = kept - 1 - i
        alpha = s.weights[j] * inner(s.moves[j], q)
        return q - scaled(alpha, s.changes[j]), alphas.at[j].set(alpha)

    def forth(j: Any, r: Array) -> Array:
        beta = s.weights[j] * inner(s.changes[j], r)
        return r + scaled(alphas[j] - beta, s.moves[j])

    none = lax.full_like(s.weights, 0)
    q, alphas = lax.fori_loop(0, kept, back, (s.gradient, none))
    return -lax.fori_loop(0, kept, forth, scaled(s.scale, q))


def _pushed(table: Array, row: Array) -> Array:
    """The rows of a table but its first one, and another."""
    return lax.concatenate([table[1:], row[None]], 0)
