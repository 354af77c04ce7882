"""What `x.at[index].get(strategy=...)` demands of an index: that it be a slice of the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina.core.trace import Tracer
from lamina.numpy.index_plans import axes_taken

_STRATEGIES = ("auto", "gather", "static_slice", "dynamic_slice")


def check_strategy(strategy: str, index: Any, shape: tuple[int, ...]) -> None:
    """Raises ValueError for a strategy that there is not, TypeError where the index is not what it
    demands, IndexError where a static slice is out of bounds."""
    if strategy in ("auto", "gather"):
        return
    if strategy not in _STRATEGIES:
        raise ValueError(
            f"Unknown indexing strategy: {strategy!r}; there are {', '.join(_STRATEGIES)}"
        )
    static = strategy == "static_slice"
    fits: Callable[[Any], bool] = _is_static if static else _is_slice
    items = index if isinstance(index, tuple) else (index,)
    axis, taken = 0, sum(map(axes_taken, items))
    for position, item in enumerate(items):
        if item is not None and item is not Ellipsis and not fits(item):
            wanted = "static scalars or slices" if static else "scalars, or slices with steps of 1"
            raise TypeError(
                f"{strategy}: indices must be {wanted}. Got index of type {type(item)} at position "
                f"{position}"
            )
        n = shape[axis] if axis < len(shape) else 1
        if static and isinstance(item, (int, np.integer)) and not -n <= item < n:
            raise IndexError(f"index {item} out of bounds for axis {axis} with size {n}")
        axis += len(shape) - taken if item is Ellipsis else axes_taken(item)


def _is_static(item: Any) -> bool:
    return isinstance(item, (int, np.integer, slice)) and not isinstance(item, bool)


def _is_slice(item: Any) -> bool:
    if isinstance(item, slice):
        return item.step in (None, 1, -1)
    if isinstance(item, Tracer) or hasattr(item, "dtype"):
        return not np.shape(item) and item.dtype.kind in "iu"
    return _is_static(item)
