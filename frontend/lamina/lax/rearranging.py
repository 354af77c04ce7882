"""Arrays made of others by stacking, taking apart, repeating: stack unstack tile broadcast_like
index_take. Each is a few primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes, get_aval
from lamina.core.array_class import Array
from lamina.core.placed import undecided
from lamina.lax.checks import canonical_axis, static_ints


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape and dtype as one array with a new axis, along which they lie.

    operands  the arrays, one or more.
    axis      where in the result the new axis is; counted from the end where negative.

    Raises TypeError where shapes or dtypes differ; ValueError where there are no operands.

    >>> print(lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1))
    [[1 3]
     [2 4]]
    """
    operands = list(operands)
    if not operands:
        raise ValueError("[stack] needs at least one operand")
    axis = canonical_axis("stack", axis, len(np.shape(operands[0])) + 1)
    return lax.concatenate([lax.expand_dims(x, (axis,)) for x in operands], axis)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The arrays that lie along an axis, without it: a tuple.

    x     an array of one dimension or more.
    axis  counted from the end where negative.

    Raises ValueError where there is no such axis.

    >>> [part.tolist() for part in lax.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    shape = np.shape(x)
    axis = canonical_axis("unstack", axis, len(shape))
    if not shape[axis]:
        return ()
    return tuple(lax.squeeze(part, (axis,)) for part in lax.split(x, (1,) * shape[axis], axis))


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """operand repeated as a whole along its axes.

    operand  an array.
    reps     how often along each axis, 0 or more; one number for each.

    Raises ValueError where there is not one number for each axis or one is negative.

    >>> print(lax.tile(jnp.array([1, 2]), (3,)))
    [1 2 1 2 1 2]
    """
    shape = np.shape(operand)
    times = static_ints("tile", "reps", reps)
    if len(times) != len(shape):
        raise ValueError(f"[tile] needs a number for each axis of {shape}, got reps={times}")
    if any(n < 0 for n in times):
        raise ValueError(f"[tile] reps must not be negative, got {times}")
    pairs = [n for pair in zip(times, shape) for n in pair]
    places = tuple(range(1, 2 * len(shape), 2))
    out = lax.broadcast_in_dim(operand, pairs, places)
    return lax.reshape(out, [n * size for n, size in zip(times, shape)])


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """arr broadcast to the shape of like_arr by NumPy's rules, and split over devices as its type says; it keeps its
    dtype.

    arr       an array or a number.
    like_arr  an array or a type, of which only the shape and the sharding are looked at.

    Raises ValueError where arr's shape does not broadcast to like_arr's, or its type says another sharding.

    >>> print(lax.broadcast_like(jnp.array([1, 2]), jnp.ones((3, 2))))
    [[1 2]
     [1 2]
     [1 2]]
    """
    shape, have = np.shape(like_arr), np.shape(arr)
    if np.broadcast_shapes(shape, have) != shape:
        raise ValueError(f"[broadcast_like] {have} does not broadcast to {shape}")
    kept = [d for d, n in enumerate(have) if n != 1 or shape[d - len(have)] == 1]
    to = {d: len(shape) - len(have) + d for d in kept}
    placed, mine = lax.placed_of(like_arr), lax.placed_of(arr)
    if placed is not None and mine is not None:
        for d, at in to.items():
            if mine.dims[d] and mine.dims[d] != placed.dims[at]:
                raise ValueError(
                    f"Incompatible shardings for broadcasting: dimension {d} of the operand lies over {mine.dims[d]}, "
                    f"dimension {at} of the other array over {placed.dims[at]}"
                )
    source = lax.squeeze(arr, [d for d in range(len(have)) if d not in to])
    with undecided(placed is not None):
        out = lax.broadcast_in_dim(source, shape, tuple(to.values()))
    return out if placed is None else lax.as_typed(out, get_aval(out).update(placed=placed))


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """The parts of src at pairs (triples, ...) of indices along some axes, stacked along a leading
    axis.

    src   an array.
    idxs  for each of the axes a vector of indices, all of one length n, which go round: index i is
          i modulo the axis' size.
    axes  of src, one for each vector. The result has shape (n, *the other axes).

    >>> src = jnp.array([[1, 2, 3], [4, 5, 6]])
    >>> print(lax.index_take(src, [jnp.array([0, 1]), jnp.array([2, -3])], (0, 1)))
    [3 4]
    """
    shape = np.shape(src)
    indices = lax.concatenate([lax.expand_dims(i, (1,)) for i in idxs], 1)
    dtype = get_aval(indices).dtype
    sizes = np.array([shape[axis] for axis in axes], dtype)
    spread = lax.broadcast_in_dim(sizes, indices.shape, (1,))
    rest = lax.rem(indices, spread)
    below = lax.lt(rest, dtype.type(0))
    indices = lax.select(below, lax.add(rest, spread), rest)
    kept = tuple(d for d in range(len(shape)) if d not in axes)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(kept) + 1)),
        collapsed_slice_dims=tuple(axes),
        start_index_map=tuple(axes),
    )
    return lax.gather(src, indices, numbers, [1 if d in axes else n for d, n in enumerate(shape)])


def shape_as_value(shape: Sequence[int]) -> Any:
    """A shape as a vector of int32, which a program can compute with.

    shape  a tuple of ints.

    >>> print(lax.shape_as_value((2, 3)))
    [2 3]
    """
    return np.asarray(shape, dtypes.default_dtype(int)).reshape(-1)
