"""Mathematical functions, elementwise: sin cos tanh logistic sqrt and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, dtypes
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.checks import FLOAT, INEXACT, scalar_like
from lamina.lax.elementwise_rules import (
    builder,
    chlo_lowering,
    computed_in,
    elementwise,
    function_of_one,
)
from lamina.lax.exponentials import Accuracy


# ---- user functions ----------------------------------------------------------------------------
def sin(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The sine of x in radians.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.sin(jnp.array([0.25, 0.5])).round(3))
    [0.247 0.479]
    """
    return sin_p.bind(x)


def cos(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The cosine of x in radians.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.cos(jnp.array([0.25, 0.5])).round(3))
    [0.969 0.878]
    """
    return cos_p.bind(x)


def tan(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The tangent of x in radians.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.tan(jnp.array([0.25, 0.5])).round(3))
    [0.255 0.546]
    """
    return tan_p.bind(x)


def asin(x: Any) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is x.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.asin(jnp.array([0.25, 0.5])).round(3))
    [0.253 0.524]
    """
    return asin_p.bind(x)


def acos(x: Any) -> Array:
    """The angle in [0, pi] whose cosine is x.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.acos(jnp.array([0.25, 0.5])).round(3))
    [1.318 1.047]
    """
    return acos_p.bind(x)


def atan(x: Any) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is x.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.atan(jnp.array([0.25, 0.5])).round(3))
    [0.245 0.464]
    """
    return atan_p.bind(x)


def atan2(x: Any, y: Any) -> Array:
    """The angle from -pi to pi of the point with abscissa y and ordinate x, elementwise: atan(x /
    y) in the right quadrant. The first argument is the ordinate, as of C's atan2.

    x, y  arrays of one float dtype and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError for other dtypes and where they differ.

    >>> print(lax.atan2(jnp.array([1.0, -1.0]), jnp.array([-1.0, 0.0])))
    [ 2.3561945 -1.5707964]
    """
    return atan2_p.bind(x, y)


def sinh(x: Any) -> Array:
    """The hyperbolic sine.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.sinh(jnp.array([0.25, 0.5])).round(3))
    [0.253 0.521]
    """
    return sinh_p.bind(x)


def cosh(x: Any) -> Array:
    """The hyperbolic cosine.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.cosh(jnp.array([0.25, 0.5])).round(3))
    [1.031 1.128]
    """
    return cosh_p.bind(x)


def tanh(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The hyperbolic tangent.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.tanh(jnp.array([0.25, 0.5])).round(3))
    [0.245 0.462]
    """
    return tanh_p.bind(x)


def asinh(x: Any) -> Array:
    """The inverse of sinh.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.asinh(jnp.array([0.25, 0.5])).round(3))
    [0.247 0.481]
    """
    return asinh_p.bind(x)


def acosh(x: Any) -> Array:
    """The inverse of cosh on [1, inf).

    x  an array of floats, of any shape.

    >>> print(lamina.lax.acosh(jnp.array([1.0, 2.0])).round(3))
    [0.    1.317]
    """
    return acosh_p.bind(x)


def atanh(x: Any) -> Array:
    """The inverse of tanh on (-1, 1).

    x  an array of floats, of any shape.

    >>> print(lamina.lax.atanh(jnp.array([0.25, 0.5])).round(3))
    [0.255 0.549]
    """
    return atanh_p.bind(x)


def logistic(x: Any, *, accuracy: Accuracy = None) -> Array:
    """1 / (1 + e ** -x), the sigmoid.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.logistic(jnp.array([0.25, 0.5])).round(3))
    [0.562 0.622]
    """
    return logistic_p.bind(x)


def sqrt(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The square root; NaN for negative reals.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.sqrt(jnp.array([0.25, 0.5])).round(3))
    [0.5   0.707]
    """
    return sqrt_p.bind(x)


def rsqrt(x: Any, *, accuracy: Accuracy = None) -> Array:
    """1 / sqrt(x).

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.rsqrt(jnp.array([0.25, 0.5])).round(3))
    [2.    1.414]
    """
    return rsqrt_p.bind(x)


