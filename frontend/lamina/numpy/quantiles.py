"""Quantiles: median quantile percentile, and those that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    Axis,
    canonical_axes,
    check_arraylike,
    convert,
    literal,
    pick,
    refuse_out,
)  # fmt: skip

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@takes_out_sharding
def median(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Array:  # fmt: skip
    """The middle of the sorted elements over axes; of an even number the mean of the two.

    a                an array of real numbers
    axis             an axis, several, or None for all
    out              must be None: arrays cannot be written to
    overwrite_input  without effect
    keepdims         whether the axes reduced stay, with size 1

    >>> jnp.median(jnp.array([4, 1, 3, 2]))
    Array(2.5, dtype=float32)
    """
    check_arraylike("median", a)
    refuse_out("median", out)
    return _quantiles("median", a, 0.5, axis, "midpoint", keepdims, skip_nan=False)


@takes_out_sharding
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The elements below which the fraction q lies, interpolated; q's axes come first.

    a                an array of real numbers
    q                numbers from 0 to 1
    axis             an axis, several, or None for all
    out              must be None: arrays cannot be written to
    overwrite_input  without effect
    method           how to interpolate
    keepdims         whether the axes reduced stay, with size 1
    weights          the weight of each element, for "inverted_cdf"

    NaN where an element is NaN. Methods: linear, lower, higher, midpoint, nearest; inverted_cdf,
    which alone takes weights, of a's shape or of the axis.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 3.0]), 0.25)
    Array(1.5, dtype=float32)
    """
    refuse_out("quantile", out)
    return _quantiles("quantile", a, q, axis, method, keepdims, skip_nan=False,
                      weights=weights)  # fmt: skip


@takes_out_sharding
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """quantile, with q in percent.

    a                an array of real numbers
    q                numbers from 0 to 100
    axis             an axis, several, or None for all
    out              must be None: arrays cannot be written to
    overwrite_input  without effect
    method           how to interpolate
    keepdims         whether the axes reduced stay, with size 1
    weights          the weight of each element, for "inverted_cdf"

    >>> jnp.percentile(jnp.array([1.0, 2.0, 3.0]), 50)
    Array(2., dtype=float32)
    """
    refuse_out("percentile", out)
    return _quantiles("percentile", a, _percent(q), axis, method, keepdims, skip_nan=False,
                      weights=weights)  # fmt: skip


