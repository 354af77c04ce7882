"""Shape and order of axes: reshape ravel transpose moveaxis squeeze expand_dims broadcast_to ..."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np

from lamina import lax
from lamina.array import distinct
from lamina.core.library import library
from lamina.core.placed import undecided
from lamina.numpy.creation import as_shape, asarray
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    canonical_axes,
    canonical_axis,
    check_arraylike,
)  # fmt: skip
from lamina.numpy.promotion import (
    broadcast_shapes as broadcast_shapes,
)


def checked(name: str, *arrays: ArrayLike) -> list[Array]:
    check_arraylike(name, *arrays)
    return [asarray(a) for a in arrays]


# ---- shape -------------------------------------------------------------------------------------
def reshape(
    a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The elements of a in another shape, in which one size may be -1 (what is left).

    a      an array
    shape  an int or a tuple of ints
    order  "C" (last axis fastest) or "F"
    copy   whether the result must be a copy; None: as it comes
    out_sharding  how it lies on devices, a sharding or None

    order "F" reads and writes with the first axis fastest. TypeError where the sizes don't match.

    >>> jnp.reshape(jnp.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if out_sharding is not None:
        with undecided():
            out = reshape(a, shape, order, copy=copy)
        return lax.under(out, out_sharding)
    (a,) = checked("reshape", a)
    sizes = _new_sizes(a.shape, shape)
    if order == "C":
        return lax.reshape(a, sizes)
    if order == "F":
        back = lambda x: lax.transpose(x, tuple(reversed(range(len(x.shape)))))  # noqa: E731
        return back(lax.reshape(back(a), sizes[::-1]))
    if order == "A":
        raise NotImplementedError(f"{library}.numpy.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def _new_sizes(old: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    sizes = as_shape(shape)
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    total = math.prod(old)
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {sizes}")
    if unknown:
        known = math.prod(n for n in sizes if n != -1)
        if known == 0 or total % known:
            raise TypeError(
                f"cannot reshape array of shape {old} (size {total}) into shape {sizes} because "
                f"the product of specified axis sizes ({known}) does not evenly divide {total}"
            )
        at = unknown[0]
        return (*sizes[:at], total // known, *sizes[at + 1 :])
    if math.prod(sizes) != total or any(n < 0 for n in sizes):
        raise TypeError(
            f"cannot reshape array of shape {old} (size {total}) into shape {sizes} "
            f"(size {math.prod(sizes)})"
        )
    return sizes


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements of a along one axis.

    a      an array
    order  "C" (last axis fastest) or "F"
    out_sharding  how the result lies on devices, a sharding or None

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    check_arraylike("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    with undecided(out_sharding is not None):
        out = distinct(reshape(a, (asarray(a).size,), order), a)
    return out if out_sharding is None else lax.under(out, out_sharding)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """a without the named axes (None: all) of size 1; ValueError if one has another size.

    a     an array
    axis  an axis or several; None: all of size 1
    >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
    (3,)
    """
    (a,) = checked("squeeze", a)
    if axis is None:
        axes = tuple(i for i, n in enumerate(a.shape) if n == 1)
    else:
        axes = canonical_axes(axis, len(a.shape))
    return distinct(lax.squeeze(a, axes), a)


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """a with axes of size 1 put in, at these positions of the result.

    a     an array
    axis  a position or several, counted in the result

    Raises ValueError for a position out of range or named twice.

    >>> jnp.expand_dims(jnp.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    (a,) = checked("expand_dims", a)
    added = tuple(axis) if isinstance(axis, Iterable) and np.ndim(axis) else (axis,)
    axes = canonical_axes(added, len(a.shape) + len(added))
    return lax.expand_dims(a, axes)


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...


@overload
def atleast_1d(*arys: ArrayLike) -> Any: ...


def atleast_1d(*arys: ArrayLike) -> Any:
    """Each array with at least one axis.

    arys  arrays or numbers; several of them give a tuple
    >>> jnp.atleast_1d(5).tolist()
    [5]
    """
    return _atleast("atleast_1d", arys, lambda a: lax.reshape(a, (1,)) if not a.shape else a)


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...


@overload
def atleast_2d(*arys: ArrayLike) -> Any: ...


def atleast_2d(*arys: ArrayLike) -> Any:
    """Each array with at least two axes, added in front.

    arys  arrays or numbers; several of them give a tuple
    >>> jnp.atleast_2d(jnp.array([1, 2])).tolist()
    [[1, 2]]
    """
    return _atleast(
        "atleast_2d", arys,
        lambda a: a if len(a.shape) >= 2 else lax.reshape(a, (1,) * (2 - len(a.shape)) + a.shape),
    )  # fmt: skip


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...


@overload
def atleast_3d(*arys: ArrayLike) -> Any: ...


def atleast_3d(*arys: ArrayLike) -> Any:
    """Each array with at least three axes; vectors become (1, n, 1), matrices (m, n, 1).

    arys  arrays or numbers; several of them give a tuple
    >>> jnp.atleast_3d(jnp.array([1, 2])).shape
    (1, 2, 1)
    """

    def grow(a: Array) -> Array:
        if len(a.shape) >= 3:
            return a
        return lax.reshape(a, (*a.shape, 1) if len(a.shape) == 2 else (1, *(a.shape or (1,)), 1))

    return _atleast("atleast_3d", arys, grow)


def _atleast(name: str, arrays: tuple[ArrayLike, ...], grow: Any) -> Any:
    out = tuple(distinct(grow(a), a) for a in checked(name, *arrays))
    return out[0] if len(out) == 1 else out


# ---- order of axes -----------------------------------------------------------------------------
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """a with its axes reversed, or in the order named.

    a     an array
    axes  each axis of a once, in the new order; None: reversed
    >>> jnp.transpose(jnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    (a,) = checked("transpose", a)
    ndim = len(a.shape)
    if axes is None:
        return lax.transpose(a, tuple(reversed(range(ndim))))
    order = [operator.index(i) for i in axes]
    return lax.transpose(a, [i + ndim if -ndim <= i < 0 else i for i in order])


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """transpose of the array API.

    a     an array
    axes  each axis of a once, in the new order
    >>> jnp.permute_dims(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """x with its last two axes swapped.

    x  an array of at least two axes; ValueError of fewer
    >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    (x,) = checked("matrix_transpose", x)
    if len(x.shape) < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={len(x.shape)}"
        )
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """a with two axes exchanged.

    a             an array
    axis1, axis2  the two axes
    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    (a,) = checked("swapaxes", a)
    order = list(range(len(a.shape)))
    i, j = canonical_axis(axis1, len(order)), canonical_axis(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return lax.transpose(a, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """a with some axes moved and the others in their order.

    a            an array
    source       an axis or several
    destination  where each of them is in the result

    Raises ValueError where the two differ in number.

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    (a,) = checked("moveaxis", a)
    ndim = len(a.shape)
    sources, destinations = canonical_axes(source, ndim), canonical_axes(destination, ndim)
    if len(sources) != len(destinations):
        raise ValueError("Inconsistent number of elements: "
                         f"{len(sources)} vs {len(destinations)}")  # fmt: skip
    order = [i for i in range(ndim) if i not in sources]
    for to, origin in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, origin)
    return lax.transpose(a, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """a with one axis moved back until it lies before position `start`.

    a      an array
    axis   the axis to move
    start  the position, counted in a
    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    (a,) = checked("rollaxis", a)
    ndim = len(a.shape)
    at, to = canonical_axis(axis, ndim), operator.index(start)
    if not -ndim <= to <= ndim:
        raise ValueError(f"start={start} must satisfy {-ndim}<=start<={ndim}")
    to = to + ndim if to < 0 else to
    return moveaxis(a, at, to - 1 if to > at else to)


# ---- broadcasting ------------------------------------------------------------------------------
@takes_out_sharding
def broadcast_to(array: ArrayLike, shape: Any) -> Array:
    """array repeated to fill a shape by NumPy's rules; ValueError where it does not fit.

    array  an array or number
    shape  the shape of the result
    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    (array,) = checked("broadcast_to", array)
    return broadcast_to_shape(array, as_shape(shape))


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """The arrays repeated to their common shape.

    args  arrays or numbers whose shapes agree, or are 1, axis by axis from the last

    Raises ValueError where they do not.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros((2, 1)), jnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    arrays = checked("broadcast_arrays", *args)
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return tuple(broadcast_to_shape(a, shape) for a in arrays)
