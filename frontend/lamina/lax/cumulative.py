"""Cumulative operations along an axis: cumsum cumprod cummax cummin.

They are computed by halving: pairs are combined, the result is scanned, and what lies between is
filled in. That is O(n) work in O(log n) steps for any associative operation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import LINEAR, NOT_LINEAR, Primitive, ShapedArray
from lamina.lax import hlo
from lamina.lax.checks import ANY, NUMBER, Accepted, canonical_axis, check_accepted


# ---- user functions ----------------------------------------------------------------------------
def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Sums of the elements up to each (from each on, if reverse) along an axis, in its dtype."""
    return _bind(cumsum_p, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Products of the elements up to each (from each on, if reverse) along an axis."""
    return _bind(cumprod_p, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The greatest of the elements up to each (from each on, if reverse) along an axis."""
    return _bind(cummax_p, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The least of the elements up to each (from each on, if reverse) along an axis."""
    return _bind(cummin_p, operand, axis, reverse)


def _bind(primitive: Primitive, operand: Any, axis: int, reverse: bool) -> Any:
    axis = canonical_axis(primitive.name, axis, len(np.shape(operand)))
    return primitive.bind(operand, axis=axis, reverse=bool(reverse))


# ---- the scan ----------------------------------------------------------------------------------
Arrays = Sequence[Any]


def associative_scan(ops: Any, combine: Callable[[Arrays, Arrays], Arrays], xs: Arrays,
                     shape: tuple[int, ...], axis: int) -> list[Any]:  # fmt: skip
    """combine(...combine(x0, x1)..., xi) for each i along an axis, of arrays of one shape.

    `ops` has slice, concatenate and reshape: lamina.lax for arrays, its `hlo` for IR values.
    """
    n = shape[axis]
    if n < 2:
        return list(xs)

    def sized(k: int) -> tuple[int, ...]:
        return (*shape[:axis], k, *shape[axis + 1 :])

    def part(x: Any, start: int, limit: int, step: int) -> Any:
        starts, strides = [0] * len(shape), [1] * len(shape)
        starts[axis], strides[axis] = start, step
        limits = list(sized(limit))
        return ops.slice(x, starts, limits, strides)

    half = n // 2
    pairs = combine(
        [part(x, 0, 2 * half - 1, 2) for x in xs], [part(x, 1, 2 * half, 2) for x in xs]
    )
    odd = associative_scan(ops, combine, pairs, sized(half), axis)
    first = [part(x, 0, 1, 1) for x in xs]
    if n == 2:
        even = first
    else:
        between = (n - 1) // 2
        rest = combine([part(x, 0, between, 1) for x in odd], [part(x, 2, n, 2) for x in xs])
        even = [ops.concatenate([a, b], axis) for a, b in zip(first, rest)]
    column = (*sized(half)[: axis + 1], 1, *shape[axis + 1 :])
    out = []
    for a, b in zip(even, odd):
        body = part(a, 0, half, 1) if n % 2 else a
        both = ops.concatenate([ops.reshape(body, column), ops.reshape(b, column)], axis + 1)
        woven = ops.reshape(both, sized(2 * half))
        if n % 2:
            woven = ops.concatenate([woven, part(a, half, half + 1, 1)], axis)
        out.append(woven)
    return out


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(name: str, accept: Accepted) -> Callable[..., ShapedArray]:
    def rule(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_accepted(name, accept, x)
        if not 0 <= axis < len(x.shape):
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
        return x

    return rule


def _lowering(combine: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        aval = ctx.avals_in[0]

        def step(left: Arrays, right: Arrays) -> Arrays:
            part = ShapedArray(tuple(left[0].type.shape), aval.dtype)
            inner = dataclasses.replace(ctx, avals_in=[part, part], avals_out=[part])
            return [combine().lowering(inner, left[0], right[0])]  # type: ignore[operator]

        if reverse:
            x = hlo.reverse(x, [axis])
        (out,) = associative_scan(hlo, step, [x], aval.shape, axis)
        return hlo.reverse(out, [axis]) if reverse else out

    return rule


def _jvp(
    primitive: Callable[[], Primitive], combine: Callable[[], Primitive]
) -> Callable[..., Any]:
    """Scans values with their tangents, by the derivative of the combining primitive."""

    def step(left: Arrays, right: Arrays) -> Arrays:
        return combine().jvp((left[0], right[0]), (left[1], right[1]))  # type: ignore[operator]

    def rule(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
        pair = [*primals, *tangents]
        if reverse:
            pair = [lax.rev(x, (axis,)) for x in pair]
        _, tangent = associative_scan(lax, step, pair, pair[0].shape, axis)
        out = primitive().bind(*primals, axis=axis, reverse=reverse)
        return out, lax.rev(tangent, (axis,)) if reverse else tangent

    return rule


def _batching(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(args: Any, dims: Any, *, axis: int, reverse: bool) -> tuple[Any, int]:
        (d,) = dims
        return primitive().bind(*args, axis=axis + (axis >= d), reverse=reverse), d

    return rule


def _cumulative(name: str, accept: Accepted, combine: Callable[[], Primitive], jvp: Any = None,
                transpose: Any = NOT_LINEAR) -> Primitive:  # fmt: skip
    primitive = Primitive(
        name,
        abstract_eval=_abstract_eval(name, accept),
        lowering=_lowering(combine),
        jvp=jvp or _jvp(lambda: primitive, combine),
        transpose=transpose,
        batching=_batching(lambda: primitive),
    )
    return primitive


cumsum_p: Primitive = _cumulative(
    "cumsum", NUMBER, lambda: lax.add_p, LINEAR,
    lambda ct, x, *, axis, reverse: [cumsum(ct, axis, not reverse)],
)  # fmt: skip
cumprod_p: Primitive = _cumulative("cumprod", NUMBER, lambda: lax.mul_p)
cummax_p: Primitive = _cumulative("cummax", ANY, lambda: lax.max_p)
cummin_p: Primitive = _cumulative("cummin", ANY, lambda: lax.min_p)
