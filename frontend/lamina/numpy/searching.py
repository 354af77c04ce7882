"""Searching: nonzero argwhere flatnonzero searchsorted digitize interp unravel_index.

What has as many elements as the values say needs a concrete array, or `size=` for the number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape, asarray, astype_array
from lamina.numpy.logic import truth
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    check_arraylike,
    concrete_or_error,
    convert,
    literal,
    pick,
    promote_dtypes,
    promote_inexact,
    requested_dtype,
)  # fmt: skip
from lamina.numpy.type_functions import result_type


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """For each axis the indices of the nonzero elements.

    a           an array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    With size there are that many, cut off or filled up with fill_value (0; or one for each axis).

    >>> [i.tolist() for i in jnp.nonzero(jnp.array([0, 5, 0, 7]))]
    [[1, 3]]
    """
    check_arraylike("nonzero", a)
    x = truth(asarray(a))
    if not x.shape:
        raise ValueError(f"Calling nonzero on 0d arrays is not allowed. Use {library}.numpy.atleast_1d "
                         "before.")  # fmt: skip
    to = dtypes.canonicalize(np.int64)
    if size is None:
        known = concrete_or_error(
            x, f"The size argument of {library}.numpy.nonzero must be statically specified to use "
               f"{library}.numpy.nonzero within transformations.",
        )  # fmt: skip
        return tuple(asarray(i.astype(to)) for i in known.nonzero())
    size = operator.index(concrete_or_error(size, "the size of nonzero must be known")[()])
    if fill_value is None:
        fills: tuple[Any, ...] = (0,) * len(x.shape)
    elif isinstance(fill_value, tuple):
        if len(fill_value) != len(x.shape):
            raise ValueError(
                f"{library}.numpy.nonzero: fill_value must have one entry for each axis, got "
                f"{fill_value} for shape {x.shape}"
            )
        fills = fill_value
    else:
        fills = (fill_value,) * len(x.shape)
    return tuple(_nonzero(x, [convert(f, to) for f in fills], size=size, dtype=to))


@compiled(static=("size", "dtype"))
def _nonzero(mask: Any, fills: list[Any], *, size: int, dtype: np.dtype) -> list[Array]:
    shape, n = mask.shape, math.prod(mask.shape)
    if n == 0 or size == 0:
        return [broadcast_to_shape(asarray(f), (size,)) for f in fills]
    flat = lax.reshape(mask, (n,))
    # The k-th nonzero element lies where the running count passes k.
    running = lax.cumsum(lax.convert_element_type(flat, dtype), 0)
    target = lax.iota(dtype, size)
    position = _search(running, target, side="right")
    found = lax.lt(target, lax.index_in_dim(running, n - 1, keepdims=False))
    position = lax.convert_element_type(position, dtype)
    out = []
    for axis, fill in enumerate(fills):
        stride = math.prod(shape[axis + 1 :])
        index = lax.rem(
            lax.div(position, literal(position, max(stride, 1))), literal(position, shape[axis])
        )
        out.append(pick(found, index, fill))
    return out


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the nonzero elements of the flattened array.

    a           an array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.flatnonzero(jnp.array([[0, 5], [0, 7]])).tolist()
    [1, 3]
    """
    check_arraylike("flatnonzero", a)
    x = asarray(a)
    return nonzero(lax.reshape(x, (x.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the nonzero elements, one a row.

    a           an array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.argwhere(jnp.array([[0, 5], [0, 7]])).tolist()
    [[0, 1], [1, 1]]
    """
    from lamina.numpy.joining import stack

    check_arraylike("argwhere", a)
    x = asarray(a)
    if not x.shape:
        count = len(flatnonzero(x)) if size is None else size
        return lax.full((count, 0), 0, dtypes.canonicalize(np.int64))
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: Any = 0
) -> Array:
    """The elements of the flattened arr where the flattened condition holds.

    condition   an array, of which being nonzero counts
    arr         an array of as many elements
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3])).tolist()
    [1, 3]
    """
    from lamina.numpy.indexing import take

    check_arraylike("extract", condition, arr)
    flat = lax.reshape(asarray(arr), (asarray(arr).size,))
    at = flatnonzero(condition, size=size, fill_value=flat.size)
    return take(flat, at, mode="fill", fill_value=fill_value)


# ---- sorted arrays -----------------------------------------------------------------------------
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                 method: str = "scan") -> Array:  # fmt: skip
    """Where in the sorted vector a to put each of v to keep it sorted: before equals, or behind
    them with side="right", as int32. NaN lies behind all numbers. `method` is accepted for JAX's sake.

    a       a vector in ascending order
    v       values of any shape
    side    "left" or "right"
    sorter  indices that sort a, where it is not sorted
    method  "scan", "scan_unrolled", "sort" or "compare_all"

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([3, 4])).tolist()
    [1, 2]
    """
    check_arraylike("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(
            f"{side!r} is an invalid value for keyword 'side'. Expected one of ['left', 'right']."
        )
    if method not in ("scan", "scan_unrolled", "sort", "compare_all", "default"):
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'.")
    if sorter is not None:
        from lamina.numpy.indexing import take

        a = take(a, sorter)
    a, v = (asarray(x) for x in promote_dtypes(a, v))
    if len(a.shape) != 1:
        raise ValueError("a should be 1-dimensional")
    return _search(a, v, side=side)


@compiled(static=("side",))
def _search(a: Any, v: Any, *, side: str) -> Array:
    """Binary search, all values of v at once: log2(n) + 1 unrolled steps, each one gather."""
    from lamina.numpy.indexing import take

    n = a.shape[0]
    low = lax.full(v.shape, 0, np.dtype(np.int32))
    if n == 0:
        return low
    high = lax.full(v.shape, n, np.dtype(np.int32))
    one = np.int32(1)
    for _ in range(n.bit_length()):
        middle = lax.shift_right_logical(lax.add(low, high), one)
        value = take(a, middle, mode="clip")
        goes_right = _before(value, v, or_equal=side == "right")
        open_ = lax.lt(low, high)
        low = lax.select(lax.bitwise_and(open_, goes_right), lax.add(middle, one), low)
        high = lax.select(lax.bitwise_and(open_, lax.bitwise_not(goes_right)), middle, high)
    return low


def _before(x: Any, y: Any, *, or_equal: bool) -> Array:
    """Whether x sorts before y, or with it; NaN sorts last."""
    from lamina.numpy.logic import less, less_equal

    out = less_equal(x, y) if or_equal else less(x, y)
    if not dtypes.is_inexact(x.dtype):
        return out
    x_nan, y_nan = lax.ne(x, x), lax.ne(y, y)
    return pick(y_nan, lax.full(x.shape, True) if or_equal else lax.bitwise_not(x_nan), out)


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The bin that each value lies in; bins ascend or descend.

    x       values of any shape
    bins    a vector of edges
    right   whether a bin has its right edge rather than its left
    method  as for searchsorted

    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([0, 1, 2])).tolist()
    [1, 3]
    """
    check_arraylike("digitize", x, bins)
    edges = asarray(bins)
    if len(edges.shape) != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins}")
    if edges.shape[0] == 0:
        return lax.full(asarray(x).shape, 0, np.dtype(np.int32))
    side = "right" if not right else "left"
    n = edges.shape[0]
    descending = lax.lt(
        lax.index_in_dim(edges, n - 1, keepdims=False), lax.index_in_dim(edges, 0, keepdims=False)
    )
    up = searchsorted(edges, x, side)
    down = lax.sub(literal(up, n), searchsorted(lax.rev(edges, (0,)), x, side))
    return pick(descending, down, up)


