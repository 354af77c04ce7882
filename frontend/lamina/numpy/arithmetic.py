"""Arithmetic, elementwise: sums and products, division in its forms, powers, sign, parts of numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.array import distinct
from lamina.core import dtypes
from lamina.core.trace import Tracer, get_aval
from lamina.core.wrapping import renamed
from lamina.lax.special.integer_power import integer_power
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    literal,
    pick,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_numeric,
    promote_shapes,
    shape_of,
)  # fmt: skip


def _is_integer(x: Any) -> bool:
    return dtypes.is_integer(get_aval(x).dtype)


def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x + y; logical or of booleans.

    x, y  numbers or arrays that broadcast together
    >>> jnp.add(jnp.array([1, 2]), 10).tolist()
    [11, 12]
    """
    x, y = promote_args("add", x, y)
    return lax.bitwise_or(x, y) if get_aval(x).dtype == np.bool_ else lax.add(x, y)


def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x - y. Booleans are refused.

    x, y  numbers or arrays that broadcast together
    >>> jnp.subtract(jnp.array([1, 2]), 10).tolist()
    [-9, -8]
    """
    return lax.sub(*promote_args("subtract", x, y))


def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x * y; logical and of booleans.

    x, y  numbers or arrays that broadcast together
    >>> jnp.multiply(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
    [3, 8]
    """
    x, y = promote_args("multiply", x, y)
    return lax.bitwise_and(x, y) if get_aval(x).dtype == np.bool_ else lax.mul(x, y)


def true_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x / y, inexact also for integers.

    x, y  numbers or arrays that broadcast together
    >>> jnp.true_divide(jnp.array([1, 3]), 2).tolist()
    [0.5, 1.5]
    """
    return lax.div(*promote_args_inexact("true_divide", x, y))


divide = renamed(true_divide, "divide")


def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x / y rounded down. Of integers by zero: as two's complement division by -1 less rounding.

    x, y  numbers or arrays that broadcast together
    >>> jnp.floor_divide(jnp.array([7, -7]), 2).tolist()
    [3, -4]
    """
    x, y = promote_args_numeric("floor_divide", x, y)
    if get_aval(x).dtype.kind == "c":
        raise TypeError("floor_divide does not support complex-valued inputs")
    return _floor_divide(x, y)


@compiled
def _floor_divide(x: Any, y: Any) -> Array:
    dtype = get_aval(x).dtype
    if dtypes.is_unsigned(dtype):
        return lax.div(x, y)
    if dtypes.is_integer(dtype):
        quotient = lax.div(x, y)
        inexact = lax.ne(lax.rem(x, y), literal(x, 0))
        lower = lax.bitwise_and(lax.ne(lax.sign(x), lax.sign(y)), inexact)
        return pick(lower, lax.sub(quotient, literal(x, 1)), quotient)
    return lax.round(_float_divmod(x, y)[0])


def _float_divmod(x: Any, y: Any) -> tuple[Array, Array]:
    """Quotient (not yet rounded) and remainder of floats, with the sign of the divisor."""
    rest = lax.rem(x, y)
    zero = literal(x, 0)
    # x - rest is exactly a multiple of y; where y is 0, x / 0 gives the infinity or NaN wanted.
    quotient = lax.div(pick(lax.eq(y, zero), x, lax.sub(x, rest)), y)
    lower = lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.sign(y), lax.sign(rest)))
    rest = pick(lower, lax.add(rest, y), rest)
    return pick(lower, lax.sub(quotient, literal(x, 1)), quotient), rest


def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x modulo y, with the sign of y. Of integers by zero: zero.

    x, y  numbers or arrays that broadcast together
    >>> jnp.remainder(jnp.array([7, -7]), 3).tolist()
    [1, 2]
    """
    return _remainder(*promote_args_numeric("remainder", x, y))


mod = renamed(remainder, "mod")


@compiled
def _remainder(x: Any, y: Any) -> Array:
    zero = literal(x, 0)
    if _is_integer(x):
        y = pick(lax.eq(y, zero), literal(y, 1), y)
    rest = lax.rem(x, y)
    lower = lax.ne(lax.lt(rest, zero), lax.lt(y, zero))
    return pick(lax.bitwise_and(lower, lax.ne(rest, zero)), lax.add(rest, y), rest)


def fmod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x modulo y, with the sign of x. Of integers by zero: zero.

    x, y  numbers or arrays that broadcast together
    >>> jnp.fmod(jnp.array([7, -7]), 3).tolist()
    [1, -1]
    """
    return _fmod(*promote_args_numeric("fmod", x, y))


