"""Powers, elementwise: pow integer_pow square reciprocal."""

from __future__ import annotations

import operator
from typing import Any

from lamina import lax
from lamina.core import Primitive, ShapedArray, dtypes, get_aval
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.arithmetic import nonzero_or
from lamina.lax.checks import (
    INEXACT,
    NUMBER,
    accepted,
    check_accepted,
    dtype_of,
    scalar_like,
)  # fmt: skip
from lamina.lax.elementwise_rules import (
    broadcast_shapes,
    elementwise,
    elementwise_lowering,
    spread_values,
)  # fmt: skip


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


# ---- primitives --------------------------------------------------------------------------------
def _squared(x: Any, dtype: Any) -> Any:
    """x * x. Of complex numbers the real part as a product, which keeps the digits that a difference of
    squares loses where both parts are nearly equal, and which overflows only where it must."""
    if not dtypes.is_complex(dtype):
        return hlo.multiply(x, x)
    a, b = hlo.real(x), hlo.imag(x)
    factors = hlo.subtract(a, b), hlo.add(a, b)
    real, zero = hlo.multiply(*factors), hlo.full(0, a.type.shape, dtypes.real_dtype(dtype))
    for factor in factors:  # 0, also where the other one overflows
        real = hlo.select(hlo.compare(factor, zero, "EQ"), zero, real)
    product = hlo.multiply(a, b)
    return hlo.complex(real, hlo.add(product, product))


def _square_lowering(ctx: Any, x: Any) -> Any:
    return elementwise_lowering(lambda x: _squared(x, ctx.avals_in[0].dtype))(ctx, x)


square_p: Primitive = elementwise(
    "square", _square_lowering, NUMBER,
    derivatives=[lambda g, ans, x: lax.mul(g, lax.mul(scalar_like(x, 2), x))],
)  # fmt: skip

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


def _pow_by_base(g: Any, ans: Any, x: Any, y: Any) -> Any:
    if dtypes.is_integer(dtype_of(y)):
        # y * x**(y-1) is 0 * inf at x = y = 0.
        power = pow(x, lax.sub(nonzero_or(y, 1), scalar_like(y, 1)))
        return lax.mul(g, lax.mul(lax.convert_element_type(y, dtype_of(x)), power))
    return lax.mul(g, lax.mul(y, pow(x, lax.sub(y, scalar_like(y, 1)))))


def _pow_by_exponent(g: Any, ans: Any, x: Any, y: Any) -> Any:
    return lax.mul(g, lax.mul(lax.log(nonzero_or(x, 1)), ans))


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
                square = _squared(square, aval.dtype)
        return result if y > 0 else hlo.divide(hlo.full(1, x.type.shape, aval.dtype), result)

    return elementwise_lowering(power)(ctx, x)


def _integer_pow_derivative(g: Any, ans: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return lax.full_like(g, 0)
    return lax.mul(g, lax.mul(scalar_like(x, y), integer_pow(x, y - 1)))


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
