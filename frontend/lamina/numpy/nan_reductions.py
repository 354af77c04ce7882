"""Reductions that leave NaN out: nansum nanprod nanmax nanmin nanmean nanvar nanstd ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.core.type_promotion import wider_type
from lamina.numpy import averages, reductions
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.logic import logical_and
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    Axis,
    DTypeLike,
    broadcast_to_shape,
    check_arraylike,
    convert,
    literal,
    pick,
    refuse_out,
    requested_dtype,
)  # fmt: skip


def _with(name: str, a: ArrayLike, value: Callable[[np.dtype], Any]) -> tuple[Array, Any]:
    """a with NaN replaced by the dtype's value, and where it was (None for dtypes without NaN)."""
    check_arraylike(name, a)
    x = asarray(a)
    if not dtypes.is_inexact(x.dtype):
        return x, None
    nan = lax.ne(x, x)
    return pick(nan, literal(x, value(x.dtype)), x), nan


def nansum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
           ) -> Array:  # fmt: skip
    """The sum of the elements that are not NaN.

    a         an array of numbers
    axis      an axis, several, or None for all
    dtype     the dtype to compute in and to give
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    initial   a number that takes part beside the elements
    where     booleans that broadcast to a: which elements count

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
    Array(4., dtype=float32)
    """
    refuse_out("nansum", out)
    x, _ = _with("nansum", a, lambda _: 0)
    return reductions.sum(x, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def nanprod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
            ) -> Array:  # fmt: skip
    """The product of the elements that are not NaN.

    a         an array of numbers
    axis      an axis, several, or None for all
    dtype     the dtype to compute in and to give
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    initial   a number that takes part beside the elements
    where     booleans that broadcast to a: which elements count

    >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array(6., dtype=float32)
    """
    refuse_out("nanprod", out)
    x, _ = _with("nanprod", a, lambda _: 1)
    return reductions.prod(x, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def nanmax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """The largest element that is not NaN; NaN where all are.

    a         an array of numbers
    axis      an axis, several, or None for all
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    initial   a number that takes part beside the elements
    where     booleans that broadcast to a: which elements count

    >>> jnp.nanmax(jnp.array([2.0, jnp.nan, 3.0]))
    Array(3., dtype=float32)
    """
    return _extremum("nanmax", reductions.max, dtypes.least, a, axis, out, keepdims, initial, where)


def nanmin(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """The smallest element that is not NaN; NaN where all are.

    a         an array of numbers
    axis      an axis, several, or None for all
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    initial   a number that takes part beside the elements
    where     booleans that broadcast to a: which elements count

    >>> jnp.nanmin(jnp.array([2.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    return _extremum("nanmin", reductions.min, dtypes.greatest, a, axis, out, keepdims, initial, where)


def _extremum(
    name: str,
    op: Callable[..., Array],
    worst: Callable[[np.dtype], Any],
    a: ArrayLike,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Array:
    refuse_out(name, out)
    x, nan = _with(name, a, worst)
    found = op(x, axis, keepdims=keepdims, initial=initial, where=where)
    if nan is None or initial is not None:
        return found
    return pick(reductions.all(nan, axis, keepdims=keepdims), literal(found, np.nan), found)


def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
              ) -> Array:  # fmt: skip
    """The index of the first largest element that is not NaN; -1 where all are NaN.

    a         an array of numbers
    axis      an axis, or None for the index in the flattened array
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1

    >>> jnp.nanargmax(jnp.array([2.0, jnp.nan, 3.0]))
    Array(2, dtype=int32)
    """
    return _position("nanargmax", reductions.argmax, dtypes.least, a, axis, out, keepdims)


def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
              ) -> Array:  # fmt: skip
    """The index of the first smallest element that is not NaN; -1 where all are NaN.

    a         an array of numbers
    axis      an axis, or None for the index in the flattened array
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1

    >>> jnp.nanargmin(jnp.array([2.0, jnp.nan, 3.0]))
    Array(0, dtype=int32)
    """
    return _position("nanargmin", reductions.argmin, dtypes.greatest, a, axis, out, keepdims)


def _position(
    name: str,
    op: Callable[..., Array],
    worst: Callable[[np.dtype], Any],
    a: ArrayLike,
    axis: int | None,
    out: None,
    keepdims: bool | None,
) -> Array:
    refuse_out(name, out)
    x, nan = _with(name, a, worst)
    found = op(x, axis, keepdims=keepdims)
    if nan is None:
        return found
    nothing = reductions.all(nan, axis, keepdims=bool(keepdims))
    return pick(nothing, literal(found, -1), found)


def _valid(name: str, a: ArrayLike, where: ArrayLike | None) -> tuple[Array, Any]:
    """a as an array, and which of its elements count."""
    check_arraylike(name, a)
    x = asarray(a)
    valid = lax.eq(x, x)
    return x, valid if where is None else logical_and(valid, where)


def nanmean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            keepdims: bool = False, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """The mean of the elements that are not NaN; NaN where all are.

    a         an array of numbers
    axis      an axis, several, or None for all
    dtype     the dtype to compute in and to give
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    where     booleans that broadcast to a: which elements count

    >>> jnp.nanmean(jnp.array([2.0, jnp.nan, 4.0]))
    Array(3., dtype=float32)
    """
    refuse_out("nanmean", out)
    check_arraylike("nanmean", a)
    if not dtypes.is_inexact(get_aval(a).dtype):
        return averages.mean(a, axis, dtype, out, keepdims, where=where)
    x, valid = _valid("nanmean", a, where)
    to = requested_dtype(dtype, "nanmean", keep=x.dtype)
    count = reductions.sum(valid, axis, dtype=dtypes.real_dtype(to), keepdims=keepdims)
    total = nansum(x, axis, dtype=to, keepdims=keepdims, where=where)
    return lax.div(total, convert(count, to))


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of the elements that are not NaN; NaN where no more than ddof are left.

    a         an array of numbers
    axis      an axis, several, or None for all
    dtype     the dtype to compute in and to give
    out       must be None: arrays cannot be written to
    ddof      what the number of elements is lessened by
    keepdims  whether the axes reduced stay, with size 1
    where     booleans that broadcast to a: which elements count
    mean      the mean, if it is known already

    >>> jnp.nanvar(jnp.array([2.0, jnp.nan, 4.0]))
    Array(1., dtype=float32)
    """
    refuse_out("nanvar", out)
    x, valid = _valid("nanvar", a, where)
    to = requested_dtype(dtype, "nanvar", keep=dtypes.real_dtype(dtypes.inexact_dtype(x.dtype)))
    if dtype is not None:
        averages.refuse_real_variance("nanvar", x.dtype, to)
    if not dtypes.is_inexact(x.dtype):
        return averages.var(x, axis, to, ddof=ddof, keepdims=keepdims, where=where, mean=mean)
    axes = tuple(axis) if isinstance(axis, list) else axis
    return _nanvar(x, valid, mean, axis=axes, dtype=to, ddof=ddof, keepdims=bool(keepdims))


@compiled(static=("axis", "dtype", "ddof", "keepdims"))
def _nanvar(x: Any, valid: Any, center: Any, *, axis: Any, dtype: np.dtype, ddof: Any,
            keepdims: bool) -> Array:  # fmt: skip
    work = wider_type(x.dtype, dtype)
    x = convert(x, work)
    if center is None:
        middle = averages.mean(x, axis, keepdims=True, where=valid)
    else:
        middle = broadcast_to_shape(convert(center, x.dtype), x.shape)
    distance = pick(valid, lax.sub(x, middle), literal(x, 0))
    squares = (
        lax.real(lax.mul(distance, lax.conj(distance)))
        if work.kind == "c"
        else lax.square(distance)
    )
    real = dtypes.real_dtype(work)
    freedom = lax.sub(reductions.sum(valid, axis, dtype=real, keepdims=keepdims),
                      np.asarray(ddof).astype(real)[()])  # fmt: skip
    total = reductions.sum(squares, axis, keepdims=keepdims)
    out = pick(
        lax.gt(freedom, literal(freedom, 0)), lax.div(total, freedom), literal(freedom, np.nan)
    )
    return lax.convert_element_type(out, dtype)


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The square root of nanvar.

    a         an array of numbers
    axis      an axis, several, or None for all
    dtype     the dtype to compute in and to give
    out       must be None: arrays cannot be written to
    ddof      what the number of elements is lessened by
    keepdims  whether the axes reduced stay, with size 1
    where     booleans that broadcast to a: which elements count
    mean      the mean, if it is known already

    >>> jnp.nanstd(jnp.array([2.0, jnp.nan, 4.0]))
    Array(1., dtype=float32)
    """
    return lax.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))