def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: Any = None, right: Any = None,
           period: ArrayLike | None = None) -> Array:  # fmt: skip
    """The piecewise linear function through (xp, fp) at x; fp's ends outside, or left and right.

    x            where to evaluate
    xp, fp       vectors of one size, the points
    left, right  the values outside
    period       of xp, where the function is periodic

    left and right may be "extrapolate". xp must ascend; with a period it need not.

    >>> jnp.interp(1.5, jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0]))
    Array(15., dtype=float32)
    """
    x, xp, fp = check_arraylike("interp", x, xp, fp)
    if np.ndim(xp) != 1 or np.shape(xp) != np.shape(fp):
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    x, xp = promote_inexact(x, xp)
    (fp,) = promote_inexact(fp)
    dtype = get_aval(x).dtype
    if dtypes.is_complex(dtype):
        raise ValueError(f"interp: x and xp must be real, got {dtype.name}")
    if period is not None and np.ndim(period) != 0:
        raise ValueError(f"interp: period must be a scalar, got an array of shape {np.shape(period)}")
    extra = {
        k: v
        for k, v in (("left", left), ("right", right))
        if v is not None and not isinstance(v, str)
    }
    ends = isinstance(left, str), isinstance(right, str)
    if any(isinstance(v, str) and v != "extrapolate" for v in (left, right)):
        raise ValueError(
            f"the only valid string value of `left` and `right` is 'extrapolate', got {left!r}, "
            f"{right!r}"
        )
    return _interp(
        asarray(x),
        asarray(xp),
        asarray(fp),
        extra.get("left"),
        extra.get("right"),
        period,
        extrapolate=ends,
    )


