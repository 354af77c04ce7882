"""Arrays from nothing: full, full_like, zeros_like, iota."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import (
    NO_OPERANDS,
    NOT_DIFFERENTIABLE,
    NOT_LINEAR,
    Primitive,
    ShapedArray,
    dtypes,
    get_aval,
)  # fmt: skip
from lamina.core.array_class import Array
from lamina.core.placed import is_undecided
from lamina.lax import hlo
from lamina.lax.checks import (
    accepted,
    canonical_shape,
    check_accepted,
    scalar_of,
)  # fmt: skip
from lamina.lax.random_keys import random_wrap


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array with fill_value everywhere.

    shape       a tuple of ints, or an int for a vector of that length.
    fill_value  a number or an array of rank 0.
    dtype       of the result, by default fill_value's; weakly typed then if fill_value is.
    sharding    how it lies on devices, a sharding or None.

    Raises TypeError where fill_value is no scalar or a size is negative.

    >>> print(lax.full((2, 3), 7))
    [[7 7 7]
     [7 7 7]]
    """
    if sharding is not None:
        return lax.laid(full(shape, fill_value, dtype), sharding)
    if np.shape(fill_value) != ():
        raise TypeError(
            "full must be called with scalar fill_value, got fill_value.shape "
            f"{np.shape(fill_value)}."
        )
    shape = (shape,) if isinstance(shape, int) else shape
    if dtype == dtypes.float0:  # which has no values
        return np.zeros(shape, dtypes.float0)  # type: ignore[return-value]
    if dtypes.is_key(dtype) and get_aval(fill_value).dtype != dtype:
        words = full((dtype.words,), fill_value, np.uint32)
        return lax.broadcast_in_dim(random_wrap(words, dtype), shape, ())
    if dtype is not None:
        fill_value = lax.convert_element_type(fill_value, dtype)
    return lax.broadcast_in_dim(fill_value, shape, ())


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None, *, sharding: Any = None
) -> Array:
    """An array like x with fill_value everywhere.

    x           an array or a number.
    fill_value  a number or an array of rank 0.
    dtype       of the result, by default x's (weakly typed if x is).
    shape       of the result, by default x's.
    sharding    how it lies on devices; None: where x was put, if that is one device or the shape is x's.

    Raises TypeError where fill_value is no scalar.

    >>> lax.full_like(jnp.array([1.5, 2.5]), 9)
    Array([9., 9.], dtype=float32)
    """
    aval = get_aval(x)
    shape = aval.shape if shape is None else shape
    if sharding is None and not is_undecided():
        sharding = lax.place_like(x, tuple(shape))
    if dtype is None and aval.dtype == dtypes.float0:
        return np.zeros(shape, dtypes.float0)  # type: ignore[return-value]
    if dtype is None and aval.weak_type and isinstance(fill_value, bool | int | float | complex):
        out = lax.broadcast_in_dim(scalar_of(aval, fill_value), shape, ())
    else:
        out = full(shape, fill_value, aval.dtype if dtype is None else dtype)
    return out if sharding is None else lax.laid(out, sharding)


def zeros_like(x: Any, dtype: Any = None, shape: Sequence[int] | None = None) -> Array:
    """An array of zeros like x.

    x      an array or a number.
    dtype  of the result, by default x's.
    shape  of the result, by default x's.

    >>> print(lax.zeros_like(jnp.array([1.5, 2.5]), shape=(3,)))
    [0. 0. 0.]
    """
    return full_like(x, 0, dtype, shape)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of this shape for a program that will write all of it. Its elements have no meaning;
    they are zeros, for programs here have no memory that was not written.

    shape         a tuple of ints.
    dtype         of the elements.
    out_sharding  how it lies on devices, a sharding or None.

    >>> lax.empty((2, 3), 'float32').shape
    (2, 3)
    """
    if out_sharding is not None:
        raise NotImplementedError("empty takes no out_sharding yet")
    return full(shape, 0, dtype)


def iota(dtype: Any, size: int) -> Array:
    """0, 1, 2, ... size - 1.

    dtype  of the result, any numeric one.
    size   the length of the vector, a Python int.

    Raises TypeError for booleans and a negative size.

    >>> print(lax.iota('int32', 4))
    [0 1 2 3]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Array:
    """An array each of whose elements is its own index along one dimension.

    dtype      of the result, any numeric one.
    shape      of the result, a tuple of ints.
    dimension  the one along which the elements rise, from 0 to len(shape) - 1.
    out_sharding  how it lies on devices, a sharding or None.

    Raises ValueError where there is no such dimension; TypeError for booleans.

    >>> print(lax.broadcasted_iota('int32', (2, 3), 1))
    [[0 1 2]
     [0 1 2]]
    """
    shape = canonical_shape(shape)
    if not 0 <= (dimension := operator.index(dimension)) < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}"
        )
    out = iota_p.bind(dtype=dtypes.canonicalize(dtype), shape=shape, dimension=dimension)
    return out if out_sharding is None else lax.under(out, out_sharding)


# ---- iota --------------------------------------------------------------------------------------
_INDEXABLE = accepted("integer", "floating", "complexfloating")


def _iota_abstract_eval(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> ShapedArray:
    aval = ShapedArray(shape, dtype)
    check_accepted("iota", _INDEXABLE, aval)
    return aval


def _iota_lowering(ctx: Any, *, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> Any:
    return hlo.iota(shape, dtype, dimension)


iota_p: Primitive = Primitive(
    "iota",
    abstract_eval=_iota_abstract_eval,
    lowering=_iota_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=NO_OPERANDS,
)
