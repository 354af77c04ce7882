"""What needs not all of an array in order: partition argpartition top_k."""

from __future__ import annotations

import operator

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import Array, ArrayLike, canonical_axis, check_arraylike
from lamina.numpy.sorting import argsort, sort


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """a with what is below its kth element before it, and the rest behind (here: sorted).

    a     an array of real numbers
    kth   a static index; ValueError out of bounds
    axis  the axis

    >>> int(jnp.partition(jnp.array([4, 1, 3, 2]), 1)[1])
    2
    """
    _check_kth(a, kth, axis)
    return sort(a, axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition a (see partition).

    a     an array of real numbers
    kth   a static index; ValueError out of bounds
    axis  the axis

    >>> int(jnp.argpartition(jnp.array([4, 1, 3, 2]), 0)[0])
    1
    """
    _check_kth(a, kth, axis)
    return lax.convert_element_type(argsort(a, axis), np.int32)


def _check_kth(a: ArrayLike, kth: int, axis: int) -> None:
    check_arraylike("partition", a)
    shape = get_aval(a).shape
    n = shape[canonical_axis(axis, len(shape))]
    if not -n <= operator.index(kth) < n:
        raise ValueError(f"kth={kth} is out of bounds for an axis of size {n}")


def top_k(a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest",
          sorted: bool = True) -> tuple[Array, Array]:  # fmt: skip
    """The k largest or smallest elements along an axis, and their indices.

    a       an array of real numbers or booleans. NaN counts as the largest, with the sign bit as
            the smallest.
    k       a static integer, at most the size of the axis.
    mode    "largest", or "smallest".
    sorted  whether the results must be in order; here they always are, and of equal elements the
            first comes first.

    Both results have a's shape with k in the axis' place; the indices are int32. Raises ValueError
    for complex numbers and another k, axis or mode.

    >>> jnp.top_k(jnp.array([1, 5, 3]), 2)[0]
    Array([5, 3], dtype=int32)
    """
    check_arraylike("top_k", a)
    x = asarray(a)
    if dtypes.is_complex(x.dtype):
        raise ValueError("top_k is not compatible with complex inputs.")
    if mode not in ("largest", "smallest"):
        raise ValueError(f"mode must be 'largest' or 'smallest', got {mode!r}")
    at = canonical_axis(axis, len(x.shape))
    values, indices = _top_k(x, k=operator.index(k), axis=at, largest=mode == "largest")
    return values, indices


@compiled(static=("k", "axis", "largest"))
def _top_k(x: Array, *, k: int, axis: int, largest: bool) -> list[Array]:
    if largest:
        return lax.top_k(x, k, axis=axis)
    turn = lax.bitwise_not if x.dtype.kind in "biu" else lax.neg
    values, indices = lax.top_k(turn(x), k, axis=axis)
    return [turn(values), indices]
