"""Reductions over axes: sum prod max min minmax all any argmax argmin count_nonzero ptp.

`axis` is an int, a tuple or None for all; `keepdims` keeps reduced axes with size 1; `where` says
which elements count; `initial` takes part in the reduction.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from lamina import lax
from lamina.core import dtypes, get_aval
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
    canonical_axis,
    check_arraylike,
    convert,
    literal,
    pick,
    promote_dtypes,
    refuse_out,
    requested_dtype,
)  # fmt: skip


def _prepared(name: str, a: ArrayLike, out: None) -> Array:
    check_arraylike(name, a)
    refuse_out(name, out)
    return asarray(a)


def _reduce(name: str, op: Callable[..., Array], x: Array, axis: Axis, keepdims: bool,
            where: ArrayLike | None, neutral: Any) -> Array:  # fmt: skip
    """x reduced by op, elements that do not count replaced by the neutral value."""
    axes = canonical_axes(axis, len(x.shape))
    if where is not None:
        check_arraylike(name, where)
        if get_aval(where).dtype != np.bool_:
            raise ValueError(
                f"{name}: where must be None or a boolean array, got {get_aval(where).dtype}; where != 0 "
                "makes one of numbers"
            )
        x = pick(where, x, literal(x, neutral))
        axes = canonical_axes(axis, len(x.shape))
    out = op(x, axes) if axes else x
    return keep_axes(out, axes) if keepdims else out


def keep_axes(x: Array, axes: tuple[int, ...]) -> Array:
    """The result of a reduction with the reduced axes put back, with size 1."""
    return lax.expand_dims(x, sorted(axes)) if axes else x


# ---- sums and products -------------------------------------------------------------------------
def sum_dtype(name: str, x: Array, dtype: DTypeLike | None, widen: bool = True) -> np.dtype:
    """The dtype of a sum or product: small integers and booleans become default ones."""
    if dtype is not None:
        return requested_dtype(dtype, name)
    have = x.dtype
    if dtypes.is_inexact(have) or not (widen or have == np.bool_):
        return have
    default = dtypes.canonicalize(np.uint64 if dtypes.is_unsigned(have) else np.int64)
    return default if have == np.bool_ or have.itemsize < default.itemsize else have


def _accumulated(name: str, op: Callable[..., Array], neutral: int, a: ArrayLike, axis: Axis,
                 dtype: DTypeLike | None, keepdims: bool, initial: Any, where: Any,
                 promote_integers: bool) -> Array:  # fmt: skip
    x = asarray(a)
    to = sum_dtype(name, x, dtype, promote_integers)
    # 16-bit floats accumulate in float32 and are rounded once.
    work = np.dtype(np.float32) if dtypes.is_float(to) and to.itemsize < 4 else to
    x = convert(x, work)  # no longer weak, as all that is reduced
    combine = lax.add if neutral == 0 else lax.mul
    if to == np.bool_:
        op = lax.reduce_or if neutral == 0 else lax.reduce_and
        combine = lax.bitwise_or if neutral == 0 else lax.bitwise_and
    out = _reduce(name, op, x, axis, keepdims, where, neutral)
    if initial is not None:
        check_arraylike(name, initial)
        out = combine(convert(initial, work), out)
    return out if work == to else lax.convert_element_type(out, to)


def sum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
        promote_integers: bool = True) -> Array:  # fmt: skip
    """The sum over axes; 0 of nothing. Small integers are summed as int32 (int64 with x64).

    a                 an array of numbers or booleans
    axis              an axis, several, or None for all
    dtype             the dtype to compute in and to give; None: by a's
    out               must be None: arrays cannot be written to
    keepdims          whether the axes reduced stay, with size 1
    initial           a number that takes part beside the elements
    where             booleans that broadcast to a: which elements count
    promote_integers  whether narrow integers are widened first
    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    x = _prepared("sum", a, out)
    return _accumulated("sum", lax.reduce_sum, 0, x, axis, dtype, keepdims, initial, where,
                        promote_integers)  # fmt: skip


def prod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
         keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
         promote_integers: bool = True) -> Array:  # fmt: skip
    """The product over axes; 1 of nothing. Small integers are multiplied as int32.

    a                 an array of numbers or booleans
    axis              an axis, several, or None for all
    dtype             the dtype to compute in and to give; None: by a's
    out               must be None: arrays cannot be written to
    keepdims          whether the axes reduced stay, with size 1
    initial           a number that takes part beside the elements
    where             booleans that broadcast to a: which elements count
    promote_integers  whether narrow integers are widened first
    >>> jnp.prod(jnp.array([2, 3, 4]))
    Array(24, dtype=int32)
    """
    x = _prepared("prod", a, out)
    return _accumulated("prod", lax.reduce_prod, 1, x, axis, dtype, keepdims, initial, where,
                        promote_integers)  # fmt: skip


