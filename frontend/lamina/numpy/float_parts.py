"""The parts that floats are made of: frexp ldexp modf spacing."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.control_flow import custom_jvp
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    convert,
    literal,
    pick,
    promote_args_inexact,
    promote_inexact,
    promote_shapes,
    refuse_out,
    shape_of,
)  # fmt: skip


def _bits_of(x: Any) -> tuple[np.dtype, int, int]:
    """For a float dtype: the signed integers of its width, mantissa bits, exponent bias."""
    dtype = get_aval(x).dtype
    mantissa = dtypes.finfo(dtype).nmant
    bias = 2 ** (dtype.itemsize * 8 - mantissa - 2) - 1
    return np.dtype(f"int{dtype.itemsize * 8}"), mantissa, bias


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """(m, e) with x = m * 2**e and 0.5 <= |m| < 1; (x, 0) of zeros, infinities and NaN.

    x  a real array or number

    >>> [part.tolist() for part in jnp.frexp(jnp.array([8.0, 3.0]))]
    [[0.5, 0.75], [4, 2]]
    """
    (x,) = promote_args_inexact("frexp", x)
    if get_aval(x).dtype.kind == "c":
        raise TypeError("frexp does not support complex-valued inputs")
    return _frexp(x)


@compiled
def _frexp(x: Any) -> tuple[Array, Array]:
    return _parts(x)


@custom_jvp
def _parts(x: Any) -> tuple[Array, Array]:
    integers, mantissa, bias = _bits_of(x)
    bits = lax.bitcast_convert_type(x, integers)
    width = integers.itemsize * 8
    one = literal(bits, 1)
    field = literal(bits, (1 << (width - 1 - mantissa)) - 1)
    raw = lax.bitwise_and(lax.shift_right_logical(bits, literal(bits, mantissa)), field)
    fraction = lax.bitwise_and(bits, literal(bits, (1 << mantissa) - 1))
    # A denormal's leading bit stands `missing` places below where it would be implied.
    missing = lax.sub(lax.clz(fraction), literal(bits, width - 1 - mantissa))
    denormal = lax.bitwise_and(lax.eq(raw, literal(bits, 0)), lax.ne(fraction, literal(bits, 0)))
    exponent = pick(denormal, lax.sub(one, missing), raw)
    fraction = pick(denormal, lax.bitwise_and(lax.shift_left(fraction, missing),
                                              literal(bits, (1 << mantissa) - 1)), fraction)  # fmt: skip
    sign = lax.bitwise_and(bits, literal(bits, -(1 << (width - 1))))
    half = literal(bits, (bias - 1) << mantissa)
    m = lax.bitcast_convert_type(lax.bitwise_or(lax.bitwise_or(sign, half), fraction),
                                 get_aval(x).dtype)  # fmt: skip
    zero = lax.eq(lax.bitwise_and(bits, literal(bits, (1 << (width - 1)) - 1)), literal(bits, 0))
    special = lax.bitwise_or(zero, lax.eq(raw, field))
    e = lax.convert_element_type(lax.sub(exponent, literal(bits, bias - 1)), np.int32)
    return pick(special, x, m), pick(special, np.int32(0), e)


@_parts.defjvp
def _parts_jvp(primals: Any, tangents: Any) -> Any:
    (x,) = primals
    m, e = _parts(x)
    slope = _scaled(lax.full_like(x, 1), lax.neg(e))
    return (m, e), (lax.mul(tangents[0], slope), np.zeros(shape_of(e), dtypes.float0))


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2 for an integer x2, rounded once.

    x1  real numbers
    x2  integers that broadcast with x1

    >>> jnp.ldexp(jnp.array([1.0, 3.0]), 2).tolist()
    [4.0, 12.0]
    """
    x1, x2 = check_arraylike("ldexp", x1, x2)
    first, second = get_aval(x1).dtype, get_aval(x2).dtype
    if first.kind == "c" or not (dtypes.is_integer(second) or second == np.bool_):
        raise ValueError(f"ldexp not supported for input types {(first, second)}")
    (x1,) = promote_inexact(x1)
    if second.itemsize != 4 or second != np.int32:
        # What lies beyond 32 bits is far beyond any exponent.
        low, high = (2**31 - 1 if dtypes.is_unsigned(second) else -(2**31)), 2**31 - 1
        if second.itemsize > 4 or second == np.uint32:
            info = dtypes.iinfo(second)
            x2 = lax.clamp(literal(x2, max(low, int(info.min)) if low < 0 else 0), x2,
                           literal(x2, high))  # fmt: skip
        x2 = convert(x2, np.dtype(np.int32))
    x1, x2 = promote_shapes("ldexp", x1, x2)
    shape = broadcast_shapes(shape_of(x1), shape_of(x2))
    return _ldexp(broadcast_to_shape(x1, shape), broadcast_to_shape(x2, shape))


