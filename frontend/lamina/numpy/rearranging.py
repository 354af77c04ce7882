"""Elements in another order, or repeated: flip rot90 roll tile repeat."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core.library import library
from lamina.core.placed import check_unsplit
from lamina.core.trace import Tracer, get_aval
from lamina.numpy.creation import asarray
from lamina.numpy.manipulation import broadcast_to, checked, swapaxes
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    canonical_axes,
    canonical_axis,
)  # fmt: skip
from lamina.numpy.promotion import (
    broadcast_shapes as broadcast_shapes,
)


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """m read backwards along axes (None: all).

    m     an array
    axis  an axis or several; None: all
    >>> jnp.flip(jnp.array([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    (m,) = checked("flip", m)
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
    (m,) = checked("rot90", m)
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
    (a,) = checked("roll", a)
    if axis is None:
        return lax.reshape(roll(lax.reshape(a, (a.size,)), shift, 0), a.shape)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    steps = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if len(steps) == 1:
        if get_aval(steps[0]).ndim == 1:
            steps = list(asarray(steps[0]))
        else:
            steps = steps * len(axes)
    if len(axes) == 1:
        axes = axes * len(steps)
    if len(steps) != len(axes):
        raise ValueError(f"{library}.numpy.roll: shift and axis do not broadcast together, got "
                         f"{len(steps)} shifts and {len(axes)} axes")  # fmt: skip
    rolled = [canonical_axis(i, len(a.shape)) for i in axes]
    check_unsplit("roll", get_aval(a), rolled, "`a` cannot be sharded on the axis being rolled over")
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


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """A repeated as a whole, reps times along each axis (counted from the last).

    A     an array
    reps  an int, or one for each axis
    >>> jnp.tile(jnp.array([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    (A,) = checked("tile", A)
    counts = tuple(operator.index(r) for r in (reps if np.iterable(reps) else (reps,)))  # type: ignore[arg-type,union-attr]
    ndim = max(len(counts), len(A.shape))
    counts = (1,) * (ndim - len(counts)) + counts
    sizes = (1,) * (ndim - len(A.shape)) + A.shape
    repeated = [i - (ndim - A.ndim) for i in range(ndim - A.ndim, ndim) if counts[i] != 1]
    check_unsplit("tile", get_aval(A), repeated, "`A` cannot be sharded along axes along which tiling is non-trivial")
    # Each axis becomes (repetition, element), all repetitions at once.
    spread = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    kept = [2 * i + 1 for i in range(ndim - len(A.shape), ndim)]
    return lax.reshape(lax.broadcast_in_dim(A, spread, kept),
                       tuple(c * n for c, n in zip(counts, sizes, strict=True)))  # fmt: skip


@takes_out_sharding
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
    (a,) = checked("repeat", a)
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
