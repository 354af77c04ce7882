"""Cumulative sums and products, differences, and integrals by the trapezoid rule."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
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
    """The sums of the elements up to each one along an axis (None: of the flattened array)."""
    return _cumulative("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
            ) -> Array:  # fmt: skip
    """The products of the elements up to each one along an axis (None: of the flattened array)."""
    return _cumulative("cumprod", lax.cumprod, a, axis, dtype, out)


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
              out: None = None) -> Array:  # fmt: skip
    """cumsum with NaN as 0."""
    return _cumulative("nancumsum", lax.cumsum, a, axis, dtype, out, nan_as=0)


def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
               out: None = None) -> Array:  # fmt: skip
    """cumprod with NaN as 1."""
    return _cumulative("nancumprod", lax.cumprod, a, axis, dtype, out, nan_as=1)


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
    if axis is None or not x.shape:
        x, axis = lax.reshape(x, (x.size,)), 0
    at = canonical_axis(axis, len(x.shape))
    if nan_as is not None and dtypes.is_inexact(x.dtype):
        x = pick(lax.ne(x, x), literal(x, nan_as), x)
    to = requested_dtype(dtype, name, keep=x.dtype)
    if to == np.bool_:
        to = dtypes.canonicalize(np.int64)
    if to == x.dtype and get_aval(x).weak_type and dtype is None:
        return op(x, at)
    return op(convert(x, to), at)


def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                   include_initial: bool = False) -> Array:  # fmt: skip
    """cumsum of the array API: only vectors need no axis; include_initial puts 0 first."""
    return _array_api("cumulative_sum", cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """cumprod of the array API: only vectors need no axis; include_initial puts 1 first."""
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
    out = op(x, at, sum_dtype(name, x, dtype))
    if include_initial:
        shape = (*out.shape[:at], 1, *out.shape[at + 1 :])
        out = lax.concatenate([lax.full(shape, first, out.dtype), out], at)
    return out


def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:  # fmt: skip
    """The n-th differences of neighbours along an axis, with values put before or after it."""
    from lamina.numpy.joining import concatenate
    from lamina.numpy.logic import not_equal

    check_arraylike("diff", a)
    x = asarray(a)
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not x.shape:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    at = canonical_axis(axis, len(x.shape))
    if n == 0:
        return x

    def edge(value: ArrayLike) -> Array:
        check_arraylike("diff", value)
        v = asarray(value)
        shape = (*x.shape[:at], 1, *x.shape[at + 1 :])
        return lax.broadcast_in_dim(v, shape, ()) if not v.shape else v

    parts = [
        *([] if prepend is None else [edge(prepend)]),
        x,
        *([] if append is None else [edge(append)]),
    ]
    x = concatenate(parts, at) if len(parts) > 1 else x
    step = not_equal if x.dtype == np.bool_ else lax.sub
    for _ in range(n):
        size = x.shape[at]
        x = step(lax.slice_in_dim(x, min(1, size), size, axis=at),
                 lax.slice_in_dim(x, 0, max(size - 1, 0), axis=at))  # fmt: skip
    return x


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """The differences of neighbours in the flattened array, with values around them."""
    from lamina.numpy.joining import concatenate
    from lamina.numpy.manipulation import ravel

    out = diff(ravel(ary))
    parts = [ravel(p) for p in (to_begin,) if p is not None] + [out]
    parts += [ravel(p) for p in (to_end,) if p is not None]
    return convert(concatenate(parts), out.dtype) if len(parts) > 1 else out


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral of samples y, at positions x or dx apart, by the trapezoid rule."""
    from lamina.numpy.arithmetic import multiply
    from lamina.numpy.manipulation import moveaxis
    from lamina.numpy.reductions import sum as sum_

    check_arraylike("trapezoid", y)
    if x is None:
        y, dx = promote_args_inexact("trapezoid", y, dx)
        width: Any = dx
    else:
        y, x = promote_args_inexact("trapezoid", y, x)
        width = diff(x) if len(x.shape) == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    y = moveaxis(y, axis, -1)
    n = y.shape[-1]
    last = len(y.shape) - 1
    pairs = lax.add(
        lax.slice_in_dim(y, min(1, n), n, axis=last),
        lax.slice_in_dim(y, 0, max(n - 1, 0), axis=last),
    )
    return lax.mul(literal(y, 0.5), sum_(multiply(width, pairs), -1))
