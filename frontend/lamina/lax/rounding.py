"""Parts of numbers, elementwise: sign floor ceil round is_finite nextafter."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, Zero, dtypes, get_aval
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.arithmetic import nonzero_or
from lamina.lax.checks import (
    FLOAT,
    NUMBER,
    dtype_of,
)  # fmt: skip
from lamina.lax.elementwise_rules import (
    builder,
    chlo_lowering,
    elementwise,
)  # fmt: skip

_TO_ODD, _TO_EVEN = 0, 1


class RoundingMethod(enum.IntEnum):
    """Where round sends values half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


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


# ---- primitives --------------------------------------------------------------------------------
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
    turn = lax.imag(lax.mul(lax.conj(ans), g))
    size = nonzero_or(lax.abs(x), 1)
    return ans, lax.mul(lax.complex(lax.full_like(turn, 0), lax.div(turn, size)), ans)


def _round_lowering(ctx: Any, x: Any, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.AWAY_FROM_ZERO:
        return hlo.round_nearest_afz(x)
    return hlo.round_nearest_even(x)


sign_p: Primitive = elementwise("sign", _sign_lowering, NUMBER, jvp=_sign_jvp)
floor_p: Primitive = elementwise("floor", builder("floor"), FLOAT)
ceil_p: Primitive = elementwise("ceil", builder("ceil"), FLOAT)
round_p: Primitive = elementwise("round", _round_lowering, FLOAT)
is_finite_p: Primitive = elementwise(
    "is_finite", builder("is_finite"), FLOAT, result=lambda _: np.dtype(bool),
)  # fmt: skip
nextafter_p: Primitive = elementwise("nextafter", chlo_lowering("next_after"), FLOAT, FLOAT)
