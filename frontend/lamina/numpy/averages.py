"""Averages and what spreads about them: mean average var std."""

from __future__ import annotations

import operator
from typing import Any, Literal, overload

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.logic import truth
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    Axis,
    DTypeLike,
    canonical_axes,
    check_arraylike,
    convert,
    pick,
    promote_dtypes,
    refuse_out,
    requested_dtype,
)  # fmt: skip
from lamina.numpy.reductions import prepared, sum


def mean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
         keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """The mean over axes; NaN of nothing. Integers give floats; 16-bit floats sum in float32.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    dtype     the dtype to compute in and to give; None: by a's
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    where     booleans that broadcast to a: which elements count
    >>> jnp.mean(jnp.array([1, 2, 6]))
    Array(3., dtype=float32)
    """
    x = prepared("mean", a, out)
    to = requested_dtype(dtype, "mean", keep=dtypes.inexact_dtype(x.dtype))
    axes = canonical_axes(axis, len(x.shape))
    return _mean(x, where, axes=axes, dtype=to, keepdims=bool(keepdims))


@compiled(static=("axes", "dtype", "keepdims"))
def _mean(x: Any, where: Any, *, axes: tuple[int, ...], dtype: np.dtype, keepdims: bool) -> Array:
    work = np.dtype(np.float32) if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype
    total = sum(x, axes, dtype=work, keepdims=keepdims, where=where)
    out = lax.div(total, count_as(work, x, axes, where, keepdims))
    return lax.convert_element_type(out, dtype)


def count_as(dtype: np.dtype, x: Array, axis: Axis, where: ArrayLike | None, keepdims: bool) -> Any:
    """The number of elements that a reduction covers, as a literal where it is known."""
    axes = canonical_axes(axis, len(x.shape))
    if where is None:
        return np.asarray(np.prod([x.shape[i] for i in axes], dtype=np.int64)).astype(dtype)[()]
    from lamina.numpy.manipulation import broadcast_to

    counted = broadcast_to(truth(where), x.shape)
    return sum(counted, axis, dtype=dtype, keepdims=keepdims)


@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None,
    returned: Literal[False] = False, keepdims: bool = False) -> Array: ...


@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, *,
    returned: Literal[True], keepdims: bool = False) -> tuple[Array, Array]: ...


@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None,
    returned: bool = False, keepdims: bool = False) -> Any: ...


