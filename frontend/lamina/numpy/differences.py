"""Differences along axes and what is made of them: diff ediff1d gradient trapezoid unwrap."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray, astype_array
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    literal,
    pick,
    promote_args_inexact,
    promote_dtypes,
    promote_inexact,
)  # fmt: skip


def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:  # fmt: skip
    """The n-th differences of neighbours along an axis, with values put before or after it.

    a                an array of at least one axis
    n                how often to take differences
    axis             the axis
    prepend, append  what is put before and after a

    >>> jnp.diff(jnp.array([1, 4, 9])).tolist()
    [3, 5]
    """
    check_arraylike("diff", a)
    x = asarray(a)
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return x
    if not x.shape:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    at = canonical_axis(axis, len(x.shape))
    edges = [edge for edge in (prepend, append) if edge is not None]
    if edges:
        check_arraylike("diff", *edges)
    first, last = (None if edge is None else asarray(edge) for edge in (prepend, append))
    return _diff(x, first, last, n, at)


@compiled(static=("n", "at"))
def _diff(x: Array, prepend: Array | None, append: Array | None, n: int, at: int) -> Array:
    from lamina.numpy.joining import concatenate
    from lamina.numpy.logic import not_equal

    shape = (*x.shape[:at], 1, *x.shape[at + 1 :])

    def edge(v: Array | None) -> list[Array]:
        return [] if v is None else [v if v.shape else lax.broadcast_in_dim(v, shape, ())]

    parts = [*edge(prepend), x, *edge(append)]
    x = concatenate(parts, at) if len(parts) > 1 else x
    step = not_equal if x.dtype == np.bool_ else lax.sub
    for _ in range(n):
        size = x.shape[at]
        x = step(lax.slice_in_dim(x, min(1, size), size, axis=at),
                 lax.slice_in_dim(x, 0, max(size - 1, 0), axis=at))  # fmt: skip
    return x


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """The differences of neighbours in the flattened array, with values around them.

    ary               an array
    to_end, to_begin  what is put after and before the differences

    >>> jnp.ediff1d(jnp.array([1, 4, 9])).tolist()
    [3, 5]
    """
    from lamina.numpy.joining import concatenate
    from lamina.numpy.manipulation import ravel

    flat = ravel(ary)
    if flat.dtype == np.bool_:
        raise TypeError(
            "ediff1d does not accept dtype bool: differences of booleans are not defined"
        )
    out = diff(flat)
    before, after = (
        [] if p is None else [astype_array(ravel(p), out.dtype)] for p in (to_begin, to_end)
    )
    return concatenate([*before, out, *after]) if before or after else out


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral of samples y, at positions x or dx apart, by the trapezoid rule.

    y     an array
    x     the positions of the samples, a vector or of y's shape
    dx    their distance without x: a number, a vector along the axis, or what broadcasts against y
    axis  the axis

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]))
    Array(4., dtype=float32)
    """
    from lamina.numpy.arithmetic import multiply
    from lamina.numpy.manipulation import moveaxis
    from lamina.numpy.reductions import sum as sum_

    check_arraylike("trapezoid", y)
    if x is None:
        (y,) = promote_args_inexact("trapezoid", y)
        width: Any = dx
        if np.ndim(dx) > 1:  # it broadcasts against y as y is given
            axes = range(len(y.shape) - np.ndim(dx))
            width = moveaxis(lax.expand_dims(asarray(dx), axes), axis, -1)
    else:
        y, x = promote_args_inexact("trapezoid", y, x)
        width = diff(x) if np.ndim(x) == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    y = moveaxis(y, axis, -1)
    n = y.shape[-1]
    last = len(y.shape) - 1
    pairs = lax.add(
        lax.slice_in_dim(y, min(1, n), n, axis=last),
        lax.slice_in_dim(y, 0, max(n - 1, 0), axis=last),
    )
    shape = broadcast_shapes(np.shape(width), pairs.shape)
    wide, pairs = (x if not np.ndim(x) else broadcast_to_shape(x, shape) for x in (width, pairs))
    return lax.mul(literal(y, 0.5), sum_(multiply(wide, pairs), -1))