@compiled(static=("extrapolate",))
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, *,
            extrapolate: tuple[bool, bool]) -> Array:  # fmt: skip
    from lamina.numpy.arithmetic import absolute, add, multiply, remainder
    from lamina.numpy.indexing import take
    from lamina.numpy.selection import where

    if period is not None:
        period = absolute(convert(period, x.dtype))
        x, xp = remainder(x, period), remainder(xp, period)
        xp, fp = lax.sort((xp, fp), 0)
        n = xp.shape[0]
        ends = [lax.slice(v, (i,), (i + 1,)) for v in (xp, fp) for i in (n - 1, 0)]
        xp = lax.concatenate([lax.sub(ends[0], period), xp, lax.add(ends[1], period)], 0)
        fp = lax.concatenate([ends[2], fp, ends[3]], 0)
    n = xp.shape[0]
    at = lax.clamp(np.int32(1), _search(xp, x, side="right"), np.int32(max(n - 1, 1)))
    before = lax.sub(at, np.int32(1))
    x0, x1, f0, f1 = (
        take(v, i, mode="clip") for v, i in ((xp, before), (xp, at), (fp, before), (fp, at))
    )
    gap = lax.sub(x1, x0)
    distance = lax.sub(x, x0)
    tiny = lax.le(lax.abs(gap), literal(gap, np.spacing(np.finfo(gap.dtype).eps)))
    part = lax.div(distance, pick(tiny, literal(gap, 1), gap))
    out = where(tiny, f0, add(f0, multiply(part, lax.sub(f1, f0))))
    if period is None:
        first, last = (lax.index_in_dim(xp, i, keepdims=False) for i in (0, n - 1))
        for outside, value, end, free in (
            (lax.lt(x, first), left, 0, extrapolate[0]),
            (lax.gt(x, last), right, n - 1, extrapolate[1]),
        ):
            if not free:
                edge = lax.index_in_dim(fp, end, keepdims=False) if value is None else value
                out = where(outside, edge, out)
    return out