@compiled
def _fmod(x: Any, y: Any) -> Array:
    if _is_integer(x):
        y = pick(lax.eq(y, literal(y, 0)), literal(y, 1), y)
    return lax.rem(x, y)


def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """(floor_divide(x, y), remainder(x, y)).

    x, y  numbers or arrays that broadcast together
    >>> jnp.divmod(7, 3)
    (Array(2, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))
    """
    x, y = promote_args_numeric("divmod", x, y)
    if get_aval(x).dtype.kind == "c":
        raise TypeError("divmod does not support complex-valued inputs")
    return _floor_divide(x, y), _remainder(x, y)


def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ** y. A concrete integer y is unrolled into products, exact for integer x.

    x, y  numbers or arrays that broadcast together

    Raises TypeError for integer x to a negative concrete integer power.

    >>> jnp.power(jnp.array([2, 3]), 3).tolist()
    [8, 27]
    """
    check_arraylike("power", x, y)
    exponent = _static_integer(y)
    if exponent is not None:
        (x,) = promote_numeric(x)
        return lax.integer_pow(x, exponent)
    base_dtype, exponent_dtype = get_aval(x).dtype, get_aval(y).dtype
    if dtypes.is_integer(exponent_dtype) and dtypes.is_inexact(base_dtype):
        return lax.pow(*promote_shapes("power", x, y))  # differentiable in x at 0
    x, y = promote_args_numeric("power", x, y)
    return integer_power(x, y) if _is_integer(x) else lax.pow(x, y)


pow = renamed(power, "pow")


def _static_integer(y: Any) -> int | None:
    """The value of an integer scalar exponent that is known now."""
    if isinstance(y, bool) or isinstance(y, Tracer) or not dtypes.is_integer(get_aval(y).dtype):
        return None
    return operator.index(y) if np.ndim(y) == 0 else None


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ** y, inexact also for integers.

    x, y  numbers or arrays that broadcast together
    >>> jnp.float_power(2, 3)
    Array(8., dtype=float32, weak_type=True)
    """
    return lax.pow(*promote_args_inexact("float_power", x, y))


def negative(x: ArrayLike, /) -> Array:
    """-x. Booleans are refused.

    x  an array or number
    >>> jnp.negative(jnp.array([1, -2])).tolist()
    [-1, 2]
    """
    return lax.neg(*promote_args("negative", x))


def positive(x: ArrayLike, /) -> Array:
    """x.

    x  an array or number
    >>> jnp.positive(jnp.array([1, -2])).tolist()
    [1, -2]
    """
    from lamina.numpy.creation import asarray

    return distinct(asarray(promote_args("positive", x)[0]), x)


def absolute(x: ArrayLike, /) -> Array:
    """|x|; real for complex x.

    x  an array or number
    >>> jnp.absolute(jnp.array([1, -2])).tolist()
    [1, 2]
    """
    (x,) = promote_args("absolute", x)
    dtype = get_aval(x).dtype
    if dtype == np.bool_ or dtypes.is_unsigned(dtype):
        return positive(x)
    return lax.abs(x)


abs = renamed(absolute, "abs")


