"""A step length that satisfies the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.numpy.promotion import Array

_SUFFICIENT, _CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """The function along a line at a step length: its value, slope and gradient."""

    step: Array
    value: Array
    slope: Array
    gradient: Array


def inner(x: Array, y: Array) -> Array:
    """The real part of the scalar product."""
    return lax.real((lax.conj(x) * y).sum()) if dtypes.is_complex(x.dtype) else (x * y).sum()


def scaled(factor: Array, x: Array) -> Array:
    """A real number times a vector, which may be complex."""
    return lax.convert_element_type(factor, x.dtype) * x


class _State(NamedTuple):
    low: Point  # the best so far; a good step lies between it and high, once bracketed
    high: Point
    best: Point
    bracketed: Array
    done: Array
    count: Array  # type: ignore[assignment]  # hides tuple's


def line_search(
    value_and_grad: Callable[[Any], Any],
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    most: int,
    before: Array | None = None,
) -> tuple[Point, Array, Array]:
    """The chosen point, whether it satisfies the conditions, and how often the function was called.

    before  the value before the last step: the first trial is where a parabola that falls as much again
            has its minimum (equation 3.60), at most 1; None: 1.

    Nocedal & Wright, "Numerical Optimization" (2006), algorithms 3.5 and 3.6 in one loop; the
    zoom's trial is the minimum of a cubic, kept away from the ends of the interval.
    """
    kind = value.dtype

    def number(v: float) -> Array:
        return lax.full((), v, kind)

    def at(step: Array) -> Point:
        value, gradient = value_and_grad(x + scaled(step, direction))
        return Point(step, value, inner(gradient, direction), gradient)

    start = Point(number(0), value, inner(gradient, direction), gradient)
    first_step = number(1)
    if before is not None:
        guess = 2.02 * (value - before) / start.slope
        first_step = lax.select((guess > 0) & (guess < 1), guess, first_step)

    def trial(s: _State) -> Array:
        a, b = s.low, s.high
        width = b.step - a.step
        # Of the cubic through both values and slopes (equation 3.59).
        d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
        d2 = lax.sign(width) * lax.sqrt(lax.max(d1 * d1 - a.slope * b.slope, number(0)))
        guess = b.step - width * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)
        near, far = a.step + 0.1 * width, a.step + 0.9 * width
        inside = (guess > lax.min(near, far)) & (guess < lax.max(near, far))
        zoom = lax.select(inside, guess, a.step + 0.5 * width)
        wider = lax.select(s.count == 0, first_step, 2 * s.low.step)
        return lax.select(s.bracketed, zoom, wider)

    def pick(flag: Array, a: Point, b: Point) -> Point:
        return Point(*(lax.select(flag, p, q) for p, q in zip(a, b)))

    def step(s: _State) -> _State:
        point = at(trial(s))
        limit = value + _SUFFICIENT * point.step * start.slope
        too_high = (point.value > limit) | lax.bitwise_not(lax.is_finite(point.value))
        too_high = too_high | ((point.value >= s.low.value) & (s.count > 0))
        done = lax.bitwise_not(too_high) & (lax.abs(point.slope) <= -_CURVATURE * start.slope)
        # Uphill, towards high: the minimum lies between low and here.
        turn = lax.select(s.bracketed, point.slope * (s.high.step - s.low.step) >= 0,
                          point.slope >= 0)  # fmt: skip
        high = pick(too_high, point, pick(turn, s.low, s.high))
        low = pick(too_high, s.low, point)
        better = done | (point.value < s.best.value)
        return _State(low, high, pick(better, point, s.best), s.bracketed | too_high | turn, done,
                      s.count + 1)  # fmt: skip

    false = lax.full((), False, np.bool_)
    first = _State(start, start, start, false, false, lax.full((), 0, np.int32))
    end = lax.while_loop(
        lambda s: lax.bitwise_not(s.done) & (s.count < most), step, first
    )
    return end.best, end.done, end.count
