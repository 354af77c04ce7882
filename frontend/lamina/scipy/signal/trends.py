"""detrend: a signal without its mean, or without the lines that fit pieces of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lamina import lax
from lamina.numpy._eager import compiled
from lamina.numpy.averages import mean
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    canonical_axis,
    check_arraylike,
    promote_inexact,
)  # fmt: skip
from lamina.numpy.reductions import sum as _sum


def detrend(data: ArrayLike, axis: int = -1, type: str = "linear",
            bp: int | Sequence[int] | np.ndarray = 0, overwrite_data: None = None
            ) -> Array:  # fmt: skip
    """data without its trend along an axis.

    data            an array of real numbers.
    axis            counted from the end where negative.
    type            "constant" subtracts the mean, "linear" the lines that fit best.
    bp              breakpoints: lines are fitted to each piece between them.
    overwrite_data  None.

    Raises ValueError for another type and breakpoints outside of data; NotImplementedError for
    overwrite_data.

    >>> print(abs(lamina.scipy.signal.detrend(jnp.array([1.0, 3.0, 5.0]))).round(3))
    [0. 0. 0.]
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    check_arraylike("detrend", data)
    shape = np.shape(data)
    axis = canonical_axis(axis, len(shape))
    if type == "constant":
        return _without_lines(data, axis, None)
    length = shape[axis]
    breaks = sorted({0, length, *(int(b) for b in np.atleast_1d(bp))})
    if breaks[0] < 0 or breaks[-1] > length:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis."
        )
    return _without_lines(data, axis, tuple(breaks))


@compiled(static=("axis", "breaks"))
def _without_lines(data: ArrayLike, axis: int, breaks: tuple[int, ...] | None) -> Array:
    (x,) = (asarray(a) for a in promote_inexact(data))
    if breaks is None:
        return x - mean(x, axis, keepdims=True)
    pieces = []
    for low, high in zip(breaks, breaks[1:]):
        piece = lax.slice_in_dim(x, low, high, 1, axis)
        rest = piece - mean(piece, axis, keepdims=True)
        # Least squares with centred abscissas: mean and slope are found apart.
        at = np.arange(high - low) - (high - low - 1) / 2
        squares = float(np.sum(at**2))
        shape = [high - low if d == axis else 1 for d in range(x.ndim)]
        places = at.reshape(shape).astype(x.dtype)
        if squares:
            slope = _sum(rest * places, axis, keepdims=True) * (1 / squares)
            rest = rest - slope * places
        pieces.append(rest)
    return pieces[0] if len(pieces) == 1 else lax.concatenate(pieces, axis)
