"""Shape and order of axes: reshape ravel transpose moveaxis squeeze expand_dims broadcast_to ..."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np

from lamina import lax
from lamina.core.library import library
from lamina.core.trace import Tracer
from lamina.numpy.creation import as_shape, asarray
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


def _checked(name: str, *arrays: ArrayLike) -> list[Array]:
    check_arraylike(name, *arrays)
    return [asarray(a) for a in arrays]


# ---- shape -------------------------------------------------------------------------------------
def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """The elements of a in another shape, in which one size may be -1 (what is left).

    a      an array
    shape  an int or a tuple of ints
    order  "C" (last axis fastest) or "F"
    copy   whether the result must be a copy; None: as it comes

    order "F" reads and writes with the first axis fastest. TypeError where the sizes don't match.

    >>> jnp.reshape(jnp.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    (a,) = _checked("reshape", a)
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


def ravel(a: ArrayLike, order: str = "C") -> Array:
    """The elements of a along one axis.

    a      an array
    order  "C" (last axis fastest) or "F"
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    check_arraylike("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return reshape(a, (asarray(a).size,), order)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """a without the named axes (None: all) of size 1; ValueError if one has another size.

    a     an array
    axis  an axis or several; None: all of size 1
    >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
    (3,)
    """
    (a,) = _checked("squeeze", a)
    if axis is None:
        return lax.squeeze(a, tuple(i for i, n in enumerate(a.shape) if n == 1))
    return lax.squeeze(a, canonical_axes(axis, len(a.shape)))


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """a with axes of size 1 put in, at these positions of the result.

    a     an array
    axis  a position or several, counted in the result

    Raises ValueError for a position out of range or named twice.

    >>> jnp.expand_dims(jnp.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    (a,) = _checked("expand_dims", a)
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
    out = tuple(grow(a) for a in _checked(name, *arrays))
    return out[0] if len(out) == 1 else out


# ---- order of axes -----------------------------------------------------------------------------
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """a with its axes reversed, or in the order named.

    a     an array
    axes  each axis of a once, in the new order; None: reversed
    >>> jnp.transpose(jnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    (a,) = _checked("transpose", a)
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
    (x,) = _checked("matrix_transpose", x)
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
    (a,) = _checked("swapaxes", a)
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
    (a,) = _checked("moveaxis", a)
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
    (a,) = _checked("rollaxis", a)
    ndim = len(a.shape)
    at, to = canonical_axis(axis, ndim), operator.index(start)
    if not -ndim <= to <= ndim:
        raise ValueError(f"start={start} must satisfy {-ndim}<=start<={ndim}")
    to = to + ndim if to < 0 else to
    return moveaxis(a, at, to - 1 if to > at else to)


# ---- broadcasting ------------------------------------------------------------------------------
def broadcast_to(array: ArrayLike, shape: Any) -> Array:
    """array repeated to fill a shape by NumPy's rules; ValueError where it does not fit.

    array  an array or number
    shape  the shape of the result
    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    (array,) = _checked("broadcast_to", array)
    return broadcast_to_shape(array, as_shape(shape))


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """The arrays repeated to their common shape.

    args  arrays or numbers whose shapes agree, or are 1, axis by axis from the last

    Raises ValueError where they do not.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros((2, 1)), jnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    arrays = _checked("broadcast_arrays", *args)
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return tuple(broadcast_to_shape(a, shape) for a in arrays)


# ---- order of elements -------------------------------------------------------------------------
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """m read backwards along axes (None: all).

    m     an array
    axis  an axis or several; None: all
    >>> jnp.flip(jnp.array([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    (m,) = _checked("flip", m)
    return lax.rev(m, canonical_axes(axis, len(m.shape)))


def fliplr(m: ArrayLike) -> Array:
    """m read backwards along its second axis.

    m  an array of at least two axes
    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """m read backwards along its first axis.

    m  an array of at least one axis
    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """m turned k times by 90 degrees, from the first of two axes towards the second.

    m     an array
    k     how many times; negative turns back
    axes  the two axes; ValueError where they are one
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    (m,) = _checked("rot90", m)
    if len(tuple(axes)) != 2:
        raise ValueError(f"rot90 requires two axes, got {axes}.")
    if len(m.shape) < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument of "
            f"shape {m.shape}"
        )
    first, second = canonical_axes(tuple(axes), len(m.shape))
    turns = operator.index(k) % 4
    if turns == 0:
        return m
    if turns == 2:
        return lax.rev(m, (first, second))
    swapped = swapaxes(m, first, second)
    return lax.rev(swapped, (first,) if turns == 1 else (second,))


def roll(a: ArrayLike, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """a with its elements moved along axes; what leaves at the end comes in at the front.

    a      an array
    shift  how far, an int or one for each axis
    axis   an axis or several; None: the flattened array

    Without axis the flattened array is rolled. Shifts may be traced.

    >>> jnp.roll(jnp.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    (a,) = _checked("roll", a)
    if axis is None:
        return lax.reshape(roll(lax.reshape(a, (a.size,)), shift, 0), a.shape)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    steps = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if len(steps) == 1:
        if np.ndim(steps[0]) == 1:
            steps = list(asarray(steps[0]))
        else:
            steps = steps * len(axes)
    if len(axes) == 1:
        axes = axes * len(steps)
    if len(steps) != len(axes):
        raise ValueError(f"{library}.numpy.roll: shift and axis do not broadcast together, got "
                         f"{len(steps)} shifts and {len(axes)} axes")  # fmt: skip
    for step, i in zip(steps, axes, strict=True):
        a = _roll_one(a, step, canonical_axis(i, len(a.shape)))
    return a


def _roll_one(a: Array, shift: Any, axis: int) -> Array:
    n = a.shape[axis]
    if n == 0:
        return a
    if isinstance(shift, Tracer):
        from lamina.numpy.arithmetic import remainder

        start = lax.sub(
            np.int32(n), remainder(lax.convert_element_type(shift, np.int32), np.int32(n))
        )
        return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), start, n, axis)
    cut = -operator.index(shift) % n
    if cut == 0:
        return a
    return lax.concatenate(
        [lax.slice_in_dim(a, cut, n, axis=axis), lax.slice_in_dim(a, 0, cut, axis=axis)], axis
    )


# ---- repetition --------------------------------------------------------------------------------
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """A repeated as a whole, reps times along each axis (counted from the last).

    A     an array
    reps  an int, or one for each axis
    >>> jnp.tile(jnp.array([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    (A,) = _checked("tile", A)
    counts = tuple(operator.index(r) for r in (reps if np.iterable(reps) else (reps,)))  # type: ignore[arg-type,union-attr]
    ndim = max(len(counts), len(A.shape))
    counts = (1,) * (ndim - len(counts)) + counts
    sizes = (1,) * (ndim - len(A.shape)) + A.shape
    # Each axis becomes (repetition, element), all repetitions at once.
    spread = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    kept = [2 * i + 1 for i in range(ndim - len(A.shape), ndim)]
    return lax.reshape(lax.broadcast_in_dim(A, spread, kept),
                       tuple(c * n for c, n in zip(counts, sizes, strict=True)))  # fmt: skip


def repeat(a: ArrayLike, repeats: Any, axis: int | None = None, *,
           total_repeat_length: int | None = None) -> Array:  # fmt: skip
    """Each element of a repeated along an axis, all alike or each by its own count.

    a                    an array
    repeats              an int, or one for each slice
    axis                 the axis; None: of the flattened array
    total_repeat_length  the size of the result along the axis

    Counts that are traced need total_repeat_length; a shorter result is padded with the last slice.

    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 3])).tolist()
    [1, 1, 2, 2, 2]
    """
    (a,) = _checked("repeat", a)
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    at = canonical_axis(axis, len(a.shape)) if a.shape else 0
    if not a.shape:
        a = lax.reshape(a, (1,))
    n = a.shape[at]
    if total_repeat_length is None:
        from lamina.numpy.promotion import concrete_or_error

        counts: Any = concrete_or_error(
            repeats,
            f"When {library}.numpy.repeat is traced, a traced `repeats` needs total_repeat_length.",
        )
        if counts.dtype.kind not in "iub":
            raise TypeError(f"repeat: repeats must be integers, got {repeats!r}")
        if counts.ndim == 0 or counts.size == 1:
            return _repeat_each(a, int(counts.reshape(())), at)
        counts = np.broadcast_to(counts.ravel(), (n,))
        index: Any = np.repeat(np.arange(n, dtype=np.int32), counts)
    else:
        from lamina.numpy.cumulative import cumsum
        from lamina.numpy.searching import searchsorted

        counts = broadcast_to(lax.convert_element_type(asarray(repeats), np.int32), (n,))
        steps = lax.iota(np.int32, total_repeat_length)
        index = searchsorted(cumsum(counts), steps, side="right")
        index = lax.min(lax.convert_element_type(index, np.int32), np.int32(max(n - 1, 0)))
    from lamina.numpy.indexing import take

    return take(a, index, axis=at, mode="clip")


def _repeat_each(a: Array, count: int, axis: int) -> Array:
    if count < 0:
        raise ValueError("repeats may not contain negative values.")
    shape = a.shape
    spread = (*shape[: axis + 1], count, *shape[axis + 1 :])
    kept = [i + (i > axis) for i in range(len(shape))]
    return lax.reshape(lax.broadcast_in_dim(a, spread, kept),
                       (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))  # fmt: skip
