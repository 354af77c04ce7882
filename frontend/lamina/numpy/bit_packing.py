"""Booleans as the bits of bytes: packbits unpackbits."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.logic import truth
from lamina.numpy.promotion import Array, ArrayLike, canonical_axis, check_arraylike


def _order(bitorder: str) -> np.ndarray:
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    shifts = np.arange(8, dtype=np.uint8)
    return shifts if bitorder == "little" else shifts[::-1].copy()


def _along_last(x: Array, axis: int | None) -> tuple[Array, int]:
    if axis is None:
        return lax.reshape(x, (x.size,)), 0
    at = canonical_axis(axis, len(x.shape))
    order = [i for i in range(len(x.shape)) if i != at] + [at]
    return lax.transpose(x, order), at


def _back(x: Array, at: int) -> Array:
    last = len(x.shape) - 1
    return lax.transpose(x, [*range(at), last, *range(at, last)])


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight booleans (or integers, of which only being nonzero counts) to a byte, along an axis;
    the last byte is filled up with zeros. bitorder says which bit the first one becomes.

    a         integers or booleans; TypeError of others
    axis      the axis; None: of the flattened array
    bitorder  "big" or "little"

    >>> jnp.packbits(jnp.array([1, 0, 1])).tolist()
    [160]
    """
    check_arraylike("packbits", a)
    x = asarray(a)
    if not (x.dtype == np.bool_ or dtypes.is_integer(x.dtype)):
        raise TypeError("Expected an input array of integer or boolean data type")
    _order(bitorder)
    return _packbits(x, axis=None if axis is None else operator.index(axis), bitorder=bitorder)


@compiled(static=("axis", "bitorder"))
def _packbits(x: Any, *, axis: int | None, bitorder: str) -> Array:
    bits, at = _along_last(lax.convert_element_type(truth(x), np.uint8), axis)
    *outer, n = bits.shape
    count = -(-n // 8)
    bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * len(outer) + [(0, count * 8 - n, 0)])
    bits = lax.reshape(bits, (*outer, count, 8))
    shifts = lax.broadcast_in_dim(_order(bitorder), bits.shape, (len(outer) + 1,))
    packed = lax.reduce_sum(lax.shift_left(bits, shifts), (len(outer) + 1,))
    return _back(packed, at)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes, along an axis: `count` of them (more are zeros, a negative count leaves
    off so many at the end).

    a         an array of uint8; TypeError of others
    axis      the axis; None: of the flattened array
    count     a static int; None: all
    bitorder  "big" or "little"

    >>> jnp.unpackbits(jnp.array([160], "uint8"), count=3).tolist()
    [1, 0, 1]
    """
    check_arraylike("unpackbits", a)
    x = asarray(a)
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    _order(bitorder)
    return _unpackbits(x, axis=None if axis is None else operator.index(axis),
                       count=None if count is None else operator.index(count), bitorder=bitorder)  # fmt: skip


@compiled(static=("axis", "count", "bitorder"))
def _unpackbits(x: Any, *, axis: int | None, count: int | None, bitorder: str) -> Array:
    x, at = _along_last(x, axis)
    *outer, n = x.shape
    shape = (*outer, n, 8)
    last = len(outer) + 1
    spread = lax.broadcast_in_dim(x, shape, tuple(range(last)))
    shifts = lax.broadcast_in_dim(_order(bitorder), shape, (last,))
    bits = lax.bitwise_and(lax.shift_right_logical(spread, shifts), np.uint8(1))
    bits = lax.reshape(bits, (*outer, n * 8))
    if count is not None:
        high = count - n * 8 if count >= 0 else count
        bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * len(outer) + [(0, high, 0)])
    return _back(bits, at)
