"""Arrays made of others by stacking, taking apart, repeating: stack unstack tile broadcast_like
index_take. Each is a few primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes, get_aval
from lamina.core.array_class import Array
from lamina.lax.checks import canonical_axis, static_ints


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape as one array with a new axis, along which they lie."""
    operands = list(operands)
    if not operands:
        raise ValueError("[stack] needs at least one operand")
    axis = canonical_axis("stack", axis, len(np.shape(operands[0])) + 1)
    return lax.concatenate([lax.expand_dims(x, (axis,)) for x in operands], axis)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The arrays that lie along an axis, without it."""
    shape = np.shape(x)
    axis = canonical_axis("unstack", axis, len(shape))
    if not shape[axis]:
        return ()
    return tuple(lax.squeeze(part, (axis,)) for part in lax.split(x, (1,) * shape[axis], axis))


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """operand repeated as a whole, reps[i] times along axis i; one number for each axis."""
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
    """arr broadcast to the shape of like_arr by NumPy's rules."""
    shape, have = np.shape(like_arr), np.shape(arr)
    if np.broadcast_shapes(shape, have) != shape:
        raise ValueError(f"[broadcast_like] {have} does not broadcast to {shape}")
    return lax.broadcast_in_dim(
        lax.squeeze(arr, [d for d, n in enumerate(have) if n == 1 != shape[d - len(have)]]),
        shape,
        tuple(
            len(shape) - len(have) + d
            for d, n in enumerate(have)
            if n != 1 or shape[d - len(have)] == 1
        ),
    )


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """The parts of src at idxs along axes: for each i, where axis axes[j] is at idxs[j][i].
    Negative indices count from the end."""
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
    """A shape as a vector of integers."""
    return np.asarray(shape, dtypes.default_dtype(int)).reshape(-1)