@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int | None = None) -> Array: ...
@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None,
    edge_order: int | None = None) -> Any: ...
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None,
             edge_order: int | None = None) -> Any:  # fmt: skip
    """The derivative of samples by central differences, one-sided at the ends: an array for each
    axis, or one array for one axis.

    f           an array of at least two samples along each axis
    varargs     the distances or coordinates
    axis        an axis, several, or None for all
    edge_order  must be None

    varargs are the distances of samples (one for all axes, or one each) or their coordinates.

    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 1.5, 2.0]
    """
    if edge_order is not None:
        raise NotImplementedError(
            f"The 'edge_order' argument to {library}.numpy.gradient is not supported."
        )
    check_arraylike("gradient", f, *varargs)
    f, *spacings = (asarray(x) for x in promote_inexact(f, *varargs))
    axes = canonical_axes(axis, len(f.shape))
    if min([f.shape[i] for i in axes], default=2) < 2:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 "
                         "elements are required.")  # fmt: skip
    if len(spacings) == 1:
        spacings = spacings * len(axes)
        if spacings[0].shape and len(axes) != 1:
            raise TypeError("coordinates must be given for each axis")
    if len(spacings) not in (0, len(axes)):
        raise TypeError(f"Invalid number of spacing arguments {len(spacings)} for axis={axis}")
    for h, i in zip(spacings, axes, strict=False):
        if len(h.shape) > 1:
            raise ValueError("Spacing arrays must be 1D arrays or scalars.")
        if h.shape and h.shape[0] != f.shape[i]:
            raise ValueError("Spacing arrays must have the same length as the dimension along "
                             "which the gradient is calculated.")  # fmt: skip
    out = _gradient(f, spacings, axes=axes)
    return out[0] if len(axes) == 1 else out


@compiled(static=("axes",))
def _gradient(f: Any, spacings: list[Any], *, axes: tuple[int, ...]) -> list[Array]:
    return [_slope(f, spacings[k] if spacings else literal(f, 1), i) for k, i in enumerate(axes)]


def _slope(f: Any, h: Any, axis: int) -> Array:
    n = f.shape[axis]

    def part(start: int, stop: int) -> Array:
        return lax.slice_in_dim(f, start, stop, axis=axis)

    if not get_aval(h).shape:
        inner = lax.div(lax.sub(part(2, n), part(0, n - 2)), lax.mul(literal(f, 2), h))
        first, last = (lax.div(lax.sub(part(i + 1, i + 2), part(i, i + 1)), h) for i in (0, n - 2))
        return lax.concatenate([first, inner, last], axis)
    shape = tuple(-1 if i == axis else 1 for i in range(len(f.shape)))
    widths = diff(h)
    slopes = lax.div(lax.sub(part(1, n), part(0, n - 1)), _spread(widths, part(1, n).shape, shape))
    left, right = lax.slice(widths, (0,), (n - 2,)), lax.slice(widths, (1,), (n - 1,))
    inside = part(1, n - 1).shape
    # Each neighbour's slope counts by the width of the other side: exact for parabolas.
    total = lax.add(left, right)
    by_right = _spread(lax.div(left, total), inside, shape)
    by_left = _spread(lax.div(right, total), inside, shape)
    inner = lax.add(
        lax.mul(by_left, lax.slice_in_dim(slopes, 0, n - 2, axis=axis)),
        lax.mul(by_right, lax.slice_in_dim(slopes, 1, n - 1, axis=axis)),
    )
    ends = [lax.slice_in_dim(slopes, i, i + 1, axis=axis) for i in (0, n - 2)]
    return lax.concatenate([ends[0], inner, ends[1]], axis)


def _spread(h: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    return lax.broadcast_in_dim(h, shape, (dims.index(-1),))


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1,
           period: ArrayLike = 2 * np.pi) -> Array:  # fmt: skip
    """p with multiples of the period added so that neighbours differ by at most half of one, where
    they differ by more than discont (half a period).

    p        a real array
    discont  the greatest difference to leave
    axis     the axis
    period   of the values

    >>> jnp.unwrap(jnp.array([0, 3, 5, 1]), period=6).tolist()
    [0, 3, 5, 7]
    """
    check_arraylike("unwrap", p, period, *([] if discont is None else [discont]))
    x, period = promote_dtypes(asarray(p), period)
    at = canonical_axis(axis, len(x.shape))
    if not x.shape[at]:
        return asarray(x)
    return _unwrap(asarray(x), period, discont, axis=at)


@compiled(static=("axis",))
def _unwrap(x: Any, period: Any, discont: Any, *, axis: int) -> Array:
    from lamina.numpy.arithmetic import floor_divide, remainder
    from lamina.numpy.cumulative import cumsum

    if dtypes.is_integer(get_aval(x).dtype):
        half = floor_divide(period, 2)
        ambiguous: Any = lax.eq(remainder(period, 2), literal(period, 0))
    else:
        half, ambiguous = lax.div(period, literal(period, 2)), np.True_
    discont = half if discont is None else discont
    jump = diff(x, axis=axis)
    low = lax.neg(half)
    folded = lax.add(remainder(lax.sub(jump, low), period), low)
    # A jump of exactly half a period keeps its direction.
    up = lax.bitwise_and(lax.eq(folded, low), lax.gt(jump, literal(jump, 0)))
    folded = pick(lax.bitwise_and(ambiguous, up), half, folded)
    correction = lax.sub(folded, jump)
    from lamina.numpy.logic import less

    correction = pick(less(lax.abs(jump), discont), literal(correction, 0), correction)
    n = x.shape[axis]
    rest = lax.add(lax.slice_in_dim(x, 1, n, axis=axis), cumsum(correction, axis))
    return lax.concatenate([lax.slice_in_dim(x, 0, min(n, 1), axis=axis), rest], axis)
