"""Arithmetic, elementwise: add sub mul div rem neg max min abs sign floor ceil round pow square."""

from __future__ import annotations

import enum
import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, ShapedArray, Zero, dtypes, get_aval
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.checks import (
    ANY,
    FLOAT,
    INEXACT,
    NUMBER,
    REAL,
    SIGNED,
    accepted,
    check_accepted,
    dtype_of,
    scalar_like,
)  # fmt: skip
from lamina.lax.elementwise_rules import (
    broadcast_shapes,
    builder,
    chlo_lowering,
    elementwise,
    elementwise_lowering,
    linear_in_each,
    spread_values,
)  # fmt: skip

_TO_ODD, _TO_EVEN = 0, 1


class RoundingMethod(enum.IntEnum):
    """Where round sends values half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# ---- user functions ----------------------------------------------------------------------------
def add(x: Any, y: Any) -> Array:
    """x + y, elementwise; integers wrap.

    x, y  numbers or arrays of one numeric dtype and one rank, whose sizes are equal or 1; a scalar
          goes with any shape. Nothing is promoted: lamina.numpy.add does that.

    Raises TypeError where dtypes or ranks differ and for booleans.

    >>> print(lax.add(jnp.array([1, 2]), jnp.array([10, 20])))
    [11 22]
    """
    return add_p.bind(x, y)


def add_any(x: Any, y: Any) -> Array:
    """x + y of two cotangents: what differentiation writes where a value is used twice, so that a
    jaxpr's reader can tell these sums from the user's own.

    x, y  arrays of one type.

    >>> lamina.make_jaxpr(lamina.grad(lambda x: lax.sin(x) * x))(1.0).eqns[-1].primitive
    add_any
    """
    return add_any_p.bind(x, y)


def sub(x: Any, y: Any) -> Array:
    """x - y, elementwise; integers wrap.

    x, y  numbers or arrays of one numeric dtype and one rank, whose sizes are equal or 1, or
          scalars.

    Raises TypeError where dtypes or ranks differ and for booleans.

    >>> print(lax.sub(jnp.array([1.5, 2.0]), jnp.float32(0.5)))
    [1.  1.5]
    """
    return sub_p.bind(x, y)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Array:
    """x * y, elementwise; integers keep the lower bits of the product.

    x, y       numbers or arrays of one numeric dtype and one rank, whose sizes are equal or 1, or
               scalars.
    out_dtype  both are converted to this dtype first; then theirs may differ.

    Raises TypeError where dtypes or ranks differ and for booleans.

    >>> hundred = jnp.array([100], 'int8')
    >>> print(lax.mul(hundred, hundred), lax.mul(hundred, hundred, out_dtype='int32'))
    [16] [10000]
    """
    if out_dtype is not None:
        x, y = (lax.convert_element_type(v, out_dtype) for v in (x, y))
    return mul_p.bind(x, y)


def div(x: Any, y: Any) -> Array:
    """x / y, elementwise. Integers truncate towards zero, x / 0 is -1 (all bits set), and the least
    integer divided by -1 is itself.

    x, y  numbers or arrays of one numeric dtype and one rank, whose sizes are equal or 1, or
          scalars.

    Raises TypeError where dtypes or ranks differ and for booleans.

    >>> print(lax.div(jnp.array([7, -7, 7]), jnp.array([2, 2, 0])))
    [ 3 -3 -1]
    """
    return div_p.bind(x, y)


def rem(x: Any, y: Any) -> Array:
    """The remainder of x / y with the sign of x, elementwise, as C's % and fmod; rem(x, 0) is x for
    integers and NaN for floats. lamina.numpy.remainder has the sign of y.

    x, y  numbers or arrays of one real dtype and one rank, whose sizes are equal or 1, or scalars.

    Raises TypeError where dtypes or ranks differ, for booleans and for complex numbers.

    >>> print(lax.rem(jnp.array([7, -7, 7]), jnp.array([3, 3, 0])))
    [ 1 -1  7]
    >>> print(lax.rem(7.5, 0.0))
    nan
    """
    return rem_p.bind(x, y)


def neg(x: Any) -> Array:
    """-x, elementwise; integers wrap, so that unsigned ones stay unsigned and the least signed one
    is its own negative.

    x  an array of numbers.

    Raises TypeError for booleans.

    >>> print(lax.neg(jnp.array([-1.5, 0.5])))
    [ 1.5 -0.5]
    """
    return neg_p.bind(x)


def max(x: Any, y: Any) -> Array:
    """The greater of x and y, elementwise; NaN if either is. Complex numbers compare by real part,
    then by imaginary part.

    x, y  arrays of one dtype and one rank, whose sizes are equal or 1, or scalars.

    Raises TypeError where dtypes or ranks differ.

    >>> print(lax.max(jnp.array([1.0, jnp.nan, 3.0]), jnp.float32(2.0)))
    [ 2. nan  3.]
    """
    return max_p.bind(x, y)


def min(x: Any, y: Any) -> Array:
    """The lesser of x and y, elementwise; NaN if either is. Complex numbers compare by real part,
    then by imaginary part.

    x, y  arrays of one dtype and one rank, whose sizes are equal or 1, or scalars.

    Raises TypeError where dtypes or ranks differ.

    >>> print(lax.min(jnp.array([1, 5]), jnp.array([4, 2])))
    [1 2]
    """
    return min_p.bind(x, y)


def abs(x: Any) -> Array:
    """|x|, elementwise; of real dtype for complex x. The least signed integer is its own absolute
    value.

    x  an array of signed integers, floats or complex numbers.

    Raises TypeError for other dtypes.

    >>> print(lax.abs(jnp.array([3 + 4j, -2])))
    [5. 2.]
    """
    return abs_p.bind(x)


def sign(x: Any) -> Array:
    """-1, 0 or 1 by the sign of x; x/|x| for complex x; NaN for NaN.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.sign(jnp.array([-1.5, 0.5])).round(3))
    [-1.  1.]
    """
    return sign_p.bind(x)


def floor(x: Any) -> Array:
    """The greatest integer that is not above x, as a float.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.floor(jnp.array([-1.5, 0.5])).round(3))
    [-2.  0.]
    """
    return floor_p.bind(x)


def ceil(x: Any) -> Array:
    """The least integer that is not below x, as a float.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.ceil(jnp.array([-1.5, 0.5])).round(3))
    [-1.  1.]
    """
    return ceil_p.bind(x)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer of x, elementwise, as a float.

    x                a float or an array of floats.
    rounding_method  what halves do: RoundingMethod.AWAY_FROM_ZERO or TO_NEAREST_EVEN.

    Raises TypeError for other dtypes.

    >>> halves = jnp.array([0.5, 1.5, -2.5])
    >>> print(lax.round(halves), lax.round(halves, lax.RoundingMethod.TO_NEAREST_EVEN))
    [ 1.  2. -3.] [ 0.  2. -2.]
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


def is_finite(x: Any) -> Array:
    """Whether x is neither infinite nor NaN, elementwise: an array of booleans.

    x  a float or an array of floats.

    Raises TypeError for other dtypes.

    >>> print(lax.is_finite(jnp.array([1.0, jnp.inf, jnp.nan])))
    [ True False False]
    """
    return is_finite_p.bind(x)


def nextafter(x1: Any, x2: Any) -> Array:
    """The float next to x1 in the direction of x2, elementwise; x1 where they are equal, NaN if
    either is.

    x1, x2  arrays of one float dtype and one rank, whose sizes are equal or 1, or scalars.

    Raises TypeError for other dtypes and where they differ.

    >>> lax.nextafter(jnp.float32(1), jnp.float32(2))
    Array(1.0000001, dtype=float32)
    """
    return nextafter_p.bind(x1, x2)


def pow(x: Any, y: Any) -> Array:
    """x ** y, elementwise; NaN for negative floats x and fractional y.

    x  an array of floats or complex numbers.
    y  a Python int, for which integer_pow does the work, or an array of x's dtype or of integers.

    Raises TypeError for integers x (integer_pow and integer_power take these) and booleans.

    >>> print(lax.pow(jnp.array([4.0, 9.0, -1.0]), jnp.float32(0.5)))
    [ 2.  3. nan]
    """
    check_accepted("pow", INEXACT, get_aval(x), 0)
    if isinstance(y, int) and not isinstance(y, bool):
        return integer_pow(x, y)
    return pow_p.bind(x, y)


def integer_pow(x: Any, y: int) -> Array:
    """x ** y by repeated multiplication; for negative y the reciprocal of that.

    x  an array of numbers.
    y  a Python int; not negative where x is of integers.

    Raises TypeError for integers x and negative y.

    >>> print(lax.integer_pow(jnp.array([2.0, -3.0]), -2))
    [0.25       0.11111111]
    """
    return integer_pow_p.bind(x, y=operator.index(y))


def square(x: Any) -> Array:
    """x * x, elementwise.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.square(jnp.array([0.25, 0.5])).round(3))
    [0.062 0.25 ]
    """
    return square_p.bind(x)


def reciprocal(x: Any) -> Array:
    """1 / x, elementwise.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.reciprocal(jnp.array([0.25, 0.5])).round(3))
    [4. 2.]
    """
    return integer_pow_p.bind(x, y=-1)


# ---- sums and products -------------------------------------------------------------------------
_SUM = linear_in_each(lambda ct, *_: ct, lambda ct, *_: ct)
_FIRST = [lambda g, *_: g]

add_p: Primitive = elementwise(
    "add", builder("add"), NUMBER, NUMBER, derivatives=_FIRST * 2, transpose=_SUM,
)  # fmt: skip
add_any_p: Primitive = elementwise(
    "add_any", builder("add"), ANY, ANY, derivatives=_FIRST * 2, transpose=_SUM,
)  # fmt: skip
sub_p: Primitive = elementwise(
    "sub", builder("subtract"), NUMBER, NUMBER,
    derivatives=[lambda g, *_: g, lambda g, *_: neg(g)],
    transpose=linear_in_each(lambda ct, *_: ct, lambda ct, *_: neg(ct)),
)  # fmt: skip
neg_p: Primitive = elementwise(
    "neg", builder("negate"), NUMBER,
    derivatives=[lambda g, *_: neg(g)],
    transpose=linear_in_each(lambda ct, _: neg(ct)),
)  # fmt: skip
mul_p: Primitive = elementwise(
    "mul", builder("multiply"), NUMBER, NUMBER,
    derivatives=[lambda g, ans, x, y: mul(g, y), lambda g, ans, x, y: mul(x, g)],
    transpose=linear_in_each(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
)  # fmt: skip
div_p: Primitive = elementwise(
    "div", builder("divide"), NUMBER, NUMBER,
    derivatives=[
        lambda g, ans, x, y: div(g, y),
        lambda g, ans, x, y: mul(mul(neg(g), x), integer_pow(y, -2)),
    ],
    transpose=linear_in_each(lambda ct, x, y: div(ct, y)),
)  # fmt: skip
square_p: Primitive = elementwise(
    "square", elementwise_lowering(lambda x: hlo.multiply(x, x)), NUMBER,
    derivatives=[lambda g, ans, x: mul(g, mul(scalar_like(x, 2), x))],
)  # fmt: skip


def _rem_by_divisor(g: Any, ans: Any, x: Any, y: Any) -> Any:
    quotient = div(x, y)
    return mul(neg(g), mul(sign(quotient), floor(abs(quotient))))


rem_p: Primitive = elementwise(
    "rem", builder("remainder"), REAL, REAL, derivatives=[_FIRST[0], _rem_by_divisor],
)  # fmt: skip


# ---- powers ------------------------------------------------------------------------------------
_EXPONENT = accepted("integer", "floating", "complexfloating")


def _pow_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    check_accepted("pow", NUMBER, x, 0)
    check_accepted("pow", _EXPONENT, y, 1)
    if x.dtype != y.dtype and not (dtypes.is_inexact(x.dtype) and dtypes.is_integer(y.dtype)):
        raise TypeError(
            f"lax.pow requires arguments to have the same dtypes, got {x.dtype.name}, "
            f"{y.dtype.name}; only an inexact base takes an integer exponent. (Tip: jnp.power is a "
            "similar function that does automatic type promotion on inputs)."
        )
    return ShapedArray(broadcast_shapes("pow", (x, y)), x.dtype, x.weak_type and y.weak_type)


def _pow_lowering(ctx: Any, x: Any, y: Any) -> Any:
    x, y = spread_values(ctx, (x, y))
    dtype = ctx.avals_out[0].dtype
    return hlo.power(x, y if ctx.avals_in[1].dtype == dtype else hlo.convert(y, dtype))


def _nonzero_or(x: Any, replacement: float) -> Any:
    return lax.select(lax.eq(x, scalar_like(x, 0)), lax.full_like(x, replacement), x)


def _pow_by_base(g: Any, ans: Any, x: Any, y: Any) -> Any:
    if dtypes.is_integer(dtype_of(y)):
        # y * x**(y-1) is 0 * inf at x = y = 0.
        power = pow(x, sub(_nonzero_or(y, 1), scalar_like(y, 1)))
        return mul(g, mul(lax.convert_element_type(y, dtype_of(x)), power))
    return mul(g, mul(y, pow(x, sub(y, scalar_like(y, 1)))))


def _pow_by_exponent(g: Any, ans: Any, x: Any, y: Any) -> Any:
    return mul(g, mul(lax.log(_nonzero_or(x, 1)), ans))


def _integer_pow_lowering(ctx: Any, x: Any, *, y: int) -> Any:
    aval = ctx.avals_in[0]
    if y == 0:
        return hlo.full(1, aval.shape, aval.dtype)

    def power(x: Any) -> Any:
        result, square, rest = None, x, y if y > 0 else -y
        while rest:
            if rest & 1:
                result = square if result is None else hlo.multiply(result, square)
            rest >>= 1
            if rest:
                square = hlo.multiply(square, square)
        return result if y > 0 else hlo.divide(hlo.full(1, x.type.shape, aval.dtype), result)

    return elementwise_lowering(power)(ctx, x)


def _integer_pow_derivative(g: Any, ans: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return lax.full_like(g, 0)
    return mul(g, mul(scalar_like(x, y), integer_pow(x, y - 1)))


def _integer_pow_abstract_eval(x: ShapedArray, *, y: int) -> ShapedArray:
    check_accepted("integer_pow", NUMBER, x)
    if y < 0 and dtypes.is_integer(x.dtype):
        raise TypeError("Integers cannot be raised to negative powers, got integer_pow("
                        f"{x.str_short()}, {y})")  # fmt: skip
    return x


pow_p: Primitive = elementwise(
    "pow", _pow_lowering, NUMBER, _EXPONENT, derivatives=[_pow_by_base, _pow_by_exponent],
    abstract_eval=_pow_abstract_eval,
)  # fmt: skip
integer_pow_p: Primitive = elementwise(
    "integer_pow", _integer_pow_lowering, NUMBER, derivatives=[_integer_pow_derivative],
    abstract_eval=_integer_pow_abstract_eval,
)  # fmt: skip


# ---- order -------------------------------------------------------------------------------------
def _extremum_lowering(name: str, direction: str) -> Any:
    def rule(ctx: Any, x: Any, y: Any) -> Any:
        x, y = spread_values(ctx, (x, y))
        if not dtypes.is_complex(ctx.avals_out[0].dtype):
            return getattr(hlo, name)(x, y)
        a, b = hlo.real(x), hlo.real(y)
        by_imaginary = hlo.compare(hlo.imag(x), hlo.imag(y), direction)
        first = hlo.select(hlo.compare(a, b, "EQ"), by_imaginary, hlo.compare(a, b, direction))
        return hlo.select(first, x, y)

    return rule


def _share(g: Any, ans: Any, x: Any, y: Any) -> Any:
    """Equal operands share the tangent, so that max(x, x) differentiates as x does."""
    half = lax.select(lax.eq(y, ans), lax.full_like(ans, 0.5), lax.full_like(ans, 1))
    return mul(g, lax.select(lax.eq(x, ans), half, lax.full_like(ans, 0)))


_SHARES = [_share, lambda g, ans, x, y: _share(g, ans, y, x)]
max_p: Primitive = elementwise(
    "max", _extremum_lowering("maximum", "GT"), ANY, ANY, derivatives=_SHARES
)
min_p: Primitive = elementwise(
    "min", _extremum_lowering("minimum", "LT"), ANY, ANY, derivatives=_SHARES
)


# ---- parts of numbers --------------------------------------------------------------------------
def _abs_derivative(g: Any, ans: Any, x: Any) -> Any:
    if dtypes.is_complex(dtype_of(x)):
        unit = div(lax.conj(x), lax.convert_element_type(_nonzero_or(ans, 1), dtype_of(x)))
        return lax.real(mul(g, unit))
    return lax.select(lax.ge(x, scalar_like(x, 0)), g, neg(g))


def _sign_lowering(ctx: Any, x: Any) -> Any:
    aval = ctx.avals_in[0]
    if not dtypes.is_unsigned(aval.dtype):
        return hlo.sign(x)
    positive = hlo.compare(x, hlo.full(0, aval.shape, aval.dtype), "NE")
    return hlo.convert(positive, aval.dtype)


def _sign_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (g,) = primals, tangents
    ans = sign(x)
    if not dtypes.is_complex(dtype_of(x)):
        return ans, Zero(get_aval(ans).to_tangent_aval())
    # d(x/|x|) = i * Im(conj(s) g) * s / |x|, with s = x/|x|.
    turn = lax.imag(mul(lax.conj(ans), g))
    size = _nonzero_or(abs(x), 1)
    return ans, mul(lax.complex(lax.full_like(turn, 0), div(turn, size)), ans)


def _round_lowering(ctx: Any, x: Any, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.AWAY_FROM_ZERO:
        return hlo.round_nearest_afz(x)
    return hlo.round_nearest_even(x)


abs_p: Primitive = elementwise(
    "abs", builder("abs"), SIGNED, derivatives=[_abs_derivative], result=dtypes.real_dtype,
)  # fmt: skip
sign_p: Primitive = elementwise("sign", _sign_lowering, NUMBER, jvp=_sign_jvp)
floor_p: Primitive = elementwise("floor", builder("floor"), FLOAT)
ceil_p: Primitive = elementwise("ceil", builder("ceil"), FLOAT)
round_p: Primitive = elementwise("round", _round_lowering, FLOAT)
is_finite_p: Primitive = elementwise(
    "is_finite", builder("is_finite"), FLOAT, result=lambda _: np.dtype(bool),
)  # fmt: skip
nextafter_p: Primitive = elementwise("nextafter", chlo_lowering("next_after"), FLOAT, FLOAT)