@takes_out_sharding
def nanmedian(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Array:  # fmt: skip
    """median of the elements that are not NaN.

    a                an array of real numbers
    axis             an axis, several, or None for all
    out              must be None: arrays cannot be written to
    overwrite_input  without effect
    keepdims         whether the axes reduced stay, with size 1

    >>> jnp.nanmedian(jnp.array([4.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    refuse_out("nanmedian", out)
    return _quantiles("nanmedian", a, 0.5, axis, "midpoint", keepdims, skip_nan=True)


@takes_out_sharding
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """quantile of the elements that are not NaN.

    a                an array of real numbers
    q                numbers from 0 to 1
    axis             an axis, several, or None for all
    out              must be None: arrays cannot be written to
    overwrite_input  without effect
    method           how to interpolate
    keepdims         whether the axes reduced stay, with size 1
    weights          the weight of each element, for "inverted_cdf"

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 2.0]), 0.5)
    Array(1.5, dtype=float32)
    """
    refuse_out("nanquantile", out)
    return _quantiles("nanquantile", a, q, axis, method, keepdims, skip_nan=True,
                      weights=weights)  # fmt: skip


@takes_out_sharding
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """percentile of the elements that are not NaN.

    a                an array of real numbers
    q                numbers from 0 to 100
    axis             an axis, several, or None for all
    out              must be None: arrays cannot be written to
    overwrite_input  without effect
    method           how to interpolate
    keepdims         whether the axes reduced stay, with size 1
    weights          the weight of each element, for "inverted_cdf"

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 2.0]), 50)
    Array(1.5, dtype=float32)
    """
    refuse_out("nanpercentile", out)
    return _quantiles("nanpercentile", a, _percent(q), axis, method, keepdims, skip_nan=True,
                      weights=weights)  # fmt: skip


def _percent(q: ArrayLike) -> Any:
    from lamina.numpy.arithmetic import true_divide

    check_arraylike("percentile", q)
    return true_divide(q, 100)


def _quantiles(name: str, a: ArrayLike, q: ArrayLike, axis: Axis, method: str, keepdims: bool,
               skip_nan: bool, weights: ArrayLike | None = None) -> Array:  # fmt: skip
    check_arraylike(name, a, q)
    if weights is not None:
        return _weighted(name, asarray(a), q, axis, method, bool(keepdims), skip_nan, weights)
    if method == "inverted_cdf":
        weights = lax.full(np.shape(a), 1, dtypes.canonicalize(float))
        return _weighted(name, asarray(a), q, axis, method, bool(keepdims), skip_nan, weights)
    if method not in _METHODS:
        raise ValueError(
            f"interpolation can only be {', '.join(map(repr, _METHODS))}; got {method!r}"
        )
    x = asarray(a)
    if x.dtype.kind == "c":
        raise ValueError(
            f"{name} does not support complex input, as the operation is poorly defined."
        )
    axes = canonical_axes(axis, len(x.shape))
    if not skip_nan and any(x.shape[i] == 0 for i in axes):
        raise ValueError(f"{name} of no elements: the axes reduced of shape {x.shape} must not be empty")
    return _quantile(x, q, axes=axes, method=method, keepdims=bool(keepdims), skip_nan=skip_nan)


@compiled(static=("axes", "method", "keepdims", "skip_nan"))
def _quantile(x: Any, q: Any, *, axes: tuple[int, ...], method: str, keepdims: bool, skip_nan: bool
              ) -> Array:  # fmt: skip
    from lamina.numpy.indexing import take_along_axis
    from lamina.numpy.reductions import any as any_
    from lamina.numpy.reductions import sum as sum_

    dtype = dtypes.inexact_dtype(x.dtype)
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)  # half types don't tell places apart
    x = convert(x, dtype)
    q = convert(q, wide)
    rest = tuple(i for i in range(len(x.shape)) if i not in axes)
    outer = tuple(x.shape[i] for i in rest)
    n = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    flat = lax.reshape(lax.transpose(x, (*rest, *axes)), (*outer, n))
    nan = lax.ne(flat, flat)
    q_shape = np.shape(q)
    q = lax.reshape(asarray(q), (1,) * len(outer) + (int(np.prod(q_shape, dtype=np.int64)),))
    if skip_nan:
        counts = convert(sum_(lax.bitwise_not(nan), -1, keepdims=True), wide)
        last: Any = lax.max(lax.sub(counts, literal(counts, 1)), literal(counts, 0))
        spoiled = lax.eq(counts, literal(counts, 0))
    else:
        last = np.asarray(max(n - 1, 0)).astype(wide)[()]
        spoiled = any_(nan, -1, keepdims=True)
    position = lax.mul(q, last)
    low, high = lax.floor(position), lax.ceil(position)
    weight = lax.sub(position, low)
    ordered = lax.sort(flat, len(outer))
    below, above = (
        convert(take_along_axis(ordered, _index(i, outer), axis=-1, mode="clip"), wide)
        for i in (low, high)
    )
    if method == "linear":
        weight_low = lax.sub(literal(weight, 1), weight)
        out = lax.add(
            lax.mul(below, pick_weight(weight_low, below)),
            lax.mul(above, pick_weight(weight, above)),
        )
    elif method == "midpoint":
        out = lax.mul(lax.add(below, above), literal(below, 0.5))
    elif method == "nearest":  # the lower one of two equally near
        take_low = lax.le(weight, literal(weight, 0.5))
        out = pick(take_low, below, above)
    else:
        out = below if method == "lower" else above
    out = convert(pick(spoiled, literal(out, np.nan), out), dtype)
    out = lax.transpose(out, (len(outer), *range(len(outer))))
    shape = tuple(1 if i in axes else m for i, m in enumerate(x.shape)) if keepdims else outer
    return lax.reshape(out, (*q_shape, *shape))


def _weighted(name: str, x: Array, q: ArrayLike, axis: Axis, method: str, keepdims: bool,
              skip_nan: bool, weights: ArrayLike) -> Array:  # fmt: skip
    if method != "inverted_cdf":
        raise NotImplementedError(
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights."
        )
    check_arraylike(name, weights)
    w = asarray(weights)
    axes = canonical_axes(axis, len(x.shape))
    if w.shape != x.shape:
        if axis is None:
            raise ValueError("Weights shape must match 'a' shape when axis is None.")
        if w.shape != tuple(x.shape[i] for i in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified "
                             "axis.")  # fmt: skip
        w = lax.broadcast_in_dim(w, x.shape, axes)
    return _weighted_quantile(x, q, w, axes=axes, keepdims=keepdims, skip_nan=skip_nan)


@compiled(static=("axes", "keepdims", "skip_nan"))
def _weighted_quantile(x: Any, q: Any, w: Any, *, axes: tuple[int, ...], keepdims: bool,
                       skip_nan: bool) -> Array:  # fmt: skip
    """The least element at which the weights of those up to it reach q of all weights."""
    from lamina.numpy.indexing import take_along_axis
    from lamina.numpy.reductions import any as any_
    from lamina.numpy.reductions import sum as sum_

    dtype = dtypes.inexact_dtype(x.dtype)
    x, w, q = convert(x, dtype), convert(w, dtype), asarray(convert(q, dtype))
    kept = tuple(1 if i in axes else m for i, m in enumerate(x.shape) if keepdims or i not in axes)
    rest = tuple(i for i in range(len(x.shape)) if i not in axes)
    outer = tuple(x.shape[i] for i in rest)
    n = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    x, w = (lax.reshape(lax.transpose(t, (*rest, *axes)), (*outer, n)) for t in (x, w))
    nan = lax.ne(x, x)
    if skip_nan:
        w = lax.select(nan, lax.full_like(w, 0), w)
    x, w = lax.sort((x, w), dimension=len(outer), num_keys=1)
    reached = lax.cumsum(w, len(outer))
    q_shape, count = q.shape, int(np.prod(q.shape, dtype=np.int64))
    wanted = lax.mul(lax.expand_dims(sum_(w, -1), (len(outer),)),
                     lax.reshape(q, (1,) * len(outer) + (count,)))  # fmt: skip
    below = lax.lt(
        lax.expand_dims(reached, (len(outer),)), lax.expand_dims(wanted, (len(outer) + 1,))
    )
    index = lax.min(sum_(below, -1, dtype=np.int32), np.int32(max(n - 1, 0)))
    out = take_along_axis(x, index, axis=-1, mode="clip")
    if not skip_nan:
        out = pick(any_(nan, -1, keepdims=True), literal(out, np.nan), out)
    out = lax.transpose(out, (len(outer), *range(len(outer))))
    return lax.reshape(out, (*q_shape, *kept))


def pick_weight(weight: Any, like: Any) -> Array:
    """A weight for each of several values, in their shape."""
    from lamina.numpy.promotion import broadcast_to_shape

    return broadcast_to_shape(weight, tuple(like.shape))


def _index(position: Any, outer: tuple[int, ...]) -> Array:
    from lamina.numpy.promotion import broadcast_to_shape

    index = lax.convert_element_type(position, np.int32)
    return broadcast_to_shape(index, (*outer, index.shape[-1]))