# ---- extrema -----------------------------------------------------------------------------------
def max(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """The largest element over axes, NaN if any is. ValueError of nothing without initial.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    initial   a number that takes part beside the elements
    where     which elements count, booleans that broadcast to a; then initial must be there
    >>> jnp.max(jnp.array([3, 1, 2]))
    Array(3, dtype=int32)
    """
    x = _prepared("max", a, out)
    return _extremum("max", lax.reduce_max, lax.max, x, axis, keepdims, initial, where)


def min(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """The smallest element over axes, NaN if any is. ValueError of nothing without initial.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    initial   a number that takes part beside the elements
    where     which elements count, booleans that broadcast to a; then initial must be there
    >>> jnp.min(jnp.array([[3, 1], [0, 2]]), axis=1).tolist()
    [1, 0]
    """
    x = _prepared("min", a, out)
    return _extremum("min", lax.reduce_min, lax.min, x, axis, keepdims, initial, where)


amax, amin = max, min


def _extremum(name: str, op: Callable[..., Array], combine: Callable[..., Array], x: Array,
              axis: Axis, keepdims: bool, initial: Any, where: Any) -> Array:  # fmt: skip
    axes = canonical_axes(axis, len(x.shape))
    if initial is None:
        if where is not None:
            raise ValueError(f"reduction operation {name} does not have an identity, so to use a "
                             "where mask one has to specify 'initial'")  # fmt: skip
        if (
            axes
            and np.prod([x.shape[i] for i in axes]) == 0
            and (np.prod([n for i, n in enumerate(x.shape) if i not in axes]) != 0)
        ):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    x = convert(x, x.dtype)
    neutral = dtypes.least(x.dtype) if name == "max" else dtypes.greatest(x.dtype)
    out = _reduce(name, op, x, axis, keepdims, where, neutral)
    if initial is not None:
        check_arraylike(name, initial)
        out = combine(convert(initial, x.dtype), out)
    return out


def minmax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
           where: ArrayLike | None = None) -> tuple[Array, Array]:  # fmt: skip
    """The smallest and the largest element over axes; NaN both if any is.

    a         an array; complex numbers are in the order of their real, then imaginary parts.
    axis      an axis, several, or None for all; with keepdims they stay, with size 1.
    initial   a number that takes part; a pair for one that does in each.
    where     which elements count; then `initial` must be there.

    Raises ValueError of nothing without initial.

    >>> jnp.minmax(jnp.array([3, 1, 2]))
    (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    x = _prepared("minmax", a, out)
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    for number in (low, high):
        if number is not None and np.shape(number):
            raise ValueError(
                f"initial value must be a scalar. Got array of shape {np.shape(number)}"
            )
    return (
        _extremum("min", lax.reduce_min, lax.min, x, axis, keepdims, low, where),
        _extremum("max", lax.reduce_max, lax.max, x, axis, keepdims, high, where),
    )


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """max(a) - min(a) over axes.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    >>> jnp.ptp(jnp.array([3, 1, 7]))
    Array(6, dtype=int32)
    """
    x = _prepared("ptp", a, out)
    return lax.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


# ---- truth -------------------------------------------------------------------------------------
def all(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Whether all elements over axes are nonzero; True of nothing.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    where     booleans that broadcast to a: which elements count
    >>> jnp.all(jnp.array([True, False]))
    Array(False, dtype=bool)
    """
    x = truth(_prepared("all", a, out))
    return _reduce("all", lax.reduce_and, x, axis, keepdims, where, True)


def any(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Whether an element over axes is nonzero; False of nothing.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1
    where     booleans that broadcast to a: which elements count
    >>> jnp.any(jnp.array([[0, 0], [0, 5]]), axis=1).tolist()
    [False, True]
    """
    x = truth(_prepared("any", a, out))
    return _reduce("any", lax.reduce_or, x, axis, keepdims, where, False)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of nonzero elements over axes.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    keepdims  whether the axes reduced stay, with size 1
    >>> jnp.count_nonzero(jnp.array([0, 3, 0, 1]))
    Array(2, dtype=int32)
    """
    x = truth(_prepared("count_nonzero", a, None))
    return sum(x, axis, dtype=dtypes.canonicalize(np.int64), keepdims=keepdims)


# ---- positions ---------------------------------------------------------------------------------
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
           ) -> Array:  # fmt: skip
    """The index of the first largest element (of the first NaN, if there is one).

    a         an array of numbers or booleans
    axis      an axis, or None for the index in the flattened array
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1

    Raises ValueError for an axis of size 0.

    >>> jnp.argmax(jnp.array([2, 9, 9]))
    Array(1, dtype=int32)
    """
    return _position("argmax", lax.argmax, a, axis, out, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
           ) -> Array:  # fmt: skip
    """The index of the first smallest element (of the first NaN, if there is one).

    a         an array of numbers or booleans
    axis      an axis, or None for the index in the flattened array
    out       must be None: arrays cannot be written to
    keepdims  whether the axes reduced stay, with size 1

    Raises ValueError for an axis of size 0.

    >>> jnp.argmin(jnp.array([[2, 1], [0, 5]]), axis=1).tolist()
    [1, 0]
    """
    return _position("argmin", lax.argmin, a, axis, out, keepdims)


def _position(name: str, op: Callable[..., Array], a: ArrayLike, axis: int | None, out: None,
              keepdims: bool | None) -> Array:  # fmt: skip
    x = _prepared(name, a, out)
    ndim = len(x.shape)
    if axis is None:
        x, at = lax.reshape(x, (x.size,)), 0
    else:
        at = canonical_axis(axis, ndim)
    if x.shape[at] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    found = op(x, at, dtypes.canonicalize(np.int64))
    if not keepdims:
        return found
    return lax.reshape(found, (1,) * ndim) if axis is None else lax.expand_dims(found, (at,))


# ---- means -------------------------------------------------------------------------------------
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
    x = _prepared("mean", a, out)
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

    Raises TypeError or ValueError where the shapes of a and weights do not go together.

    >>> jnp.average(jnp.array([1.0, 4.0]), weights=jnp.array([2, 1]))
    Array(2., dtype=float32)
    """
    x = _prepared("average", a, None)
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
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
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
    x = _prepared("var", a, out)
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
