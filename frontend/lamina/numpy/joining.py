"""Joining and splitting arrays: concatenate stack hstack append block split array_split ..."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core.library import library
from lamina.core.placed import check_unsplit
from lamina.core.trace import get_aval
from lamina.numpy.creation import asarray
from lamina.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d, ravel
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    convert,
    promote_dtypes,
    refuse_out,
    requested_dtype,
)  # fmt: skip


def _sequence(name: str, arrays: Any) -> list[Any]:
    if hasattr(arrays, "shape") and not isinstance(arrays, (list, tuple)):
        if not arrays.shape:
            raise ValueError("Zero-dimensional arrays cannot be concatenated.")
        return list(asarray(arrays))
    if not isinstance(arrays, Sequence):
        raise TypeError(f"{name} requires a sequence of arrays, got {type(arrays)}")
    return list(arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays one after another along an axis (None: flattened), in their common dtype.

    arrays  a sequence of arrays, or one array whose slices are joined
    axis    the axis; None: of the flattened arrays
    dtype   the dtype of the result; None: the common one

    Raises ValueError without arrays, and where other axes differ in size.

    >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])]).tolist()
    [1, 2, 3]
    """
    parts = _sequence("concatenate", arrays)
    if not parts:
        raise ValueError("Need at least one array to concatenate.")
    parts = list(check_arraylike("concatenate", *parts))
    if axis is None:
        return concatenate([ravel(p) for p in parts], 0, dtype)
    if np.ndim(parts[0]) == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    at = canonical_axis(axis, np.ndim(parts[0]))
    if dtype is None:
        parts = promote_dtypes(*parts)
    else:
        to = requested_dtype(dtype, "concatenate")
        parts = [convert(p, to) for p in parts]
    return lax.concatenate([asarray(p) for p in parts], at)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """concatenate of the array API.

    arrays  a sequence of arrays, or one array whose slices are joined
    axis    the axis; None: of the flattened arrays

    >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])]).tolist()
    [1, 2, 3]
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape along a new axis.

    arrays  a sequence of arrays, or one array whose slices are joined
    axis    where the new axis is in the result
    out     must be None
    dtype   the dtype of the result; None: the common one

    Raises ValueError without arrays, and where shapes differ.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    refuse_out("stack", out)
    parts = _sequence("stack", arrays)
    if not parts:
        raise ValueError("Need at least one array to stack.")
    parts = list(check_arraylike("stack", *parts))
    shapes = [np.shape(p) if not hasattr(p, "shape") else tuple(p.shape) for p in parts]
    if any(s != shapes[0] for s in shapes):
        raise ValueError(
            f"All input arrays must have the same shape. Got {', '.join(map(str, shapes))}."
        )
    at = canonical_axis(axis, len(shapes[0]) + 1)
    if dtype is None:
        parts = promote_dtypes(*parts)
    else:
        to = requested_dtype(dtype, "stack")
        parts = [convert(p, to) for p in parts]
    return lax.concatenate([lax.expand_dims(p, (at,)) for p in parts], at)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of x along an axis.

    x     an array of at least one axis
    axis  the axis that goes

    >>> [row.tolist() for row in jnp.unstack(jnp.array([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    check_arraylike("unstack", x)
    x = asarray(x)
    if not x.shape:
        raise ValueError(
            "Unstack requires arrays with rank > 0, however a scalar array was passed."
        )
    at = canonical_axis(axis, len(x.shape))
    check_unsplit("unstack", get_aval(x), [at], "unstack operand cannot be sharded on the unstacking axis")
    return tuple(lax.index_in_dim(x, i, at, keepdims=False) for i in range(x.shape[at]))


def hstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays side by side: along the second axis, vectors along their only one.

    tup    a sequence of arrays, or one array whose slices are joined
    dtype  the dtype of the result; None: the common one

    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])]).tolist()
    [1, 2, 3]
    """
    parts = _atleast(atleast_1d, _sequence("hstack", tup))
    return concatenate(parts, 0 if parts and len(parts[0].shape) == 1 else 1, dtype)


def vstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays on top of each other: along the first axis, vectors as rows.

    tup    a sequence of arrays, or one array whose slices are joined
    dtype  the dtype of the result; None: the common one

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return concatenate(_atleast(atleast_2d, _sequence("vstack", tup)), 0, dtype)


def dstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays behind each other: along the third axis.

    tup    a sequence of arrays, or one array whose slices are joined
    dtype  the dtype of the result; None: the common one

    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])]).shape
    (1, 2, 2)
    """
    return concatenate(_atleast(atleast_3d, _sequence("dstack", tup)), 2, dtype)


def column_stack(tup: Any) -> Array:
    """Arrays side by side, vectors as columns.

    tup  a sequence of arrays, or one array whose slices are joined

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [asarray(a) for a in _sequence("column_stack", tup)]
    return concatenate([lax.reshape(a, (a.size, 1)) if len(a.shape) < 2 else a for a in parts], 1)


