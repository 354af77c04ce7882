"""Statistics of samples: mode rankdata sem."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    canonical_axis,
    check_arraylike,
    promote_args_inexact,
)  # fmt: skip


class ModeResult(NamedTuple):
    """The most frequent values, and how often they are there."""

    mode: Array
    count: Array  # type: ignore[assignment]  # hides tuple's


def _check_policy(name: str, nan_policy: str, known: tuple[str, ...]) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"Illegal nan_policy value {nan_policy!r}; expected one of "
            "{'propagate', 'omit', 'raise'}"
        )
    if nan_policy not in known:
        raise NotImplementedError(
            f"Logic for `nan_policy` of {nan_policy} is not implemented in {name}"
        )


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
         keepdims: bool = False) -> ModeResult:  # fmt: skip
    """The most frequent value along an axis, the least of those where they tie: a named tuple of
    mode and count.

    a           an array of real numbers.
    axis        an int; None: all elements together.
    nan_policy  "propagate": NaN counts as a value.
    keepdims    whether the axis stays, with size 1.

    Raises NotImplementedError for nan_policy "omit" and "raise", ValueError for another.

    >>> values, counts = lamina.scipy.stats.mode(jnp.array([[1, 2, 2], [5, 4, 3]]), axis=1)
    >>> print(values, counts)
    [2 3] [2 1]
    """
    check_arraylike("mode", a)
    _check_policy("mode", nan_policy, ("propagate",))
    x = jnp.asarray(a)
    rank = x.ndim
    if axis is None:
        x, axis = x.ravel(), 0
    elif x.ndim == 0:
        x = x[None]
    at = canonical_axis(axis, x.ndim)
    if not keepdims:
        return ModeResult(*_mode(x, axis=at))
    kept = [jnp.expand_dims(r, at) for r in _mode(x, axis=at)]
    if x.ndim != rank:
        kept = [r.reshape((1,) * rank) for r in kept]
    return ModeResult(*kept)


@compiled(static=("axis",))
def _mode(x: Any, *, axis: int) -> tuple[Array, Array]:
    size = x.shape[axis]
    count_dtype = dtypes.canonicalize(int)
    if size == 0:
        shape = tuple(d for i, d in enumerate(x.shape) if i != axis)
        value = jnp.full(shape, math.nan, dtypes.canonicalize(float))
        return value, jnp.zeros(shape, value.dtype)
    ordered = jnp.moveaxis(lax.sort(x, dimension=axis), axis, -1)
    same = ordered[..., 1:] == ordered[..., :-1]
    if dtypes.is_inexact(get_aval(x).dtype):
        same = same | (jnp.isnan(ordered[..., 1:]) & jnp.isnan(ordered[..., :-1]))
    position = lax.broadcasted_iota(count_dtype, ordered.shape, ordered.ndim - 1)
    starts = jnp.concatenate([jnp.ones_like(ordered[..., :1], dtype=bool), ~same], -1)
    since = lax.cummax(jnp.where(starts, position, 0), ordered.ndim - 1)
    length = position - since + 1
    best = jnp.argmax(length, -1)[..., None]
    value = jnp.take_along_axis(ordered, best, -1)[..., 0]
    return value, jnp.take_along_axis(length, best, -1)[..., 0]


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:  # fmt: skip
    """Ranks from 1 along an axis, of the least element first.

    a           an array of real numbers.
    method      what equal values get: the "average", "min" or "max" of their ranks, one rank with
                no gap to the next ("dense"), or ranks in their order ("ordinal").
    axis        an int; None: all elements, in one row.
    nan_policy  "propagate".

    Raises ValueError for another method or nan_policy; NotImplementedError for nan_policy "omit"
    and "raise".

    >>> scores = jnp.array([10, 30, 20, 20])
    >>> print(lamina.scipy.stats.rankdata(scores), lamina.scipy.stats.rankdata(scores, "dense"))
    [1.  4.  2.5 2.5] [1. 3. 2. 2.]
    """
    check_arraylike("rankdata", a)
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method {method!r}")
    x = jnp.asarray(a)
    if axis is None:
        return _rankdata(x.ravel(), method=method)
    ranked = _rankdata(jnp.moveaxis(x, canonical_axis(axis, x.ndim), -1), method=method)
    return jnp.moveaxis(ranked, -1, axis)


@compiled(static=("method",))
def _rankdata(x: Any, *, method: str) -> Array:
    size = x.shape[-1]
    whole = dtypes.canonicalize(int)
    order = jnp.argsort(x, -1)
    inverse = jnp.argsort(order, -1)
    ordered = jnp.take_along_axis(x, order, -1)
    starts = jnp.concatenate(
        [jnp.ones_like(ordered[..., :1], dtype=bool), ordered[..., 1:] != ordered[..., :-1]], -1
    )
    dense = jnp.cumsum(starts, -1)
    position = lax.broadcasted_iota(np.dtype(whole), ordered.shape, ordered.ndim - 1)
    first = lax.cummax(jnp.where(starts, position, 0), ordered.ndim - 1) + 1
    ends = jnp.concatenate([starts[..., 1:], jnp.ones_like(starts[..., :1])], -1)
    last = lax.cummin(jnp.where(ends, position, size), ordered.ndim - 1, reverse=True) + 1
    ranks = {"dense": dense, "min": first, "max": last, "ordinal": position + 1,
             "average": (first + last) / 2}[method]  # fmt: skip
    ranks = jnp.take_along_axis(ranks, inverse, -1).astype(dtypes.canonicalize(float))
    if dtypes.is_inexact(get_aval(x).dtype):
        ranks = jnp.where(jnp.any(jnp.isnan(x), -1, keepdims=True), math.nan, ranks)
    return ranks


@compiled(static=("axis", "ddof", "nan_policy", "keepdims"))
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:  # fmt: skip
    """The standard error of the mean along an axis: the standard deviation by the root of the
    number of elements.

    a           an array of numbers.
    axis        an int; None: all elements together.
    ddof        what is subtracted from this number in the variance.
    nan_policy  "propagate" or "omit", which leaves NaN out.
    keepdims    whether the axis stays, with size 1.

    Raises NotImplementedError for nan_policy "raise", ValueError for another.

    >>> print(lamina.scipy.stats.sem(jnp.array([1.0, 2.0, 3.0, 4.0])).round(4))
    0.6455
    """
    (x,) = promote_args_inexact("sem", a)
    x = jnp.asarray(x)
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    if axis is None:
        x, axis = x.ravel(), 0
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(x.dtype))
    return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / math.sqrt(x.shape[axis])
