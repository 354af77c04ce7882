"""The greater and the lesser of two, elementwise: maximum minimum fmax fmin clip."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.array import distinct
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    check_arraylike,
    pick,
    promote_args,
)  # fmt: skip


def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of x and y; NaN if either is NaN.

    x, y  numbers or arrays that broadcast together
    >>> jnp.maximum(jnp.array([1, 5]), 3).tolist()
    [3, 5]
    """
    return lax.max(*promote_args("maximum", x, y))


def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of x and y; NaN if either is NaN.

    x, y  numbers or arrays that broadcast together
    >>> jnp.minimum(jnp.array([1, 5]), 3).tolist()
    [1, 3]
    """
    return lax.min(*promote_args("minimum", x, y))


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, ignoring a NaN beside a number.

    x1, x2  numbers or arrays that broadcast together
    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.5).tolist()
    [1.0, 0.5]
    """
    from lamina.numpy.logic import greater

    return _skip_nan(greater, *promote_args("fmax", x1, x2))


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, ignoring a NaN beside a number.

    x1, x2  numbers or arrays that broadcast together
    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.5).tolist()
    [0.5, 0.5]
    """
    from lamina.numpy.logic import less

    return _skip_nan(less, *promote_args("fmin", x1, x2))


def _skip_nan(better: Any, x: Any, y: Any) -> Array:
    take_x = better(x, y)
    if dtypes.is_inexact(get_aval(y).dtype):
        take_x = lax.bitwise_or(take_x, lax.ne(y, y))
    return pick(take_x, x, y)


def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None,
         max: ArrayLike | None = None) -> Array:  # fmt: skip
    """arr with values below min raised to it, then values above max lowered to it.

    arr       a real array or number
    min, max  bounds that broadcast to it; None: none

    Raises ValueError for complex numbers.

    >>> jnp.clip(jnp.array([-1, 2, 9]), 0, 5).tolist()
    [0, 2, 5]
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    bounds = [b for b in (min, max) if b is not None]
    check_arraylike("clip", arr, *bounds)
    if any(get_aval(x).dtype.kind == "c" for x in (arr, *bounds)):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. "
            "Complex values have no ordering and cannot be clipped."
        )
    from lamina.numpy.creation import asarray

    out = asarray(arr)
    return distinct(_clipped(out, min, max) if bounds else out, arr)


@compiled
def _clipped(x: Array, least: ArrayLike | None, most: ArrayLike | None) -> Array:
    x = x if least is None else maximum(least, x)
    return x if most is None else minimum(most, x)
