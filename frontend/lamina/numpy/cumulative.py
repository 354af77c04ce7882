"""Cumulative sums, products and sums of exponentials along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.placed import check_unsplit
from lamina.core.trace import get_aval
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    canonical_axis,
    check_arraylike,
    convert,
    literal,
    pick,
    promote_args_inexact,
    refuse_out,
    requested_dtype,
)  # fmt: skip


def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
           ) -> Array:  # fmt: skip
    """The sums of the elements up to each one along an axis (None: of the flattened array).

    a      an array of numbers
    axis   the axis; None: of the flattened array
    dtype  the dtype to compute in and to give
    out    must be None: arrays cannot be written to

    >>> jnp.cumsum(jnp.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _cumulative("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
            ) -> Array:  # fmt: skip
    """The products of the elements up to each one along an axis (None: of the flattened array).

    a      an array of numbers
    axis   the axis; None: of the flattened array
    dtype  the dtype to compute in and to give
    out    must be None: arrays cannot be written to

    >>> jnp.cumprod(jnp.array([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _cumulative("cumprod", lax.cumprod, a, axis, dtype, out)


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
              out: None = None) -> Array:  # fmt: skip
    """cumsum with NaN as 0.

    a      an array of numbers
    axis   the axis; None: of the flattened array
    dtype  the dtype to compute in and to give
    out    must be None: arrays cannot be written to

    >>> jnp.nancumsum(jnp.array([1, jnp.nan, 3])).tolist()
    [1.0, 1.0, 4.0]
    """
    return _cumulative("nancumsum", lax.cumsum, a, axis, dtype, out, nan_as=0)


def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
               out: None = None) -> Array:  # fmt: skip
    """cumprod with NaN as 1.

    a      an array of numbers
    axis   the axis; None: of the flattened array
    dtype  the dtype to compute in and to give
    out    must be None: arrays cannot be written to

    >>> jnp.nancumprod(jnp.array([2, jnp.nan, 3])).tolist()
    [2.0, 2.0, 6.0]
    """
    return _cumulative("nancumprod", lax.cumprod, a, axis, dtype, out, nan_as=1)


def accumulated_logaddexp(
    a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None
) -> Array:
    """What logaddexp.accumulate gives."""
    (x,) = promote_args_inexact("logaddexp.accumulate", a)
    to = requested_dtype(dtype, "accumulate", keep=x.dtype)
    return lax.cumlogsumexp(convert(x, to), canonical_axis(axis, len(x.shape)))


def accumulated_maximum(a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None) -> Array:
    """What maximum.accumulate gives."""
    return _extremes("maximum", lax.cummax, a, axis, dtype)


def accumulated_minimum(a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None) -> Array:
    """What minimum.accumulate gives."""
    return _extremes("minimum", lax.cummin, a, axis, dtype)


def _extremes(
    name: str, op: Callable[..., Array], a: ArrayLike, axis: int, dtype: DTypeLike | None
) -> Array:
    x = asarray(a)
    to = requested_dtype(dtype, "accumulate", keep=x.dtype)
    return op(convert(x, to), canonical_axis(axis, len(x.shape)))


def _cumulative(
    name: str,
    op: Callable[..., Array],
    a: ArrayLike,
    axis: int | None,
    dtype: DTypeLike | None,
    out: None,
    nan_as: int | None = None,
) -> Array:
    check_arraylike(name, a)
    refuse_out(name, out)
    x = asarray(a)
    if axis is None:
        check_unsplit(name, get_aval(x), range(x.ndim), "The input should be fully replicated where axis is None")
        x, axis = lax.reshape(x, (x.size,)), 0
    at = canonical_axis(axis, len(x.shape))
    if nan_as is not None and dtypes.is_inexact(x.dtype):
        x = pick(lax.ne(x, x), literal(x, nan_as), x)
    to = requested_dtype(dtype, name, keep=x.dtype)
    if to == np.bool_:
        counted = op(convert(convert(x, to), dtypes.canonicalize(np.int64)), at)
        return counted if dtype is None else lax.convert_element_type(counted, to)
    return op(convert(x, to), at)


def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                   include_initial: bool = False) -> Array:  # fmt: skip
    """cumsum of the array API: only vectors need no axis; include_initial puts 0 first.

    x                an array of numbers
    axis             the axis
    dtype            the dtype to compute in and to give
    include_initial  whether the value of nothing comes first

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _array_api("cumulative_sum", cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """cumprod of the array API: only vectors need no axis; include_initial puts 1 first.

    x                an array of numbers
    axis             the axis
    dtype            the dtype to compute in and to give
    include_initial  whether the value of nothing comes first

    >>> jnp.cumulative_prod(jnp.array([2, 3]), include_initial=True).tolist()
    [1, 2, 6]
    """
    return _array_api("cumulative_prod", cumprod, 1, x, axis, dtype, include_initial)


def _array_api(
    name: str,
    op: Callable[..., Array],
    first: int,
    x: ArrayLike,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
) -> Array:
    from lamina.numpy.reductions import sum_dtype

    check_arraylike(name, x)
    x = asarray(x)
    if not x.shape:
        raise ValueError("The input must be non-scalar to take a cumulative sum or product.")
    if axis is None:
        if len(x.shape) > 1:
            raise ValueError(f"axis must be given to {name} for arrays of more than one dimension")
        axis = 0
    at = canonical_axis(axis, len(x.shape))
    out = op(x, at, sum_dtype(name, x, dtype) if op is cumsum else dtype)  # as in JAX
    if include_initial:
        shape = (*out.shape[:at], 1, *out.shape[at + 1 :])
        out = lax.concatenate([lax.full(shape, first, out.dtype), out], at)
    return out
