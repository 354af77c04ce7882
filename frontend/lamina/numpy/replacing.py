"""Arrays with some of their elements replaced: put place put_along_axis fill_diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core.library import library
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.editing import along, resized
from lamina.numpy.indexing import take
from lamina.numpy.logic import truth
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    check_arraylike,
)  # fmt: skip


def _refuse_inplace(name: str, inplace: bool, kind: type[Exception] = ValueError) -> None:
    if inplace:
        raise kind(
            f"{library}.numpy.{name} cannot modify arrays in-place, because {library.name}'s arrays are "
            "immutable. Pass inplace=False to instead return an updated array."
        )


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *,
        inplace: bool = True) -> Array:  # fmt: skip
    """a with v (repeated as often as needed) at the flat indices ind.

    a        an array
    ind      integers
    v        numbers
    inplace  must be False: arrays cannot be written to

    mode "clip" or "wrap" says what indices out of bounds mean; by default they change nothing.

    >>> jnp.put(jnp.array([1, 2, 3]), jnp.array([0, 2]), 9, inplace=False).tolist()
    [9, 2, 9]
    """
    _refuse_inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    x, index, values = asarray(a), asarray(ind), asarray(v)
    index, values = (lax.reshape(t, (t.size,)) for t in (index, values))
    if not x.size or not index.size or not values.size:
        return x
    if mode == "raise":
        raise NotImplementedError(f"The 'raise' mode to {library}.numpy.put is not supported.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode=}")
    values = resized(values, shape=index.shape) if values.shape != index.shape else values
    if mode == "clip":
        top = np.asarray(x.size - 1).astype(index.dtype)[()]
        index = lax.clamp(np.zeros((), index.dtype)[()], index, top)
    flat = lax.reshape(x, (x.size,))
    return lax.reshape(flat.at[index].set(values, mode=mode), x.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """arr with vals, one after another and over again, where mask holds.

    arr      an array
    mask     booleans of its size
    vals     a vector that is not empty
    inplace  must be False: arrays cannot be written to

    >>> jnp.place(jnp.array([1, 2, 3]), jnp.array([True, False, True]), 9, inplace=False).tolist()
    [9, 2, 9]
    """
    _refuse_inplace("place", inplace)
    check_arraylike("place", arr, mask, vals)
    x, where_, values = asarray(arr), truth(asarray(mask)), asarray(vals)
    if where_.size != x.size:
        raise ValueError("place: arr and mask must be the same size")
    if not values.size:
        raise ValueError("Cannot place values from an empty array")
    return x if not x.size else _place(x, where_, values)


@compiled
def _place(x: Any, mask: Any, values: Any) -> Array:
    flat = lax.reshape(mask, (x.size,))
    order = lax.sub(lax.cumsum(lax.convert_element_type(flat, np.int32), 0), np.int32(1))
    which = lax.rem(lax.max(order, np.int32(0)), np.int32(values.size))
    new = take(lax.reshape(values, (values.size,)), which, mode="clip")
    new = lax.convert_element_type(new, x.dtype)
    return lax.reshape(lax.select(flat, new, lax.reshape(x, (x.size,))), x.shape)


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None,
                   inplace: bool = True, *, mode: str | None = None) -> Array:  # fmt: skip
    """arr with values at indices along an axis, other axes going together: what take_along_axis
    reads.

    arr      an array
    indices  integers, with as many axes as arr
    values   numbers that broadcast to indices
    axis     the axis; None: of the flattened array
    inplace  must be False: arrays cannot be written to
    mode     what indices out of bounds mean

    >>> jnp.put_along_axis(jnp.array([1, 2]), jnp.array([1]), 9, 0, inplace=False).tolist()
    [1, 9]
    """
    _refuse_inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    x, index, v = asarray(arr), asarray(indices), asarray(values)
    shape = x.shape
    x, at = along(x, axis)
    if len(index.shape) != len(x.shape):
        raise ValueError(f"put_along_axis: indices must have {len(x.shape)} dimension(s), "
                         f"got {len(index.shape)}")  # fmt: skip
    full = tuple(n if i == at or n != 1 else x.shape[i] for i, n in enumerate(index.shape))
    index = broadcast_to_shape(index, full)
    where_ = tuple(
        index if i == at else lax.broadcasted_iota(np.int32, tuple(
            n if j == i else 1 for j, n in enumerate(full)), i)
        for i in range(len(full))
    )  # fmt: skip
    if axis is None and v.shape:
        v = lax.reshape(v, (v.size,)) if v.size == index.size else v
    return lax.reshape(x.at[where_].set(v, mode=mode), shape)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """a with val on its main diagonal: a scalar, or values that are repeated along it.

    a        an array of at least two axes
    val      numbers
    wrap     must be False
    inplace  must be False: arrays cannot be written to

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 1, inplace=False).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _refuse_inplace("fill_diagonal", inplace, NotImplementedError)
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    check_arraylike("fill_diagonal", a, val)
    x, v = asarray(a), asarray(val)
    if len(x.shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(x.shape) > 2 and len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(x.shape)
    if v.shape:
        v = resized(lax.reshape(v, (v.size,)), shape=(n,)) if n and v.size else v
    i = np.arange(n, dtype=np.int32)
    return x.at[(i,) * len(x.shape)].set(v) if n else x