def _atleast(grow: Callable[..., Any], parts: list[ArrayLike]) -> list[Array]:
    return [grow(p) for p in parts]


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """values behind arr, flattened both without axis.

    arr, values  arrays
    axis         the axis; None: both are flattened

    >>> jnp.append(jnp.array([1, 2]), 3).tolist()
    [1, 2, 3]
    """
    return concatenate([arr, values], axis)


def block(arrays: Any) -> Array:
    """One array from nested lists of blocks: the innermost lists along the last axis.

    arrays  an array, or lists of equal depth of arrays

    ValueError where lists are empty, of unequal depth or tuples.

    >>> jnp.block([[jnp.ones((1, 1)), jnp.zeros((1, 2))]]).tolist()
    [[1.0, 0.0, 0.0]]
    """

    def depth(x: Any) -> int:
        if isinstance(x, tuple):
            raise ValueError(f"{library}.numpy.block does not allow tuples, got {x}: make a list of it")
        if not isinstance(x, list):
            return 0
        if not x:
            raise ValueError("block: lists cannot be empty")
        depths = {depth(item) for item in x}
        if len(depths) > 1:
            raise ValueError(
                f"Mismatched list depths in {library}.numpy.block: items of one list have {sorted(depths)} "
                "lists in them; write [[a], [b]] for a above b"
            )
        return 1 + depths.pop()

    levels = depth(arrays)

    def rank(x: Any) -> int:
        return max(map(rank, x)) if isinstance(x, list) else np.ndim(x)

    ndim = max(rank(arrays), levels)

    def build(x: Any, level: int) -> Array:
        if isinstance(x, list):
            return concatenate([build(item, level - 1) for item in x], -level)
        x = asarray(x)
        return lax.reshape(x, (1,) * (ndim - len(x.shape)) + x.shape)

    return build(arrays, levels)


# ---- splitting ---------------------------------------------------------------------------------
def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Equal parts of ary along an axis, or the parts between indices.

    ary                  an array
    indices_or_sections  the number of parts, or a sequence of the indices where a new one begins
    axis                 the axis

    Raises ValueError where a number of parts does not divide the axis.

    >>> [x.tolist() for x in jnp.split(jnp.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of ary along an axis, as equal as they can be, or the parts between indices.

    ary                  an array
    indices_or_sections  the number of parts, or a sequence of the indices where a new one begins
    axis                 the axis

    >>> [x.tolist() for x in jnp.array_split(jnp.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Parts along the second axis (of a vector, its only one).

    ary                  an array
    indices_or_sections  the number of parts, or a sequence of the indices where a new one begins

    >>> [x.tolist() for x in jnp.hsplit(jnp.arange(4), [1])]
    [[0], [1, 2, 3]]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Parts along the first axis.

    ary                  an array
    indices_or_sections  the number of parts, or a sequence of the indices where a new one begins

    >>> [x.tolist() for x in jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Parts along the third axis.

    ary                  an array
    indices_or_sections  the number of parts, or a sequence of the indices where a new one begins

    >>> [x.shape for x in jnp.dsplit(jnp.zeros((1, 1, 4)), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


def _split(name: str, ary: ArrayLike, where: Any, axis: int) -> list[Array]:
    check_arraylike(name, ary)
    ary = asarray(ary)
    at = canonical_axis(axis, len(ary.shape))
    n = ary.shape[at]
    if isinstance(where, (list, tuple)) or np.ndim(where) == 1:
        message = f"in {library}.numpy.{name} argument 1"
        cuts = [operator.index(concrete_or_error(i, message)[()]) for i in where]
        bounds = [0, *(min(max(c + n if c < 0 else c, 0), n) for c in cuts), n]
        if any(a > b for a, b in zip(bounds, bounds[1:], strict=False)):
            return [lax.slice_in_dim(ary, a, max(a, b), axis=at)
                    for a, b in zip(bounds, bounds[1:], strict=False)]  # fmt: skip
    else:
        parts = operator.index(concrete_or_error(where, f"in {library}.numpy.{name} argument 1")[()])
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.")
        size, rest = divmod(n, parts)
        if rest and name != "array_split":
            raise ValueError(f"array split does not result in an equal division: rest is {rest}")
        bounds = [i * size + min(i, rest) for i in range(parts + 1)]
    return list(lax.split(ary, [b - a for a, b in zip(bounds, bounds[1:], strict=False)], at))
