"""Rounding, elementwise. Integers stay as they are, but under rint, which gives floats."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.core.wrapping import renamed
from lamina.numpy._eager import compiled
from lamina.numpy.arithmetic import positive
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    check_arraylike,
    convert,
    literal,
    pick,
    refuse_out,
)  # fmt: skip


def _rounds(name: str, x: ArrayLike, rounding: Any) -> Array:
    check_arraylike(name, x)
    dtype = get_aval(x).dtype
    if dtype.kind == "c":
        raise TypeError(f"{name} does not support complex-valued inputs")
    return rounding(x) if dtypes.is_float(dtype) else positive(x)


def floor(x: ArrayLike, /) -> Array:
    """The largest integer not above x.

    x  a real array or number

    >>> jnp.floor(jnp.array([1.7, -1.2])).tolist()
    [1.0, -2.0]
    """
    return _rounds("floor", x, lax.floor)


def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer not below x.

    x  a real array or number

    >>> jnp.ceil(jnp.array([1.2, -1.7])).tolist()
    [2.0, -1.0]
    """
    return _rounds("ceil", x, lax.ceil)


def trunc(x: ArrayLike) -> Array:
    """The integer next to x towards zero.

    x  a real array or number

    >>> jnp.trunc(jnp.array([1.7, -1.7])).tolist()
    [1.0, -1.0]
    """
    return _rounds("trunc", x, _trunc)


fix = trunc


@compiled
def _trunc(x: Any) -> Array:
    return pick(lax.lt(x, literal(x, 0)), lax.ceil(x), lax.floor(x))


def rint(x: ArrayLike, /) -> Array:
    """The nearest integer, ties to even, as a float.

    x  an array or number

    >>> jnp.rint(jnp.array([0.5, 1.5, 2.6])).tolist()
    [0.0, 2.0, 3.0]
    """
    check_arraylike("rint", x)
    dtype = get_aval(x).dtype
    if not dtypes.is_inexact(dtype):
        return lax.convert_element_type(asarray(x), dtypes.default_dtype(float))
    if dtype.kind == "c":
        return lax.complex(rint(lax.real(x)), rint(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """a rounded to a number of decimals, ties to even. Integers only to decimals >= 0.

    a         an array or number
    decimals  how many, a static int
    out       must be None: arrays cannot be written to

    >>> jnp.round(jnp.array([0.5, 1.5, 2.6])).tolist()
    [0.0, 2.0, 3.0]
    """
    check_arraylike("round", a)
    refuse_out("round", out)
    decimals = operator.index(decimals)
    dtype = get_aval(a).dtype
    if not dtypes.is_inexact(dtype):
        if decimals < 0:
            raise NotImplementedError("integer round not implemented for decimals < 0")
        return positive(a)
    return _round(a, decimals=decimals)


around = renamed(round, "around")


@compiled(static=("decimals",))
def _round(x: Any, *, decimals: int) -> Array:
    dtype = get_aval(x).dtype
    if dtype.kind == "c":
        return lax.complex(
            _round(lax.real(x), decimals=decimals), _round(lax.imag(x), decimals=decimals)
        )
    if decimals == 0:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    # float16 would overflow at the factor.
    wide = convert(x, np.dtype(np.float32)) if dtype.itemsize < 4 else x
    factor = literal(wide, 10.0 ** abs(decimals))
    scaled = lax.mul(wide, factor) if decimals > 0 else lax.div(wide, factor)
    whole = lax.round(scaled, lax.RoundingMethod.TO_NEAREST_EVEN)
    out = lax.div(whole, factor) if decimals > 0 else lax.mul(whole, factor)
    return lax.convert_element_type(out, dtype) if wide is not x else out
