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
from lamina.lax import hlo
from lamina.lax.checks import (
    accepted,
    canonical_shape,
    check_accepted,
    scalar_of,
)  # fmt: skip
from lamina.lax.random_keys import random_wrap


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None) -> Array:
    """An array of this shape (or length) with fill_value everywhere; weakly typed if fill_value is
    and no dtype is given."""
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
    x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None
) -> Array:
    """An array like x (its shape, dtype and weakness, unless others are given) with fill_value
    everywhere."""
    aval = get_aval(x)
    shape = aval.shape if shape is None else shape
    if dtype is None and aval.dtype == dtypes.float0:
        return np.zeros(shape, dtypes.float0)  # type: ignore[return-value]
    if dtype is None and aval.weak_type and isinstance(fill_value, bool | int | float | complex):
        return lax.broadcast_in_dim(scalar_of(aval, fill_value), shape, ())
    return full(shape, fill_value, aval.dtype if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None, shape: Sequence[int] | None = None) -> Array:
    """An array of zeros like x."""
    return full_like(x, 0, dtype, shape)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of this shape whose elements have no meaning (they are zeros)."""
    if out_sharding is not None:
        raise NotImplementedError("empty takes no out_sharding yet")
    return full(shape, 0, dtype)


def iota(dtype: Any, size: int) -> Array:
    """0, 1, 2, ... size - 1 in this dtype."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Array:
    """An array whose elements are their own index along `dimension`."""
    shape = canonical_shape(shape)
    if not 0 <= (dimension := operator.index(dimension)) < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}"
        )
    return iota_p.bind(dtype=dtypes.canonicalize(dtype), shape=shape, dimension=dimension)


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
