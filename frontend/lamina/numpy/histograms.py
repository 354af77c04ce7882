"""Histograms: histogram histogram2d histogramdd histogram_bin_edges."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy import reductions
from lamina.numpy.creation import asarray
from lamina.numpy.manipulation import ravel
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    check_arraylike,
    concrete_or_error,
    convert,
    literal,
    pick,
    promote_dtypes,
    promote_inexact,
)  # fmt: skip
from lamina.numpy.ranges import linspace
from lamina.numpy.searching import searchsorted


def histogram_bin_edges(
    a: ArrayLike, bins: Any = 10, range: Any = None, weights: Any = None
) -> Array:
    """The edges of `bins` equal bins over range, by default over the values; or the edges given.

    a        an array of real numbers
    bins     how many, or a vector of edges
    range    a pair (least, greatest); None: those of the values
    weights  without effect on the edges

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=2).tolist()
    [0.0, 2.0, 4.0]
    """
    check_arraylike("histogram_bin_edges", a)
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    x = ravel(a)
    to = dtypes.inexact_dtype(x.dtype)
    if np.ndim(bins) == 1:
        return convert(asarray(bins), to)
    count = operator.index(concrete_or_error(bins, "bins argument of histogram_bin_edges")[()])
    if count < 1:
        raise ValueError(f"`bins` must be positive, or the edges of the bins; got {count}")
    if range is None:
        low: Any = reductions.min(x) if x.size else np.zeros((), x.dtype)
        high: Any = reductions.max(x) if x.size else np.ones((), x.dtype)
    else:
        low, high = range
    low, high = convert(asarray(low), to), convert(asarray(high), to)
    same = lax.eq(low, high)
    half = literal(low, 0.5)
    low, high = pick(same, lax.sub(low, half), low), pick(same, lax.add(high, half), high)
    return linspace(low, high, count + 1, dtype=to)


def histogram(a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None,
              density: bool | None = None) -> tuple[Array, Array]:  # fmt: skip
    """How many values lie in each bin (or the sum of their weights), and the edges of the bins.

    a        an array of real numbers
    bins     how many, or a vector of edges
    range    a pair (least, greatest); None: those of the values
    weights  a number for each value
    density  whether the sum over bins times their widths is made 1

    >>> jnp.histogram(jnp.array([0.0, 1.0, 4.0]), bins=2)[0].tolist()
    [2.0, 1.0]
    """
    check_arraylike("histogram", a, *([] if weights is None else [weights]))
    if weights is None:
        (x,) = promote_inexact(ravel(a))
        weights = lax.full(x.shape, 1, x.dtype)
    else:
        x, weights = promote_inexact(ravel(a), ravel(weights))
    if weights.shape != x.shape:
        raise ValueError("weights should have the same shape as a.")
    wide = np.result_type(x.dtype, np.float32)  # in which a thousand can be counted
    counted = convert(weights, wide)
    edges = histogram_bin_edges(x, bins, range, weights)
    x, edges = promote_dtypes(x, edges)
    n = edges.shape[0]
    place = searchsorted(edges, x, side="right")
    last = lax.index_in_dim(edges, n - 1, keepdims=False)
    place = pick(lax.eq(x, last), literal(place, n - 1), place)  # the last bin holds its upper edge
    counts = lax.full((n + 1,), 0, counted.dtype).at[place].add(counted)
    counts = lax.slice(counts, (1,), (n,))
    if density:
        width = lax.sub(lax.slice(edges, (1,), (n,)), lax.slice(edges, (0,), (n - 1,)))
        counts = convert(counts, edges.dtype)
        counts = lax.div(lax.div(counts, width), reductions.sum(counts))
    return convert(counts, edges.dtype), edges


def histogramdd(sample: ArrayLike, bins: Any = 10, range: Any = None,
                weights: ArrayLike | None = None, density: bool | None = None
                ) -> tuple[Array, list[Array]]:  # fmt: skip
    """How many points (rows of sample) lie in each cell of a grid, and the edges along each axis.

    sample   an array (points, axes)
    bins     how many, or vectors of edges
    range    pairs (least, greatest)
    weights  a number for each value
    density  whether the sum over bins times their widths is made 1

    bins and range are for all axes, or one for each.

    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    check_arraylike("histogramdd", sample, *([] if weights is None else [weights]))
    x = asarray(promote_inexact(sample)[0])
    if len(x.shape) != 2:
        raise ValueError(f"histogramdd: sample must have two axes, got shape {tuple(x.shape)}")
    count, dims = x.shape
    w = None if weights is None else asarray(promote_inexact(weights)[0])
    if w is not None and w.shape != (count,):
        raise ValueError("should have one weight for each sample.")
    if range is not None and (
        len(range) != dims or any(r is not None and np.shape(r)[0] != 2 for r in range)
    ):
        raise ValueError(f"For sample.shape={tuple(x.shape)}, range must be a sequence of {dims} "
                         f"pairs or Nones; got {range}")  # fmt: skip
    each = [bins] * dims if not np.iterable(bins) else list(bins)
    if len(each) != dims:
        raise ValueError("should be a bin for each dimension.")
    edges, place, sizes = [], lax.full((count,), 0, np.int32), []
    outside = lax.full((count,), False)
    for d, axis_bins in enumerate(each):
        column = lax.reshape(lax.slice(x, (0, d), (count, d + 1)), (count,))
        edge = histogram_bin_edges(column, axis_bins, None if range is None else range[d], weights)
        at, n = _cell(column, edge), edge.shape[0] - 1
        outside = lax.bitwise_or(outside, lax.bitwise_or(lax.lt(at, np.int32(0)),
                                                         lax.ge(at, np.int32(n))))  # fmt: skip
        place = lax.add(lax.mul(place, np.int32(n)), at)
        edges.append(edge)
        sizes.append(n)
    cells = math.prod(sizes)
    counted = lax.full((count,), 1, dtypes.canonicalize(int)) if w is None else w
    place = lax.select(outside, lax.full_like(place, cells), place)
    counts = lax.full((cells,), 0, counted.dtype).at[place].add(counted, mode="drop")
    counts = lax.reshape(counts, tuple(sizes))
    if density:
        counts = lax.div(convert(counts, x.dtype), convert(reductions.sum(counts), x.dtype))
        for d, edge in enumerate(edges):
            width = lax.sub(lax.slice(edge, (1,), edge.shape),
                            lax.slice(edge, (0,), (edge.shape[0] - 1,)))  # fmt: skip
            counts = lax.div(counts, lax.broadcast_in_dim(width, counts.shape, (d,)))
    return counts, edges