# ---- flat indices ------------------------------------------------------------------------------
def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """For each axis the index of what flat indices name; those out of range are clamped.

    indices  integers
    shape    the shape of the array that they index: ints, or traced integers

    >>> [i.tolist() for i in jnp.unravel_index(jnp.array([0, 5]), (2, 3))]
    [[0, 1], [0, 2]]
    """
    check_arraylike("unravel_index", indices)
    index = asarray(indices)
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if any(isinstance(d, Tracer) and d.concrete() is None and not d.shape for d in sizes):
        return _unravel_traced(index, sizes)
    dims = as_shape(shape)
    total = math.prod(dims)
    n = literal(index, total)
    index = lax.select(lax.lt(index, literal(index, 0)), lax.add(index, n), index) if (
        dtypes.is_signed(index.dtype)) else index  # fmt: skip
    index = lax.clamp(literal(index, 0), index, literal(index, max(total - 1, 0)))
    out = []
    for size in reversed(dims):
        out.append(lax.rem(index, literal(index, max(size, 1))))
        index = lax.div(index, literal(index, max(size, 1)))
    return tuple(reversed(out))


def _unravel_traced(index: Array, sizes: tuple[Any, ...]) -> tuple[Array, ...]:
    from lamina.numpy.arithmetic import divmod as divmod_
    from lamina.numpy.logic import greater, less

    places: list[Array] = []
    for size in reversed(sizes):
        index, place = divmod_(index, size)
        places.insert(0, place)
    # What is left is 0 in range, and -1 where a negative index counts from the end.
    above = greater(index, 0)
    below = less(index, -1) if dtypes.is_signed(index.dtype) else np.False_
    last = (asarray(size).astype(p.dtype) - 1 for p, size in zip(places, sizes, strict=True))
    return tuple(
        pick(above, end, pick(below, literal(p, 0), p)) for p, end in zip(places, last, strict=True)
    )


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise",
                      order: str = "C", *, dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """The flat index of what an index for each axis names. mode "raise" needs concrete indices.

    multi_index  integers for each axis
    dims         the shape of the array that they index
    mode         "raise", "clip", "wrap", or "ignore" where all are known to be in range
    order        "C" or "F"
    dtype        of the result, by default that to which the indices promote

    Raises ValueError where the dtype is no integer's or too narrow, or an index is out of range.

    >>> jnp.ravel_multi_index((jnp.array([1]), jnp.array([2])), (2, 3)).tolist()
    [5]
    """
    from lamina.numpy.arithmetic import add, multiply, remainder

    if len(multi_index) != len(tuple(dims)):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(tuple(dims))}")
    check_arraylike("ravel_multi_index", *multi_index)
    sizes = as_shape(tuple(dims))
    given = [asarray(i) for i in multi_index]
    to = requested_dtype(dtype, "ravel_multi_index", keep=result_type(int, *given))
    if not dtypes.is_integer(to):
        raise ValueError(f"ravel_multi_index: indices are integers, got dtype {to}")
    if math.prod(sizes) - 1 > np.iinfo(to).max:
        raise ValueError(
            f"ravel_multi_index: {to} can't hold the indices of an array of shape {sizes}: give a "
            "dtype that can"
        )
    if mode == "raise":
        for i, n in zip(given, sizes, strict=True):
            known = concrete_or_error(
                i,
                "The error occurred in ravel_multi_index with mode='raise'; use "
                "mode='wrap' or mode='clip'.",
            )
            if known.size and (known.min() < 0 or known.max() >= n):
                raise ValueError("invalid entry in coordinates array")
    elif mode == "clip":
        given = [
            lax.clamp(literal(i, 0), i, literal(i, n - 1))
            for i, n in zip(given, sizes, strict=True)
        ]
    elif mode == "wrap":
        given = [remainder(i, literal(i, n)) for i, n in zip(given, sizes, strict=True)]
    elif mode != "ignore":
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if order == "F":
        sizes, given = sizes[::-1], given[::-1]
    out: Any = np.zeros((), to)
    for i, n in zip(given, sizes, strict=True):
        out = add(multiply(out, np.asarray(n).astype(to)), astype_array(i, to))
    return asarray(out)
