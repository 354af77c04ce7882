"""What negative and too large indices stand for, settled in the index expression itself: all taken
modulo the axes' sizes, or negative ones as out of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy.index_plans import axes_taken
from lamina.numpy.promotion import literal


def wrapped(index: Any, shape: tuple[int, ...]) -> Any:
    """An index expression with its integers and index arrays taken modulo the axes' sizes."""
    from lamina.numpy.arithmetic import remainder

    return _rewritten(
        index,
        shape,
        lambda i, n: i % n if n else i,
        lambda i, n: remainder(i, literal(i, n)) if n else i,
    )


def without_negative(index: Any, shape: tuple[int, ...], *, clamp: bool) -> Any:
    """An index expression where negative integers do not count from the end: they are out of
    bounds, so that they become 0 where those are clamped, else the axis' size. Slices stay."""

    def of_array(i: Any, n: int) -> Any:
        if dtypes.is_unsigned(get_aval(i).dtype):
            return i
        zero = literal(i, 0)
        if clamp:
            return np.maximum(i, 0) if isinstance(i, np.ndarray) else lax.max(i, zero)
        beyond = min(n, int(np.iinfo(i.dtype).max))
        if isinstance(i, np.ndarray):
            return np.where(i < 0, i.dtype.type(beyond), i)
        return lax.select(lax.lt(i, zero), lax.full_like(i, beyond), i)

    return _rewritten(index, shape, lambda i, n: i if i >= 0 else 0 if clamp else n, of_array)


def _rewritten(
    index: Any,
    shape: tuple[int, ...],
    of_integer: Callable[[int, int], int],
    of_array: Callable[[Any, int], Any],
) -> Any:
    """An index expression with functions of each integer and index array, and of its axis' size."""
    items = list(index) if isinstance(index, tuple) else [index]
    taken = sum(map(axes_taken, items))
    axis, out = 0, []
    for item in items:
        if item is Ellipsis:
            axis += len(shape) - taken
        elif item is not None:
            n = shape[axis] if axis < len(shape) else 1
            if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
                item = of_integer(int(item), n)
            elif hasattr(item, "dtype") and dtypes.is_integer(item.dtype):
                item = of_array(item, n)
            axis += axes_taken(item)
        out.append(item)
    return tuple(out)
