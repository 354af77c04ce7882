"""Sorting: sort argsort lexsort sort_complex."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    canonical_axis,
    check_arraylike,
    requested_dtype,
)  # fmt: skip


def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Array:  # fmt: skip
    """The elements in ascending order along an axis (None: of all), NaN last; descending: first.

    a            an array of numbers
    axis         the axis; None: of the flattened array
    kind, order  must be None; ask for a stable sort by `stable`
    stable       whether equal elements keep their order
    descending   whether the greatest comes first

    >>> jnp.sort(jnp.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    x, at = _sorted_axis("sort", a, axis, kind, order)
    return _sort(x, axis=at, stable=bool(stable), descending=bool(descending))


@compiled(static=("axis", "stable", "descending"))
def _sort(x: Any, *, axis: int, stable: bool, descending: bool) -> Array:
    out = lax.sort(x, axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that put the elements in order; equal ones keep theirs, also descending.

    a            an array of numbers
    axis         the axis; None: of the flattened array
    kind, order  must be None; ask for a stable sort by `stable`
    stable       whether equal elements keep their order
    descending   whether the greatest comes first
    dtype        the dtype of the indices

    >>> jnp.argsort(jnp.array([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    x, at = _sorted_axis("argsort", a, axis, kind, order)
    to = requested_dtype(dtype, "argsort", keep=dtypes.canonicalize(np.int64))
    return _argsort(x, axis=at, stable=bool(stable), descending=bool(descending), dtype=to)


@compiled(static=("axis", "stable", "descending", "dtype"))
def _argsort(x: Any, *, axis: int, stable: bool, descending: bool, dtype: np.dtype) -> Array:
    index = lax.broadcasted_iota(dtype, x.shape, axis)
    if not descending:
        return lax.sort((x, index), axis, is_stable=stable)[1]
    # Sorting the reversed array and reversing the result keeps ties in order.
    found = lax.sort((lax.rev(x, (axis,)), lax.rev(index, (axis,))), axis, is_stable=stable)[1]
    return lax.rev(found, (axis,))


def _sorted_axis(
    name: str, a: ArrayLike, axis: int | None, kind: Any, order: Any
) -> tuple[Array, int]:
    check_arraylike(name, a)
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False "
            "to specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    x = asarray(a)
    if axis is None:
        return lax.reshape(x, (x.size,)), 0
    return x, canonical_axis(axis, len(x.shape))


def lexsort(keys: Any, axis: int = -1, *, batch_size: int = 16) -> Array:
    """The indices that sort by several keys, the last of them first in importance.

    keys        arrays of one shape, or one array whose first axis runs over them.
    axis        the axis to sort along.
    batch_size  so many keys at most are compared by one sort; more keys are sorted by in batches,
                those of least importance first.

    Raises TypeError without keys, ValueError where shapes differ or batch_size is not positive.

    >>> jnp.lexsort([jnp.array([4, 2, 3]), jnp.array([2, 1, 1])])
    Array([1, 2, 0], dtype=int32)
    """
    batch_size = operator.index(batch_size)
    if batch_size < 1:
        raise ValueError(f"lexsort: batch_size must be positive, got {batch_size}")
    stacked = hasattr(keys, "shape")
    parts = [asarray(k) for k in (keys if not stacked or keys.shape else ())]
    if not parts:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({p.shape for p in parts}) > 1:
        raise ValueError("all keys need to be the same shape")
    if not parts[0].shape:
        return asarray(np.zeros((), dtypes.canonicalize(np.int64)))
    at = canonical_axis(axis, len(parts[0].shape))
    return _lexsort(parts, axis=at, batch_size=batch_size)


@compiled(static=("axis", "batch_size"))
def _lexsort(keys: Sequence[Any], *, axis: int, batch_size: int) -> Array:
    order = lax.broadcasted_iota(dtypes.canonicalize(np.int64), keys[0].shape, axis)
    for start in range(0, len(keys), batch_size):  # each sort is stable
        batch = keys[start : start + batch_size][::-1]
        if start:
            batch = [lax.take_along_axis(k, order, axis, mode="promise_in_bounds") for k in batch]
        order = lax.sort((*batch, order), axis, num_keys=len(batch))[-1]
    return order


def sort_complex(a: ArrayLike) -> Array:
    """The elements in order along the last axis, as complex numbers.

    a  an array of at least one axis

    >>> jnp.sort_complex(jnp.array([2, 1j])).tolist()
    [1j, (2+0j)]
    """
    check_arraylike("sort_complex", a)
    x = sort(a)
    return lax.convert_element_type(x, dtypes.complex_dtype(dtypes.inexact_dtype(x.dtype)))