def cbrt(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The real cube root.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.cbrt(jnp.array([0.25, 0.5])).round(3))
    [0.63  0.794]
    """
    return cbrt_p.bind(x)


# ---- primitives --------------------------------------------------------------------------------
def _one(x: Any) -> Any:
    return scalar_like(x, 1)


def _times(factor: float, x: Any) -> Any:
    return lax.mul(scalar_like(x, factor), x)


sin_p: Primitive = function_of_one("sin", builder("sine"), lambda ans, x: cos(x))
cos_p: Primitive = function_of_one("cos", builder("cosine"), lambda ans, x: lax.neg(sin(x)))
tan_p: Primitive = function_of_one(
    "tan", builder("tan"), lambda ans, x: lax.add(_one(x), lax.square(ans))
)


asin_p: Primitive = function_of_one(
    "asin", chlo_lowering("asin"), lambda ans, x: rsqrt(lax.one_minus_square(x))
)
acos_p: Primitive = function_of_one(
    "acos", chlo_lowering("acos"), lambda ans, x: lax.neg(rsqrt(lax.one_minus_square(x)))
)
atan_p: Primitive = function_of_one(
    "atan", chlo_lowering("atan"),
    lambda ans, x: lax.reciprocal(lax.add(_one(x), lax.square(x))),
)  # fmt: skip


def _in_f32(formula: Callable[[Any, Any], Any], op: str) -> Callable[..., Any]:
    """Lowers real numbers by a formula, narrow ones in f32; complex ones by CHLO's."""
    complex_ = chlo_lowering(op)

    def rule(ctx: Any, x: Any) -> Any:
        dtype = ctx.avals_in[0].dtype
        if dtypes.is_complex(dtype):
            return complex_(ctx, x)
        wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
        shape = ctx.avals_in[0].shape
        return computed_in(wide, dtype, x, lambda v: formula(v, lambda c: hlo.full(c, shape, wide)))

    return rule


def _half_exponentials(x: Any, full: Any) -> tuple[Any, Any]:
    """e^|x| / 2 and e^-|x| / 2, as squares: the first is finite wherever sinh is."""
    half = full(0.5)
    root = hlo.exponential(hlo.multiply(hlo.abs(x), half))
    return hlo.multiply(hlo.multiply(half, root), root), hlo.divide(hlo.divide(half, root), root)


def _cosh(x: Any, full: Any) -> Any:
    return hlo.add(*_half_exponentials(x, full))


def _sinh(x: Any, full: Any) -> Any:
    far = hlo.subtract(*_half_exponentials(x, full))
    grown = hlo.exponential_minus_one(x)
    near = hlo.multiply(full(0.5), hlo.add(grown, hlo.divide(grown, hlo.add(grown, full(1)))))
    is_far = hlo.compare(hlo.abs(x), full(1), "GT")
    return hlo.select(is_far, hlo.multiply(hlo.sign(x), far), near)


sinh_p: Primitive = function_of_one("sinh", _in_f32(_sinh, "sinh"), lambda ans, x: cosh(x))
cosh_p: Primitive = function_of_one("cosh", _in_f32(_cosh, "cosh"), lambda ans, x: sinh(x))
tanh_p: Primitive = elementwise(
    "tanh", builder("tanh"), INEXACT,
    # (g + g*ans)(1 - ans): no cancellation where ans is near -1.
    derivatives=[
        lambda g, ans, x: lax.mul(lax.add(g, lax.mul(g, ans)), lax.sub(_one(x), ans)),
    ],
)  # fmt: skip
asinh_p: Primitive = function_of_one(
    "asinh", chlo_lowering("asinh"), lambda ans, x: rsqrt(lax.add(lax.square(x), _one(x))),
)  # fmt: skip
acosh_p: Primitive = function_of_one(
    "acosh", chlo_lowering("acosh"),
    lambda ans, x: rsqrt(lax.mul(lax.sub(x, _one(x)), lax.add(x, _one(x)))),
)  # fmt: skip
atanh_p: Primitive = function_of_one(
    "atanh", chlo_lowering("atanh"), lambda ans, x: lax.reciprocal(lax.one_minus_square(x)),
)  # fmt: skip
logistic_p: Primitive = function_of_one(
    "logistic", builder("logistic"), lambda ans, x: lax.mul(ans, lax.sub(_one(ans), ans)),
)  # fmt: skip
sqrt_p: Primitive = function_of_one(
    "sqrt", builder("sqrt"), lambda ans, x: lax.div(scalar_like(x, 0.5), ans)
)
rsqrt_p: Primitive = function_of_one(
    "rsqrt", builder("rsqrt"), lambda ans, x: _times(-0.5, lax.div(ans, x))
)
cbrt_p: Primitive = function_of_one(
    "cbrt", builder("cbrt"), lambda ans, x: lax.div(scalar_like(x, 1 / 3), lax.square(ans)), FLOAT,
)  # fmt: skip


def _atan2_by(factor: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def derivative(g: Any, ans: Any, x: Any, y: Any) -> Any:
        return lax.mul(g, lax.div(factor(x, y), lax.add(lax.square(x), lax.square(y))))

    return derivative


atan2_p: Primitive = elementwise(
    "atan2", builder("atan2"), FLOAT, FLOAT,
    derivatives=[_atan2_by(lambda x, y: y), _atan2_by(lambda x, y: lax.neg(x))],
)  # fmt: skip
