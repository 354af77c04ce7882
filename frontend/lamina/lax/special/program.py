"""The lowering of an elementwise primitive that is a program of other operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config, lax
from lamina.control_flow import while_loop
from lamina.core import ShapedArray
from lamina.core.array_class import Array
from lamina.core.trace import Tracer
from lamina.lax.elementwise_rules import spread_values

_DOUBLE = np.dtype(np.float64)
EPS = 2.0**-54
"""The relative change that no float64 sees."""
NARROW_EPS = 2.0**-31
"""That of which what follows it, too, is nothing that a float32 sees."""


def program(
    fun: Callable[..., Any], *, stable: bool = False, converges: bool = False, **static: Any
) -> Callable[..., Any]:
    """Lowers a primitive through fun(*operands), all float64 and of the result's shape.

    Whatever the dtype of the operands: what a series loses of its digits, narrow results never see.
    A `stable` one loses none, and is computed in float32 where the result has no more. One that
    `converges` is given `eps`, the relative change at which its series may end: for narrow results
    after half the terms. The program
    is a private function of the module, one for each shape. It is traced on scalars: each element is
    a lane, whose series ends on its own.
    """

    def rule(ctx: Any, *values: Any, **_: Any) -> Any:
        operands = spread_values(ctx, values)
        dtype = ctx.aval_out.dtype
        wide = np.dtype(np.float32) if stable and dtype.itemsize <= 4 else _DOUBLE
        ends = {"eps": NARROW_EPS if dtype.itemsize <= 4 else EPS} if converges else {}
        rest = tuple({**static, **ends}.items())
        traced = _traced(fun, rest, len(operands), ctx.aval_out.shape, dtype, wide)
        with config.enable_x64(True):  # lanes are traced again where they are lowered
            return ctx.call(traced, fun.__name__.strip("_"), operands)[0]

    return rule


@functools.lru_cache(maxsize=256)
def _traced(
    fun: Any, static: Any, arity: int, shape: tuple[int, ...], dtype: np.dtype, wide: np.dtype
) -> Any:
    from lamina.interpreters.batching import batch_flat
    from lamina.interpreters.staging import trace_to_jaxpr

    size = math.prod(shape)

    def of_scalars(*operands: Any) -> list[Any]:
        values = [lax.convert_element_type(x, wide) for x in operands]
        return [lax.convert_element_type(fun(*values, **dict(static)), dtype)]

    def flat(*operands: Any) -> list[Any]:
        lanes = [lax.reshape(x, (size,)) for x in operands]
        (result,), _ = batch_flat(of_scalars, lanes, [0] * arity, size)
        return [lax.reshape(result, shape)]

    with config.enable_x64(True):
        return trace_to_jaxpr(flat, [ShapedArray(shape, dtype)] * arity)


def derivative_of(fun: Callable[..., Any], position: int) -> Callable[..., Any]:
    """The derivative of a program by one of its arguments, as a program."""

    def by_argument(*args: Any) -> Any:
        from lamina.interpreters.jvp import jvp_flat

        def of(v: Any) -> list[Any]:
            return [fun(*args[:position], v, *args[position + 1 :])]

        at = args[position]
        return jvp_flat(of, [at], [lax.full_like(at, 1)])[1][0]

    by_argument.__name__ = f"{fun.__name__}_by_{position}"
    return by_argument


def where(which: Any, chosen: Any, otherwise: Any) -> Any:
    """lax.select with numbers for one or both of the cases, of the other's dtype or float64."""
    dtypes = [x.dtype for x in (chosen, otherwise) if isinstance(x, Tracer)]
    dtype, shape = dtypes[0] if dtypes else _DOUBLE, which.shape
    cases = [
        x if isinstance(x, Tracer) and x.shape == shape else lax.full(shape, x, dtype)
        for x in (chosen, otherwise)
    ]
    return lax.select(which, *cases)


def iterate(step: Callable[..., Sequence[Any]], unfinished: Callable[..., Any],
            start: Sequence[Any], limit: int) -> list[Any]:  # fmt: skip
    """start = step(n, *start) for n = 1, 2, ... while unfinished(*start) holds anywhere, at most
    `limit` times. n is a float64."""

    def condition(state: Any) -> Any:
        n, values = state
        more = unfinished(*values)
        some = lax.reduce_or(more, tuple(range(more.ndim)))
        return lax.bitwise_and(lax.lt(n, np.float64(limit)), some)

    def body(state: Any) -> Any:
        n, values = state
        n = lax.add(n, np.float64(1))
        return n, list(step(n, *values))

    return while_loop(condition, body, (np.float64(0), list(start)))[1]


def polynomial(x: Any, coefficients: Sequence[float]) -> Array:
    """c0 + c1 x + c2 x^2 + ..., by Horner's rule."""
    total: Any = lax.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def chebyshev(t: Any, coefficients: Sequence[float]) -> Any:
    """c0 + c1 T1(t) + c2 T2(t) + ... for -1 <= t <= 1, without the terms that t has no digits for.
    The series is nowhere much smaller than c0.

    By powers of t, even and odd ones in two chains, where their coefficients lose no digits; else by
    Clenshaw's recurrence, which takes twice the operations.
    """
    if t.dtype != _DOUBLE:
        least = abs(coefficients[0]) * float(np.finfo(t.dtype).eps) / 32
        coefficients = [c for c in coefficients if abs(c) >= least]
    powers = _powers(tuple(coefficients))
    if sum(map(abs, powers)) <= 3 * abs(coefficients[0]):
        square = t * t
        return t * polynomial(square, powers[1::2]) + polynomial(square, powers[::2])
    twice = t + t
    last: Any = lax.full_like(t, 0)
    before: Any = last
    for c in reversed(coefficients[1:]):
        last, before = twice * last - before + c, last
    return t * last - before + coefficients[0]


@functools.lru_cache
def _powers(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """The same polynomial's coefficients by powers of t, computed exactly and rounded once."""
    from fractions import Fraction  # takes long to load

    total = [Fraction(0)] * len(coefficients)
    last, this = [Fraction(0), Fraction(1)], [Fraction(1)]  # T_-1 = T_1 = t, T_0 = 1
    for c in map(Fraction, coefficients):
        for i, factor in enumerate(this):
            total[i] += c * factor
        following = [Fraction(0), *(2 * factor for factor in this)]
        for i, factor in enumerate(last):
            following[i] -= factor
        last, this = this, following
    return tuple(map(float, total))