def fabs(x: ArrayLike, /) -> Array:
    """|x| as a float. Complex x is refused.

    x  an array or number
    >>> jnp.fabs(jnp.array([1, -2])).tolist()
    [1.0, 2.0]
    """
    (x,) = promote_args_inexact("fabs", x)
    if get_aval(x).dtype.kind == "c":
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return lax.abs(x)


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 (x / |x| of complex x); NaN of NaN.

    x  an array or number
    >>> jnp.sign(jnp.array([-2.5, 0.0, 7.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    return lax.sign(*promote_args("sign", x))


def sqrt(x: ArrayLike, /) -> Array:
    """Square root; NaN of negative reals.

    x  an array or number
    >>> jnp.sqrt(jnp.array([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """
    return lax.sqrt(*promote_args_inexact("sqrt", x))


def cbrt(x: ArrayLike, /) -> Array:
    """Real cube root.

    x  a real array or number
    >>> print(jnp.cbrt(jnp.array([8.0, -27.0])).round(3))
    [ 2. -3.]
    """
    return lax.cbrt(*promote_args_inexact("cbrt", x))


def square(x: ArrayLike, /) -> Array:
    """x * x.

    x  an array or number
    >>> jnp.square(jnp.array([2, -3])).tolist()
    [4, 9]
    """
    return lax.square(*promote_args_numeric("square", x))


def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x.

    x  an array or number; integers become floats
    >>> jnp.reciprocal(jnp.array([2.0, 4.0])).tolist()
    [0.5, 0.25]
    """
    (x,) = promote_args_inexact("reciprocal", x)
    return lax.integer_pow(x, -1)


# ---- parts of numbers --------------------------------------------------------------------------
def real(val: ArrayLike, /) -> Array:
    """The real part; real arrays are given back as they are.

    val  an array or number
    >>> jnp.real(jnp.array([1 + 2j])).tolist()
    [1.0]
    """
    (val,) = promote_args("real", val)
    return lax.real(val) if get_aval(val).dtype.kind == "c" else positive(val)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros of real arrays.

    val  an array or number
    >>> jnp.imag(jnp.array([1 + 2j])).tolist()
    [2.0]
    """
    from lamina.numpy.creation import zeros_like

    (val,) = promote_args("imag", val)
    return lax.imag(val) if get_aval(val).dtype.kind == "c" else zeros_like(val)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real arrays are given back as they are.

    x  an array or number
    >>> jnp.conjugate(jnp.array([1 + 2j])).tolist()
    [(1-2j)]
    """
    (x,) = promote_args("conjugate", x)
    return lax.conj(x) if get_aval(x).dtype.kind == "c" else positive(x)


conj = renamed(conjugate, "conj")


def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """|x| with the sign of y (of -0.0 too).

    x, y  real numbers or arrays that broadcast together
    >>> jnp.copysign(jnp.array([1.0, 2.0]), -0.0).tolist()
    [-1.0, -2.0]
    """
    from lamina.numpy.classification import signbit

    x, y = promote_args_inexact("copysign", x, y)
    if get_aval(x).dtype.kind == "c":
        raise TypeError("copysign does not support complex-valued inputs")
    size = lax.abs(x)
    return pick(signbit(y), lax.neg(size), size)


def heaviside(x: ArrayLike, y: ArrayLike, /) -> Array:
    """0 where x < 0, y where x is 0, 1 where x > 0.

    x, y  real numbers or arrays that broadcast together
    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    x, y = promote_args_inexact("heaviside", x, y)
    zero, one = literal(x, 0), literal(x, 1)
    step = pick(lax.lt(x, zero), zero, pick(lax.gt(x, zero), one, y))
    return pick(lax.ne(x, x), x, step)


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The next number from x towards y.

    x, y  real numbers or arrays that broadcast together
    >>> jnp.nextafter(1.0, 2.0) > 1
    Array(True, dtype=bool, weak_type=True)
    """
    return lax.nextafter(*promote_args_inexact("nextafter", x, y))


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers, by absolute value.

    x1, x2  integers or arrays of them that broadcast together; ValueError of others
    >>> jnp.gcd(jnp.array([12, 9]), 6).tolist()
    [6, 3]
    """
    x, y = promote_args("gcd", x1, x2)
    if not _is_integer(x):
        raise ValueError("Arguments to gcd must be integers.")
    shape = broadcast_shapes(shape_of(x), shape_of(y))
    out = _gcd(broadcast_to_shape(absolute(x), shape), broadcast_to_shape(absolute(y), shape))
    # As in JAX the type of numbers may be weak, that of arrays not.
    return lax.convert_element_type(out, get_aval(out).dtype) if shape else out


@compiled
def _gcd(x: Any, y: Any) -> Array:
    from lamina.numpy.reductions import any as any_

    def step(pair: Any) -> Any:
        big, small = pair
        done = lax.eq(small, literal(small, 0))
        rest = lax.rem(big, pick(done, literal(small, 1), small))
        return pick(done, big, small), pick(done, small, rest)

    return lax.while_loop(lambda pair: any_(lax.ne(pair[1], literal(y, 0))), step, (x, y))[0]


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers, by absolute value; 0 if either is 0.

    x1, x2  integers or arrays of them that broadcast together; ValueError of others
    >>> jnp.lcm(jnp.array([4, 9]), 6).tolist()
    [12, 18]
    """
    x, y = promote_args("lcm", x1, x2)
    if not _is_integer(x):
        raise ValueError("Arguments to lcm must be integers.")
    x, y = absolute(x), absolute(y)
    divisor = gcd(x, y)
    none = lax.eq(divisor, literal(divisor, 0))
    safe = pick(none, literal(divisor, 1), divisor)
    return pick(none, literal(divisor, 0), lax.mul(x, lax.div(y, safe)))
