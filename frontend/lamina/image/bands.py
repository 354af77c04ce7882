"""Products of an axis with a matrix whose columns hold few neighbours: sums of what is looked up.

A sample of a resized image is made from a few samples of the image. A sum of so many takes a tenth of the
time of a product with a matrix that is mostly zeros, and so does the transpose of one. What is not finite
stays where it is: a product would multiply it with all those zeros.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.control_flow.linear_call import linear_call

_MOST_TERMS = 12  # each is some code
_LEAST_ROW = 16  # elements
_LEAST_ZEROS = 4  # columns this many times as long: a product takes less time than it takes to look things up


class Band(NamedTuple):
    """The elements of a matrix that may not be zero."""

    first: np.ndarray
    """Of each column, the row of the first."""
    terms: np.ndarray
    """As many of each column, the first ones in the first row."""

    @classmethod
    def of(cls, matrix: np.ndarray) -> Band | None:
        """None where that is much of the matrix."""
        n, _ = matrix.shape
        if 0 in matrix.shape:
            return None
        used = matrix != 0
        any_used = used.any(axis=0)
        low = np.where(any_used, used.argmax(axis=0), 0)
        high = np.where(any_used, n - used[::-1].argmax(axis=0), 1)
        count = int((high - low).max())
        if count > _MOST_TERMS or count * _LEAST_ZEROS > n:
            return None
        first = np.minimum(low, n - count).astype(np.int32)
        rows = first + np.arange(count)[:, None]
        return cls(first, np.take_along_axis(matrix, rows, axis=0))


def times_band(x: Any, matrix: np.ndarray, axis: int) -> Any | None:
    """x with axis multiplied by a matrix; None where `Band.of` that or its transpose is None. Linear in x,
    and so is what transposes it."""
    forward, backward = Band.of(matrix), Band.of(matrix.T)
    if forward is None or backward is None:
        return None
    return linear_call(
        lambda _, v: _sum_of(v, forward, axis), lambda _, v: _sum_of(v, backward, axis), (), x
    )


def _sum_of(x: Any, band: Band, axis: int) -> Any:
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    # Colours are too few for vectors: whole rows of them are copied.
    inner = (math.prod(after),) if after and after[-1] < _LEAST_ROW else after
    rows = lax.reshape(x, (*x.shape[: axis + 1], *inner))
    computed = np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype
    total: Any = 0
    for k, weights in enumerate(band.terms):
        samples = jnp.take(rows, band.first + k, axis=axis, mode="clip").astype(computed)
        of_each = weights.reshape(len(weights), *(1 for _ in inner))
        total = total + samples * jnp.asarray(of_each, computed)
    return lax.reshape(total.astype(x.dtype), (*before, len(band.first), *after))