def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Any:  # fmt: skip
    """The weighted mean over axes; with returned also the sum of the weights.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    weights   numbers of a's shape, or along axis; None: all 1
    returned  whether the sum of the weights is given too
    keepdims  whether the axes reduced stay, with size 1

    Raises ValueError where the shapes of a and weights do not go together.

    >>> jnp.average(jnp.array([1.0, 4.0]), weights=jnp.array([2, 1]))
    Array(2., dtype=float32)
    """
    x = prepared("average", a, None)
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        counted = lax.full(out.shape, count_as(out.dtype, x, axis, None, keepdims))
        return (out, counted) if returned else out
    check_arraylike("average", weights)
    w = asarray(weights)
    if axis is not None and w.shape != x.shape:
        axes = canonical_axes(axis, len(x.shape))
        if tuple(x.shape[i] for i in axes) != w.shape:
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis."
            )
        w = lax.broadcast_in_dim(w, x.shape, axes) if list(axes) == sorted(axes) else (
            lax.broadcast_in_dim(lax.transpose(w, [axes.index(i) for i in sorted(axes)]),
                                 x.shape, tuple(sorted(axes)))
        )  # fmt: skip
    elif w.shape != x.shape:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    x, w = promote_dtypes(x, w)
    if not dtypes.is_inexact(x.dtype):
        to = dtypes.inexact_dtype(x.dtype)
        x, w = convert(x, to), convert(w, to)
    total = sum(w, axis, keepdims=keepdims)
    out = lax.div(sum(lax.mul(x, w), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:  # fmt: skip
    """The mean squared distance from the mean, over n - ddof elements.

    a           an array of numbers or booleans
    axis        an axis, several, or None for all
    dtype       the dtype to compute in and to give; None: by a's
    out         must be None: arrays cannot be written to
    ddof        what n is lessened by
    keepdims    whether the axes reduced stay, with size 1
    where       booleans that broadcast to a: which elements count
    mean        the mean, if it is known already, with the axes kept
    correction  another name of ddof
    >>> jnp.var(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    x = prepared("var", a, out)
    if correction is not None:
        if ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction  # type: ignore[assignment]
    to = requested_dtype(dtype, "var", keep=dtypes.real_dtype(dtypes.inexact_dtype(x.dtype)))
    if dtype is not None:
        refuse_real_variance("var", x.dtype, to)
    return _var(x, where, mean, axis=_hashable(axis), dtype=to, ddof=ddof, keepdims=bool(keepdims))


def refuse_real_variance(name: str, have: np.dtype, to: np.dtype) -> None:
    """Raises ValueError where the variance of complex numbers is asked for in a real dtype."""
    if dtypes.is_complex(have) and not dtypes.is_complex(to):
        raise ValueError(
            f"{library}.numpy.{name} of complex values does not support the real dtype {to.name}: "
            "leave dtype away, and the variance is real"
        )


def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:  # fmt: skip
    """The square root of `var`.

    a           an array of numbers or booleans
    axis        an axis, several, or None for all
    dtype       the dtype to compute in and to give; None: by a's
    out         must be None: arrays cannot be written to
    ddof        what n is lessened by
    keepdims    whether the axes reduced stay, with size 1
    where       booleans that broadcast to a: which elements count
    mean        the mean, if it is known already, with the axes kept
    correction  another name of ddof
    >>> jnp.std(jnp.array([1.0, 3.0]), ddof=0)
    Array(1., dtype=float32)
    """
    check_arraylike("std", a)
    refuse_out("std", out)
    if dtype is not None and not dtypes.is_inexact(np.dtype(dtype)):
        raise ValueError(f"dtype argument to {library}.numpy.std must be inexact; got {dtype}")
    return lax.sqrt(var(a, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean,
                        correction=correction))  # fmt: skip


def _hashable(axis: Axis) -> Any:
    if axis is None or isinstance(axis, (int, tuple)):
        return axis
    if np.ndim(axis):
        return tuple(map(operator.index, axis))
    return operator.index(axis)  # type: ignore[arg-type]  # an array without axes


@compiled(static=("axis", "dtype", "ddof", "keepdims"))
def _var(x: Any, where: Any, center: Any, *, axis: Any, dtype: np.dtype, ddof: Any, keepdims: bool
         ) -> Array:  # fmt: skip
    work = dtypes.inexact_dtype(x.dtype)
    if dtypes.is_float(work) and work.itemsize < 4:
        work = np.dtype(np.float32)
    if dtypes.real_dtype(work).itemsize < dtype.itemsize:
        work = dtypes.complex_dtype(dtype) if work.kind == "c" else dtype
    x = lax.convert_element_type(x, work)
    middle = (
        convert(center, work) if center is not None else (mean(x, axis, keepdims=True, where=where))
    )
    distance = lax.sub(x, middle)
    if work.kind == "c":
        squares = lax.add(lax.square(lax.real(distance)), lax.square(lax.imag(distance)))
    else:
        squares = lax.square(distance)
    real = dtypes.real_dtype(work)
    count = count_as(real, x, axis, where, keepdims)
    total = sum(squares, axis, keepdims=keepdims, where=where)
    # With no degrees of freedom there is no variance: NaN, not an infinity.
    nan = np.asarray(np.nan).astype(real)[()]
    if where is None:
        freedom: Any = np.asarray(count - ddof).astype(real)[()]
        out = lax.div(total, freedom) if freedom > 0 else lax.full_like(total, nan)
    else:
        freedom = lax.sub(count, np.asarray(ddof).astype(real)[()])
        out = pick(lax.gt(freedom, np.zeros((), real)[()]), lax.div(total, freedom), nan)
    return lax.convert_element_type(out, dtype)
