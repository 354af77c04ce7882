"""Arrays with elements taken out or put in: insert delete resize trim_zeros compress; and the
indices of parts of matrices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval
from lamina.lax.checks import position_dtype
from lamina.lax.convert import convert as convert_weakly
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape, asarray
from lamina.numpy.indexing import getitem, take
from lamina.numpy.logic import truth
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    convert,
    refuse_out,
)  # fmt: skip


def along(x: Array, axis: int | None) -> tuple[Array, int]:
    """x and its axis; without one the flattened x."""
    if axis is None:
        return lax.reshape(x, (x.size,)), 0
    if not x.shape:
        return lax.reshape(x, (1,)), 0
    return x, canonical_axis(axis, len(x.shape))


# ---- out and in --------------------------------------------------------------------------------
def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:  # fmt: skip
    """arr without the slices that obj (an integer, a slice, integers or a mask) names.

    arr   an array
    obj   what to leave out
    axis  the axis; None: of the flattened array

    A traced obj must be an array of integers of which assume_unique_indices promises that no two
    name the same slice. IndexError or ValueError for static indices out of bounds.

    >>> jnp.delete(jnp.array([1, 2, 3]), 1).tolist()
    [1, 3]
    """
    if isinstance(obj, slice):
        (arr,) = check_arraylike("delete", arr)
    else:
        arr, obj = check_arraylike("delete", arr, obj)
    x, at = along(asarray(arr), axis)
    n = x.shape[at]
    if axis is not None and not np.ndim(arr):
        raise ValueError(f"axis {axis} is out of bounds for array of dimension 0")
    if isinstance(obj, slice):
        gone = np.zeros(n, bool)
        gone[obj] = True
        return _kept(x, np.flatnonzero(~gone), at)
    aval = get_aval(obj)
    if aval.dtype == np.bool_ and aval.shape not in ((n,), (1,)):
        raise ValueError(f"{library}.numpy.delete(arr, obj): for boolean indices, obj must be one-"
                         f"dimensional with length matching specified axis, got {aval.shape}")  # fmt: skip
    if assume_unique_indices and dtypes.is_integer(aval.dtype):
        count = math.prod(aval.shape)
        if count == 0:
            return x
        return _delete_unique(x, asarray(obj), axis=at)
    known = concrete_or_error(obj, f"'obj' array argument of {library}.numpy.delete(): pass "
                                   "assume_unique_indices=True for a traced one")  # fmt: skip
    if not (dtypes.is_integer(aval.dtype) or aval.dtype == np.bool_):
        raise ValueError(f"np.delete(arr, obj): for integer arrays, obj got {aval.dtype.name}")
    if known.ndim == 0 and not -n <= int(known) < n:
        raise ValueError(f"axis {int(known)} is out of bounds for array of dimension {n}")
    return _kept(x, np.delete(np.arange(n), known), at)


def _kept(x: Array, positions: np.ndarray, axis: int) -> Array:
    """The slices at some positions, from the first to the last."""
    index = positions.astype(position_dtype(x.shape[axis]))
    return getitem(x, (*(slice(None),) * axis, index), mode="promise_in_bounds",
                   indices_are_sorted=True, unique_indices=True)  # fmt: skip


@compiled(static=("axis",))
def _delete_unique(x: Any, index: Any, *, axis: int) -> Array:
    from lamina.numpy.indexing import normalized
    from lamina.numpy.reductions import sum as sum_

    n = x.shape[axis]
    flat = lax.reshape(index, (math.prod(index.shape),))
    places = lax.sort(normalized(flat, n, np.dtype(np.int32)), dimension=0)
    count = places.shape[0]
    # Result j comes from behind all removed slices k with place[k] - k <= j.
    lowered = lax.sub(places, lax.iota(np.int32, count))
    j = lax.iota(np.int32, max(n - count, 0))
    behind = lax.le(lax.expand_dims(lowered, (0,)), lax.expand_dims(j, (1,)))
    return take(x, lax.add(j, sum_(behind, 1, dtype=np.int32)), axis, mode="clip")


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """arr with values put in before the positions obj (an integer, a slice or integers, all counted
    in arr; those out of bounds are moved to the ends).

    arr     an array
    obj     positions
    values  what is put in, broadcast to its place
    axis    the axis; None: of the flattened array

    >>> jnp.insert(jnp.array([1, 3]), 1, 2).tolist()
    [1, 2, 3]
    """
    if isinstance(obj, slice):
        check_arraylike("insert", arr, 0, values)
    else:
        check_arraylike("insert", arr, obj, values)
    x = asarray(arr)
    if axis is not None:
        canonical_axis(axis, len(x.shape))
    x, at = along(x, axis)
    n = x.shape[at]
    v = convert(asarray(values), x.dtype)
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n), dtype=np.int32)
    if get_aval(obj).dtype == np.bool_:
        obj = np.flatnonzero(concrete_or_error(obj, f"'obj' mask of {library}.numpy.insert"))
        obj = obj.astype(np.int32)
    index = asarray(obj)
    if not dtypes.is_integer(index.dtype):
        raise IndexError(f"insert: obj must be of integer type, got {index.dtype.name}")
    scalar = not index.shape
    if not scalar:
        index = lax.reshape(index, (index.size,))
    elif v.shape:
        # As in NumPy: for a scalar position the first axis of values goes along `axis`.
        v = asarray(v)
        if len(v.shape) < len(x.shape):
            v = lax.reshape(v, (1,) * (len(x.shape) - len(v.shape)) + tuple(v.shape))
        order = [*range(1, at + 1), 0, *range(at + 1, len(v.shape))]
        v = lax.transpose(v, order) if axis is not None else v
    count = index.size
    if scalar:
        count = v.shape[at] if len(np.shape(v)) == len(x.shape) else 1
    v = broadcast_to_shape(v, tuple(count if i == at else s for i, s in enumerate(x.shape)))
    out = (_insert_together if scalar else _insert)(x, index, v, axis=at)
    return convert_weakly(out, out.dtype, True) if get_aval(x).weak_type else out


@compiled(static=("axis",))
def _insert_together(x: Any, index: Any, values: Any, *, axis: int) -> Array:
    from lamina.numpy.indexing import normalized

    n, count = x.shape[axis], values.shape[axis]
    place = lax.clamp(np.int32(0), normalized(index, n, np.dtype(np.int32)), np.int32(n))

    def moved(low: int) -> Array:
        edges = [(low, count - low, 0) if d == axis else (0, 0, 0) for d in range(len(x.shape))]
        return lax.pad(x, np.zeros((), x.dtype), edges)

    shape = tuple(n + count if d == axis else s for d, s in enumerate(x.shape))
    at = lax.broadcasted_iota(np.int32, shape, axis)
    spread = lax.select(lax.lt(at, place), moved(0), moved(count))
    if count == 1:
        return lax.select(lax.eq(at, place), broadcast_to_shape(values, shape), spread)
    return lax.dynamic_update_slice_in_dim(spread, values, place, axis)


@compiled(static=("axis",))
def _insert(x: Any, index: Any, values: Any, *, axis: int) -> Array:
    from lamina.numpy.indexing import normalized
    from lamina.numpy.sorting import argsort

    n, count = x.shape[axis], index.shape[0]
    index = normalized(index, n, np.dtype(np.int32))
    index = lax.clamp(np.int32(0), index, np.int32(n))
    order = argsort(index, dtype=np.int32)
    ranks = lax.iota(np.int32, count)
    # The k-th in order of position moves k further, past those before it.
    at = lax.add(index[order], ranks)
    source = lax.full((n + count,), 0, np.int32).at[at].set(lax.add(order, np.int32(n + 1)))
    # Positions that nothing was put into take the elements of x in order.
    own = lax.eq(source, np.int32(0))
    running = lax.cumsum(lax.convert_element_type(own, np.int32), 0)
    source = lax.select(own, lax.sub(running, np.int32(1)), lax.sub(source, np.int32(1)))
    return take(lax.concatenate([x, values], axis), source, axis, mode="clip")


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements of a, repeated as often as needed, in another shape; zeros if a has none.

    a          an array
    new_shape  a tuple of ints

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    check_arraylike("resize", a)
    x = asarray(a)
    shape = as_shape(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size = math.prod(shape)
    if x.size == 0 or size == 0:
        return lax.full(shape, 0, x.dtype)
    return resized(x, shape=shape)


@compiled(static=("shape",))
def resized(x: Any, *, shape: tuple[int, ...]) -> Array:
    from lamina.numpy.rearranging import tile

    size = math.prod(shape)
    flat = tile(lax.reshape(x, (x.size,)), -(-size // x.size))
    return lax.reshape(lax.slice(flat, (0,), (size,)), shape)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Array:
    """filt, which must not be traced, without the zeros at the front ("f") and back ("b") of the
    axes named (all).

    filt  an array
    trim  "f", "b" or "fb"
    axis  an axis, several, or None for all

    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    check_arraylike("trim_zeros", filt)
    x = asarray(filt)
    known = concrete_or_error(x, "Error arose in the `filt` argument of trim_zeros()")
    axes = canonical_axes(axis, len(x.shape))
    starts, limits = [0] * len(x.shape), list(x.shape)
    for i in axes:
        others = tuple(j for j in range(known.ndim) if j != i)
        places = np.flatnonzero((known != 0).any(axis=others))
        if "f" in trim:
            starts[i] = int(places[0]) if places.size else x.shape[i]
        if "b" in trim:
            limits[i] = int(places[-1]) + 1 if places.size else starts[i]
    return lax.slice(x, starts, [max(s, n) for s, n in zip(starts, limits, strict=True)])


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *,
             size: int | None = None, fill_value: ArrayLike = 0, out: None = None) -> Array:  # fmt: skip
    """The slices of a for which the vector condition holds.

    condition   a vector of booleans
    a           an array
    axis        the axis; None: of the flattened array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size
    out         must be None: arrays cannot be written to

    A traced condition needs size, the number of slices, filled up with fill_value.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3])).tolist()
    [1, 3]
    """
    from lamina.numpy.searching import flatnonzero

    refuse_out("compress", out)
    check_arraylike("compress", condition, a, fill_value)
    mask = truth(asarray(condition))
    if len(mask.shape) != 1:
        raise ValueError("condition must be a 1D array")
    x, at = along(asarray(a), axis)
    n = x.shape[at]
    if mask.shape[0] > n:
        if not isinstance(mask, Tracer) and np.asarray(mask)[n:].any():
            raise ValueError("condition contains entries that are out of bounds")
        mask = lax.slice(mask, (0,), (n,))
    if size is None:
        return take(x, flatnonzero(mask), at, mode="clip")
    # Where nothing is left the index lies behind the axis, and take fills.
    index = flatnonzero(mask, size=size, fill_value=n)
    found = lax.lt(index, np.asarray(n).astype(index.dtype)[()])
    shape = tuple(size if i == at else s for i, s in enumerate(x.shape))
    taken = take(x, index, at, mode="clip")
    fill = broadcast_to_shape(convert(fill_value, x.dtype), shape)
    return lax.select(lax.broadcast_in_dim(found, shape, (at,)), taken, fill)