def _cell(x: Array, edges: Array) -> Array:
    """The bin that each value lies in; -1 and the number of bins for those outside."""
    place = searchsorted(edges, x, side="right")
    last = lax.index_in_dim(edges, edges.shape[0] - 1, keepdims=False)
    place = lax.convert_element_type(place, np.int32)
    # The last bin holds its upper edge.
    place = pick(lax.eq(x, last), np.int32(edges.shape[0] - 1), place)
    return lax.sub(place, np.int32(1))


def histogram2d(x: ArrayLike, y: ArrayLike, bins: Any = 10, range: Sequence[Any] | None = None,
                weights: ArrayLike | None = None, density: bool | None = None
                ) -> tuple[Array, Array, Array]:  # fmt: skip
    """How many points (x, y) lie in each cell of a grid, and the edges of its rows and columns.

    x, y     vectors of one size
    bins     a number or edges for both, or a pair
    range    a pair of pairs
    weights  a number for each value
    density  whether the sum over bins times their widths is made 1

    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    check_arraylike("histogram2d", x, y)
    a, b = (ravel(t) for t in (x, y))
    if len(get_aval(x).shape) != 1 or a.shape != b.shape:
        raise ValueError("histogram2d: x and y must be vectors of equal length, got shapes "
                         f"{get_aval(x).shape} and {get_aval(y).shape}")  # fmt: skip
    if hasattr(bins, "__len__") and len(bins) not in (1, 2):
        edges = asarray(bins)
        bins = [edges, edges]
    a, b = (asarray(t) for t in promote_dtypes(a, b))
    points = lax.concatenate([lax.expand_dims(t, (1,)) for t in (a, b)], 1)
    counts, all_edges = histogramdd(points, bins, range, weights, density)
    return counts, all_edges[0], all_edges[1]
