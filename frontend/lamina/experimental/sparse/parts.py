"""Parts of a BCOO: what `lax.gather` and an index expression read."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

import lamina
from lamina import lax
from lamina import numpy as jnp
from lamina.core.trace import is_array_like
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.layouts import as_sparse
from lamina.experimental.sparse.operations import (
    bcoo_broadcast_in_dim,
    bcoo_dynamic_slice,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from lamina.lax.indexing import GatherScatterMode

__all__ = ["bcoo_gather", "part"]


def bcoo_gather(
    operand: BCOO, start_indices: Any, dimension_numbers: Any, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None,
) -> BCOO:  # fmt: skip
    """`lax.gather` from a BCOO: for each start index a window of it. The result has a value for each window and value,
    and sparse axes alone.

    operand            the BCOO.
    start_indices      integers (..., k), where windows begin,
    dimension_numbers  and along which axes: a lax.GatherDimensionNumbers.
    slice_sizes        of a window.
    unique_indices, indices_are_sorted  without effect.
    mode               None or "promise_in_bounds": windows are within bounds; "clip": they are moved there.
    fill_value         None.

    Raises NotImplementedError for other modes and for batching dimensions, TypeError where numbers don't fit.

    >>> sparse = lamina.experimental.sparse
    >>> numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> print(sparse.bcoo_gather(sparse.eye(3), jnp.array([[2], [0]]), numbers, (1, 3)).todense())
    [[0. 0. 1.]
     [1. 0. 0.]]
    """
    operand = as_sparse(operand)
    known = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if known not in (GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP):
        raise NotImplementedError(f"bcoo_gather: mode {mode!r}: promise_in_bounds and clip only")
    numbers = dimension_numbers
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather: batching dimensions are not supported")
    start_indices, sizes = jnp.asarray(start_indices), tuple(slice_sizes)
    dense = lamina.ShapeDtypeStruct(operand.shape, operand.dtype)
    shape = lamina.eval_shape(lambda x, i: lax.gather(x, i, numbers, sizes), dense, start_indices).shape

    batch = start_indices.shape[:-1]
    windows = start_indices.reshape(-1, start_indices.shape[-1])
    room = np.array(operand.shape, np.int32) - np.array(sizes, np.int32)
    starts = jnp.zeros((prod(batch), operand.ndim), operand.indices.dtype)
    starts = starts.at[:, np.array(numbers.start_index_map, int)].set(windows.astype(starts.dtype))
    distances = operand.indices[None] - jnp.clip(starts, 0, room)[:, None]
    is_in_window = ((distances >= 0) & (distances < np.array(sizes, np.int32))).all(axis=-1)
    is_in_window &= operand.places().inside()

    kept = [d for d in range(operand.ndim) if d not in numbers.collapsed_slice_dims]
    columns = {at: distances[..., d] for at, d in zip(numbers.offset_dims, kept, strict=True)}
    of_batch = [at for at in range(len(shape)) if at not in columns]
    for at, numbering in zip(of_batch, np.indices(batch, starts.dtype).reshape(len(batch), -1), strict=True):
        columns[at] = jnp.broadcast_to(numbering[:, None], is_in_window.shape)
    if not shape:
        places = jnp.where(is_in_window.reshape(-1, 1), 0, 1)[:, :0]
    else:
        found = jnp.stack([columns[at] for at in range(len(shape))], axis=-1)
        places = jnp.where(is_in_window[..., None], found, np.array(shape, found.dtype)).reshape(-1, len(shape))
    data = jnp.where(is_in_window, operand.data, 0).reshape(-1)
    return BCOO((data, places), shape=shape)


def part(mat: BCOO, index: Any) -> BCOO:
    """mat[index]: of integers, slices, ..., None, and one array of integers beside slices."""
    items = list(index) if isinstance(index, tuple) else [index]
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    missing = mat.ndim - sum(i is not None and i is not Ellipsis for i in items)
    if missing < 0:
        raise IndexError(f"Too many indices: {mat.ndim}-dimensional array indexed with {mat.ndim - missing}")
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * missing

    starts, limits, steps = [0] * mat.ndim, list(mat.shape), [1] * mat.ndim
    places: dict[int, Any] = {}  # traced integers and index arrays
    taken, turned, added, axis, position = [], [], [], 0, 0
    for item in items:
        if item is None:
            added.append(position)
            position += 1
            continue
        size = mat.shape[axis]
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            count = len(range(start, stop, step))
            last = start + (count - 1) * step
            starts[axis], limits[axis] = (min(start, last), max(start, last) + 1) if count else (0, 0)
            steps[axis] = abs(step)
            if step < 0:
                turned.append(axis)
            position += 1
        elif isinstance(item, (int, np.integer)) and not isinstance(item, bool):
            first = item + size if item < 0 else item
            if not 0 <= first < size:
                raise IndexError(f"index {item} is out of bounds for axis {axis} with size {size}")
            starts[axis], limits[axis] = int(first), int(first) + 1
            taken.append(axis)
        else:
            places[axis] = item = _integers(item)
            if item.ndim:
                position += item.ndim
            else:
                taken.append(axis)
        axis += 1
    arrays = {a: i for a, i in places.items() if i.ndim}
    if len(arrays) > 1 or (arrays and taken):
        raise NotImplementedError("an index array of a BCOO stands beside slices only: take todense() of it")

    found = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=steps)
    found = bcoo_rev(found, turned) if turned else found
    if places and not arrays:
        sizes = [1 if a in places else n for a, n in enumerate(found.shape)]
        found = bcoo_dynamic_slice(found, [places.get(a, 0) for a in range(found.ndim)], sizes)
    for a, indices in arrays.items():
        wrapped = jnp.where(indices < 0, indices + found.shape[a], indices)
        after = range(a + indices.ndim, found.ndim - 1 + indices.ndim)
        numbers = lax.GatherDimensionNumbers((*range(a), *after), (a,), (a,))
        sizes = [1 if d == a else n for d, n in enumerate(found.shape)]
        found = bcoo_gather(found, wrapped[..., None], numbers, sizes, mode="clip")
    found = bcoo_squeeze(found, dimensions=taken) if taken else found
    if not added:
        return found
    shape = iter(found.shape)
    new = tuple(1 if d in added else next(shape) for d in range(found.ndim + len(added)))
    kept = [d for d in range(len(new)) if d not in added]
    return bcoo_broadcast_in_dim(found, shape=new, broadcast_dimensions=kept)


def _integers(item: Any) -> Any:
    array = jnp.asarray(item) if is_array_like(item) or isinstance(item, (list, np.ndarray)) else None
    if array is None or array.dtype.kind not in "iu":
        raise NotImplementedError(f"a BCOO indexed by {item!r}: integers, slices, ... and None only")
    return array