@compiled
def _ldexp(x: Any, e: Any) -> Array:
    return _scaled(x, e)


@custom_jvp
def _scaled(x: Any, e: Any) -> Array:
    integers, mantissa, bias = _bits_of(x)
    m, own = _parts(x)
    # own + e neither wraps nor leaves the range in which three factors reach every result.
    wide = 3 * bias
    e = lax.add(lax.clamp(literal(e, -wide), e, literal(e, wide)), own)
    zero_or_special = lax.bitwise_or(lax.eq(x, literal(x, 0)), lax.ge(lax.abs(x), literal(x, np.inf)))
    zero_or_special = lax.bitwise_or(zero_or_special, lax.ne(x, x))
    # One factor of at least the least normal number, so that only the last product rounds.
    first = lax.clamp(literal(e, 1 - bias), e, literal(e, bias))
    rest = lax.clamp(literal(e, 1 - bias), lax.sub(e, first), literal(e, bias))
    out = lax.mul(lax.mul(m, _power_of_two(first, x, integers, mantissa, bias)),
                  _power_of_two(rest, x, integers, mantissa, bias))  # fmt: skip
    return pick(zero_or_special, x, out)


@_scaled.defjvp
def _scaled_jvp(primals: Any, tangents: Any) -> Any:
    x, e = primals
    one = lax.full_like(x, 1)  # what is beyond its range is beyond the derivative's, too
    return _scaled(x, e), lax.mul(tangents[0], _scaled(one, e))


def _power_of_two(e: Any, like: Any, integers: np.dtype, mantissa: int, bias: int) -> Array:
    biased = lax.convert_element_type(lax.add(e, literal(e, bias)), integers)
    bits = lax.shift_left(biased, literal(biased, mantissa))
    return lax.bitcast_convert_type(bits, get_aval(like).dtype)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """(fractional part, whole part), both with the sign of x.

    x    a real array or number
    out  must be None: arrays cannot be written to

    >>> [part.tolist() for part in jnp.modf(jnp.array([1.5, -2.25]))]
    [[0.5, -0.25], [1.0, -2.0]]
    """
    refuse_out("modf", out)
    (x,) = promote_args_inexact("modf", x)
    if get_aval(x).dtype.kind == "c":
        raise TypeError("modf does not support complex-valued inputs")
    return _modf(x)


@compiled
def _modf(x: Any) -> tuple[Array, Array]:
    whole = pick(lax.ge(x, literal(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from zero, with the sign of x; of f16, as NumPy has it,
    that to the next greater number.

    x  a real array or number

    >>> jnp.spacing(1.0) == jnp.finfo("float32").eps
    Array(True, dtype=bool)
    """
    check_arraylike("spacing", x)
    (x,) = promote_args_inexact("spacing", x)
    if get_aval(x).dtype.kind == "c":
        raise ValueError(f"{library}.numpy.spacing is not defined for complex inputs.")
    return _spacing(x)


@compiled
def _spacing(x: Any) -> Array:
    if get_aval(x).dtype == np.float16:
        return lax.sub(lax.nextafter(x, lax.full_like(x, np.inf)), x)
    integers, mantissa, _ = _bits_of(x)
    bits = lax.bitcast_convert_type(x, integers)
    width = integers.itemsize * 8
    field = literal(bits, (1 << (width - 1 - mantissa)) - 1)
    raw = lax.bitwise_and(lax.shift_right_logical(bits, literal(bits, mantissa)), field)
    # A unit in the last place is 2**(raw - mantissa) in units of the exponent field: a normal
    # number while that field is positive, else one bit of a denormal.
    unit = lax.sub(raw, literal(bits, mantissa))
    normal = lax.shift_left(unit, literal(bits, mantissa))
    place = lax.max(lax.sub(raw, literal(bits, 1)), literal(bits, 0))
    denormal = lax.shift_left(literal(bits, 1), place)
    ulp = pick(lax.gt(unit, literal(bits, 0)), normal, denormal)
    sign = lax.bitwise_and(bits, literal(bits, -(1 << (width - 1))))
    out = lax.bitcast_convert_type(lax.bitwise_or(ulp, sign), get_aval(x).dtype)
    return pick(lax.eq(raw, field), literal(x, np.nan), out)
