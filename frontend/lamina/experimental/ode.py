"""Ordinary differential equations: Dormand and Prince's method, with gradients by the adjoint one.

Coefficients: J. R. Dormand, P. J. Prince, A family of embedded Runge-Kutta formulae, J. Comput.
Appl. Math. 6 (1980). First step and control of steps: Hairer, Norsett, Wanner, Solving Ordinary
Differential Equations I, II.4.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.autodiff import vjp
from lamina.control_flow.custom_gradient import closure_convert
from lamina.control_flow.custom_vjp import custom_vjp
from lamina.core import dtypes, tree
from lamina.core.trace import get_aval
from lamina.flatten_util import ravel_pytree
from lamina.vmap import vmap

__all__ = ["odeint"]

_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (
    35 / 384 - 5179 / 57600, 0.0, 500 / 1113 - 7571 / 16695, 125 / 192 - 393 / 640,
    -2187 / 6784 + 92097 / 339200, 11 / 84 - 187 / 2100, -1 / 40,
)  # fmt: skip
_ORDER, _SAFETY, _GROW, _SHRINK = 5, 0.9, 10.0, 0.2


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0, at the times t, by Dormand and
    Prince's method of order 5 with adaptive steps.

    func        gives dy/dt, like y0.
    y0          the start, a pytree of arrays; the result is y0's structure with a leading dimension
                of times.
    t           rising times, a vector of one or more.
    args        pytrees of arrays.
    rtol, atol  bounds of the error of a step, per entry: atol + rtol * |y|.
    mxstep      how many steps there may be between two times; then the solution is not finished.
    hmax        the longest step.

    Differentiable in reverse by y0, t and args: the adjoint equation is solved back in time. Raises
    TypeError for arguments that are no arrays.

    >>> decay = lambda y, t: -y
    >>> print(lamina.experimental.ode.odeint(decay, 1.0, jnp.array([0.0, 1.0])).round(4))
    [1.     0.3679]
    """
    for x in tree.leaves(args):
        if not hasattr(x, "dtype") and not isinstance(x, (bool, int, float, complex)):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got\n{x}."
            )
    flat, unravel = ravel_pytree(y0)
    t = jnp.asarray(t, None if dtypes.is_inexact(get_aval(t).dtype) else flat.dtype)

    def field(y: Any, t: Any, *args: Any) -> Any:
        return ravel_pytree(func(unravel(y), t, *args))[0]

    converted, consts = closure_convert(field, flat, t[0], *args)
    settings = (float(rtol), float(atol), float(mxstep), float(hmax))
    ys = _solve(converted, settings, flat, t, *args, *consts)
    return vmap(unravel)(ys)


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solve(field: Any, settings: tuple[float, ...], y0: Any, ts: Any, *args: Any) -> Any:
    rtol, atol, mxstep, hmax = settings
    f = lambda y, t: field(y, t, *args)  # noqa: E731

    def to(state: Any, target: Any) -> Any:
        def unfinished(s: Any) -> Any:
            n, _, _, t, dt = s
            return (t < target) & (n < mxstep) & (dt > 0)

        def advance(s: Any) -> Any:
            n, y, k, t, dt = s
            step = jnp.minimum(dt, target - t)  # times are stepped on
            new, k_new, error = _step(f, y, k, t, step)
            ratio = _norm(error / (atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))))
            fits = ratio <= 1
            factor = jnp.clip(_SAFETY * ratio ** (-1.0 / _ORDER), _SHRINK, _GROW)
            factor = jnp.where(ratio == 0, _GROW, factor)
            wanted = jnp.where(fits & (step < dt), jnp.maximum(dt, step * factor), step * factor)
            at = jnp.where(step < dt, target, t + step)
            keep = lambda a, b: jnp.where(fits, a, b)  # noqa: E731
            return n + 1, keep(new, y), keep(k_new, k), keep(at, t), jnp.minimum(wanted, hmax)

        _, y, k, t, dt = lax.while_loop(unfinished, advance, (0, *state))
        return (y, k, t, dt), y

    first = f(y0, ts[0])
    start = (y0, first, ts[0], jnp.minimum(_first_step(f, ts[0], y0, first, rtol, atol), hmax))
    _, ys = lax.scan(to, start, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _step(f: Any, y: Any, k1: Any, t: Any, dt: Any) -> tuple[Any, Any, Any]:
    """After a step: y, its derivative there (the first stage of the next), the error's estimate."""
    dt = lax.convert_element_type(dt, jnp.real(y).dtype)
    ks = [k1]
    at = y
    for node, row in zip(_NODES[1:], _STAGES, strict=True):
        at = y + dt * sum(a * k for a, k in zip(row, ks, strict=True) if a)
        ks.append(f(at, t + dt * node))
    return at, ks[-1], dt * sum(e * k for e, k in zip(_ERROR, ks, strict=True) if e)


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.mean(jnp.abs(x) ** 2))


