"""Arithmetic, elementwise: add sub mul div rem neg max min abs."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.core import Primitive, dtypes
from lamina.core.array_class import Array
from lamina.core.placed import Operands, Sums, factors, linear_in
from lamina.lax import hlo
from lamina.lax.checks import (
    ANY,
    NUMBER,
    REAL,
    SIGNED,
    dtype_of,
    scalar_like,
)  # fmt: skip
from lamina.lax.elementwise_rules import (
    builder,
    elementwise,
    linear_in_each,
    spread_values,
)  # fmt: skip


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


# ---- sums and products -------------------------------------------------------------------------
_SUM = linear_in_each(lambda ct, *_: ct, lambda ct, *_: ct)
_FIRST = [lambda g, *_: g]

add_p: Primitive = elementwise(
    "add", builder("add"), NUMBER, NUMBER, derivatives=_FIRST * 2, transpose=_SUM, sums=linear_in(0, 1),
)  # fmt: skip
add_any_p: Primitive = elementwise(
    "add_any", builder("add"), ANY, ANY, derivatives=_FIRST * 2, transpose=_SUM, sums=linear_in(0, 1),
)  # fmt: skip
sub_p: Primitive = elementwise(
    "sub", builder("subtract"), NUMBER, NUMBER,
    derivatives=[lambda g, *_: g, lambda g, *_: neg(g)],
    transpose=linear_in_each(lambda ct, *_: ct, lambda ct, *_: neg(ct)),
    sums=linear_in(0, 1),
)  # fmt: skip
neg_p: Primitive = elementwise(
    "neg", builder("negate"), NUMBER,
    derivatives=[lambda g, *_: neg(g)],
    transpose=linear_in_each(lambda ct, _: neg(ct)),
    sums=linear_in(0),
)  # fmt: skip
mul_p: Primitive = elementwise(
    "mul", builder("multiply"), NUMBER, NUMBER,
    derivatives=[lambda g, ans, x, y: mul(g, y), lambda g, ans, x, y: mul(x, g)],
    transpose=linear_in_each(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    sums=factors,
)  # fmt: skip


def _quotient_sums(operands: Operands) -> Sums:
    if operands.sums_of(1).unreduced:
        raise ValueError(
            "The denominator cannot be unreduced passed to `div`: of terms of a sum a quotient is no sum of terms. "
            "Reshard it first, so that they are summed"
        )
    return factors(operands)


div_p: Primitive = elementwise(
    "div", builder("divide"), NUMBER, NUMBER,
    derivatives=[
        lambda g, ans, x, y: div(g, y),
        lambda g, ans, x, y: mul(mul(neg(g), x), lax.integer_pow(y, -2)),
    ],
    transpose=linear_in_each(lambda ct, x, y: div(ct, y)),
    sums=_quotient_sums,
)  # fmt: skip


def _rem_by_divisor(g: Any, ans: Any, x: Any, y: Any) -> Any:
    quotient = div(x, y)
    return mul(neg(g), mul(lax.sign(quotient), lax.floor(abs(quotient))))


rem_p: Primitive = elementwise(
    "rem", builder("remainder"), REAL, REAL, derivatives=[_FIRST[0], _rem_by_divisor],
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


# ---- magnitude ---------------------------------------------------------------------------------
def nonzero_or(x: Any, replacement: float) -> Any:
    """x, with another number where it is zero."""
    return lax.select(lax.eq(x, scalar_like(x, 0)), lax.full_like(x, replacement), x)


def _abs_derivative(g: Any, ans: Any, x: Any) -> Any:
    if dtypes.is_complex(dtype_of(x)):
        unit = div(lax.conj(x), lax.convert_element_type(nonzero_or(ans, 1), dtype_of(x)))
        return lax.real(mul(g, unit))
    return lax.select(lax.ge(x, scalar_like(x, 0)), g, neg(g))


abs_p: Primitive = elementwise(
    "abs", builder("abs"), SIGNED, derivatives=[_abs_derivative], result=dtypes.real_dtype,
)  # fmt: skip
