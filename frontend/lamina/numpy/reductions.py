"""Reductions over axes: sum prod max min minmax all any argmax argmin count_nonzero ptp.

`axis` is an int, a tuple or None for all; `keepdims` keeps reduced axes with size 1; `where` says
which elements count; `initial` takes part in the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes, get_aval
from lamina.core.wrapping import renamed
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
    refuse_out,
    requested_dtype,
)  # fmt: skip


def prepared(name: str, a: ArrayLike, out: None) -> Array:
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


def _scalar(name: str, initial: Any) -> Any:
    check_arraylike(name, initial)
    if np.shape(initial):
        raise ValueError(f"{name}: initial value must be a scalar. Got array of shape {np.shape(initial)}")
    return initial


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
        out = combine(convert(_scalar(name, initial), work), out)
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
    x = prepared("sum", a, out)
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
    x = prepared("prod", a, out)
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
    x = prepared("max", a, out)
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
    x = prepared("min", a, out)
    return _extremum("min", lax.reduce_min, lax.min, x, axis, keepdims, initial, where)


amax = renamed(max, "amax")
amin = renamed(min, "amin")


def _extremum(name: str, op: Callable[..., Array], combine: Callable[..., Array], x: Array,
              axis: Axis, keepdims: bool, initial: Any, where: Any) -> Array:  # fmt: skip
    axes = canonical_axes(axis, len(x.shape))
    if initial is None:
        if where is not None:
            raise ValueError(f"reduction operation {name} does not have an identity, so to use a "
                             "where mask one has to specify 'initial'")  # fmt: skip
        if (
            axes
            and math.prod(x.shape[i] for i in axes) == 0
            and math.prod(n for i, n in enumerate(x.shape) if i not in axes) != 0
        ):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    x = convert(x, x.dtype)
    neutral = None
    if where is not None:
        neutral = dtypes.least(x.dtype) if name == "max" else dtypes.greatest(x.dtype)
    out = _reduce(name, op, x, axis, keepdims, where, neutral)
    if initial is not None:
        out = combine(convert(_scalar(name, initial), x.dtype), out)
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
    x = prepared("minmax", a, out)
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
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
    return _range(prepared("ptp", a, out), _hashable(axis), keepdims)


@compiled(static=("axis", "keepdims"))
def _range(x: Array, axis: Axis, keepdims: bool) -> Array:
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
    x = convert(truth(prepared("all", a, out)), np.dtype(bool))
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
    x = convert(truth(prepared("any", a, out)), np.dtype(bool))
    return _reduce("any", lax.reduce_or, x, axis, keepdims, where, False)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of nonzero elements over axes.

    a         an array of numbers or booleans
    axis      an axis, several, or None for all
    keepdims  whether the axes reduced stay, with size 1
    >>> jnp.count_nonzero(jnp.array([0, 3, 0, 1]))
    Array(2, dtype=int32)
    """
    return _count(prepared("count_nonzero", a, None), _hashable(axis), keepdims)


@compiled(static=("axis", "keepdims"))
def _count(x: Array, axis: Axis, keepdims: bool) -> Array:
    return sum(truth(x), axis, dtype=dtypes.canonicalize(np.int64), keepdims=keepdims)


def _hashable(axis: Any) -> Axis:
    return tuple(axis) if isinstance(axis, list) else axis


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
    x = prepared(name, a, out)
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