def _first_step(f: Any, t: Any, y: Any, k: Any, rtol: float, atol: float) -> Any:
    scale = atol + jnp.abs(y) * rtol
    size, slope = _norm(y / scale), _norm(k / scale)
    guess = jnp.where((size < 1e-5) | (slope < 1e-5), 1e-6, 0.01 * size / slope)
    guess = lax.convert_element_type(guess, t.dtype)
    bend = _norm((f(y + guess * k, t + guess) - k) / scale) / guess
    steepest = jnp.maximum(slope, bend)
    long = jnp.where(
        steepest <= 1e-15, jnp.maximum(1e-6, guess * 1e-3), (0.01 / steepest) ** (1.0 / _ORDER)
    )
    return lax.convert_element_type(jnp.minimum(100 * guess, long), t.dtype)


def _forward(field: Any, settings: Any, y0: Any, ts: Any, *args: Any) -> Any:
    ys = _solve(field, settings, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(field: Any, settings: Any, residuals: Any, g: Any) -> Any:
    """The adjoint equation from the last time to the first, with integrals for the arguments."""
    ys, ts, args = tree.map(jnp.asarray, residuals)
    g = jnp.asarray(g)
    smooth = [dtypes.is_inexact(get_aval(x).dtype) for x in tree.leaves(args)]
    leaves, args_tree = tree.flatten(args)
    own = [x for x, s in zip(leaves, smooth, strict=True) if s]

    def with_own(values: Any) -> Any:
        given = iter(values)
        return tree.unflatten(
            args_tree, [next(given) if s else x for x, s in zip(leaves, smooth, strict=True)]
        )

    def of(y: Any, t: Any, own: Any) -> Any:
        return field(y, t, *with_own(own))

    def backwards(state: Any, t: Any) -> Any:
        y, y_bar, *_ = state
        slope, pull = vjp(of, y, -t, own)
        return (-slope, *pull(y_bar))

    def interval(carry: Any, i: Any) -> Any:
        y_bar, t_first, own_bar = carry
        here = jnp.real(jnp.vdot(jnp.conj(of(ys[i], ts[i], own)), g[i])).astype(ts.dtype)
        state = (ys[i], y_bar, t_first - here, own_bar)
        times = jnp.stack([-ts[i], -ts[i - 1]])
        rtol, atol, mxstep, hmax = settings
        out = odeint(backwards, state, times, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
        _, y_bar, t_first, own_bar = tree.map(lambda x: x[1], out)
        return (y_bar + g[i - 1], t_first, own_bar), here

    zeros = [jnp.zeros_like(x) for x in own]
    last = ts.shape[0] - 1
    start = (g[-1], jnp.zeros((), ts.dtype), zeros)
    (y_bar, t_first, own_bar), heres = lax.scan(interval, start, jnp.arange(last, 0, -1))
    ts_bar = jnp.concatenate([t_first[None], heres[::-1]])
    found = iter(own_bar)
    args_bar = tree.unflatten(args_tree, [next(found) if s else None for s in smooth])
    return (y_bar, ts_bar, *args_bar)


_solve.defvjp(_forward, _backward)
