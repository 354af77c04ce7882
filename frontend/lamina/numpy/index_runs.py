"""Index arrays known while tracing, as a few slices: x[:, [2, 1, 0]], x[mask], delete(x, 5).

A slice is copied where a gather looks at each index, and its derivative is put in place where that of
a gather adds element after element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 4  # more of them are compiled for longer than a gather
_LEAST_PART = 4  # one of so many: of less, a derivative is mostly zeros, written once and added to


def as_slices(index: Any, shape: tuple[int, ...]) -> tuple[int, list[tuple[Any, ...]]] | None:
    """The index expressions that an index expression with one such array is, side by side along a
    dimension of the result; None if it is not one of slices and such an array, or needs many."""
    items = index if isinstance(index, tuple) else (index,)
    arrays = [k for k, item in enumerate(items) if not _is_slice(item)]
    if len(arrays) != 1 or not isinstance(items[arrays[0]], np.ndarray):
        return None
    (at,) = arrays
    before, array, behind = items[:at], items[at], items[at + 1 :]
    axis, missing = (sum(i is not None for i in part) for part in (before, behind))
    if any(i is Ellipsis for i in before):
        axis = len(shape) - 1 - missing
    if not 0 <= axis < len(shape) or axis + missing >= len(shape) + any(i is Ellipsis for i in behind):
        return None
    runs = _runs(array, shape[axis])
    if runs is None or (len(runs) > 1 and len(array) * _LEAST_PART < shape[axis]):
        return None
    return axis + sum(i is None for i in before), [(*before, run, *behind) for run in runs]


def _is_slice(item: Any) -> bool:
    return item is None or item is Ellipsis or isinstance(item, slice)


def _runs(array: np.ndarray, n: int) -> list[slice] | None:
    """The positions in an axis of n, in order, as slices."""
    if array.ndim != 1 or array.dtype.kind not in "biu":
        return None
    if array.dtype == np.bool_:
        if len(array) != n:
            return None
        array = np.flatnonzero(array)
    if not len(array) or array.min() < -n or array.max() >= n:
        return None
    positions = array.astype(np.int64)
    positions += np.where(positions < 0, n, 0)
    steps = np.diff(positions)
    changes = np.flatnonzero(np.diff(steps)) + 1  # where a step is not as the one before
    if len(changes) > 2 * _MOST:
        return None
    ends = [*changes.tolist(), len(steps)]
    runs: list[slice] = []
    first = 0
    while first < len(positions):
        if len(runs) == _MOST:
            return None
        step = int(steps[first]) if first < len(steps) else 1
        last = next((end for end in ends if end > first), first) if step else first
        runs.append(_slice(int(positions[first]), int(positions[last]), step or 1))
        first = last + 1
    return runs


def _slice(first: int, last: int, step: int) -> slice:
    stop = last + (1 if step > 0 else -1)
    return slice(first, stop if stop >= 0 else None, step)