# ---- indices of parts --------------------------------------------------------------------------
def mask_indices(n: int, mask_func: Any, k: int = 0, *, size: int | None = None) -> tuple[Array, Array]:  # fmt: skip
    """The indices of the elements of an n x n matrix that mask_func(ones, k) leaves nonzero.

    n          the size
    mask_func  a function such as triu
    k          its second argument
    size       how many results there are; needed where the values are traced

    >>> [i.tolist() for i in jnp.mask_indices(2, jnp.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    from lamina.numpy.creation import ones
    from lamina.numpy.searching import nonzero

    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of arr, whose axes must be equally long.

    arr  an array of two axes or more

    >>> [i.tolist() for i in jnp.diag_indices_from(jnp.zeros((2, 2)))]
    [[0, 1], [0, 1]]
    """
    from lamina.numpy.diagonals import diag_indices

    check_arraylike("diag_indices_from", arr)
    shape = get_aval(arr).shape
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], ndim=len(shape))


def _matrix_shape(arr: Any) -> tuple[int, int]:
    shape = tuple(arr.shape if hasattr(arr, "shape") else get_aval(arr).shape)
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape  # type: ignore[return-value]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix of arr's shape.

    arr  a matrix; ValueError of other arrays
    k    which diagonal: 0 the main one, above it positive, below it negative

    >>> [i.tolist() for i in jnp.tril_indices_from(jnp.zeros((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    from lamina.numpy.diagonals import tril_indices

    rows, columns = _matrix_shape(arr)
    return tril_indices(rows, operator.index(k), columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix of arr's shape.

    arr  a matrix; ValueError of other arrays
    k    which diagonal: 0 the main one, above it positive, below it negative

    >>> [i.tolist() for i in jnp.triu_indices_from(jnp.zeros((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    from lamina.numpy.diagonals import triu_indices

    rows, columns = _matrix_shape(arr)
    return triu_indices(rows, operator.index(k), columns)
