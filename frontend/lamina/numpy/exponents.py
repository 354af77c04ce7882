"""Exponentials, logarithms, trigonometric and hyperbolic functions. Integers become floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.control_flow import custom_jvp
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.core.wrapping import renamed
from lamina.numpy._eager import compiled
from lamina.numpy.bessel_functions import bessel_i0
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    check_arraylike,
    convert,
    literal,
    pick,
    promote_args_inexact,
    promote_strong,
    promote_strong_arrays,
)  # fmt: skip


def exp(x: ArrayLike, /) -> Array:
    """e ** x.

    x  an array or number; integers become floats
    >>> print(jnp.exp(jnp.array([0.0, 1.0])).round(3))
    [1.    2.718]
    """
    return lax.exp(*promote_args_inexact("exp", x))


def exp2(x: ArrayLike, /) -> Array:
    """2 ** x.

    x  an array or number; integers become floats
    >>> print(jnp.exp2(jnp.array([3.0, -1.0])).round(3))
    [8.  0.5]
    """
    return lax.exp2(*promote_args_inexact("exp2", x))


def expm1(x: ArrayLike, /) -> Array:
    """e ** x - 1, exact for small x.

    x  an array or number; integers become floats
    >>> print(jnp.expm1(jnp.array([0.0, 1.0])).round(3))
    [0.    1.718]
    """
    return lax.expm1(*promote_args_inexact("expm1", x))


def log(x: ArrayLike, /) -> Array:
    """Natural logarithm.

    x  an array or number; integers become floats
    >>> print(jnp.log(jnp.array([1.0, 10.0])).round(3))
    [0.    2.303]
    """
    return lax.log(*promote_args_inexact("log", x))


def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), exact for small x.

    x  an array or number; integers become floats
    >>> print(jnp.log1p(jnp.array([0.0, 1.0])).round(3))
    [0.    0.693]
    """
    return lax.log1p(*promote_args_inexact("log1p", x))


def log2(x: ArrayLike, /) -> Array:
    """Logarithm to base 2.

    x  an array or number; integers become floats
    >>> print(jnp.log2(jnp.array([2.0, 8.0])).round(3))
    [1. 3.]
    """
    return lax.log2(*promote_args_inexact("log2", x))


def log10(x: ArrayLike, /) -> Array:
    """Logarithm to base 10.

    x  an array or number; integers become floats
    >>> print(jnp.log10(jnp.array([10.0, 1000.0])).round(3))
    [1. 3.]
    """
    (x,) = promote_strong("log10", x)
    return _log10(x)


@compiled
def _log10(x: Any) -> Array:
    return lax.mul(lax.log(x), literal(x, 1 / np.log(10)))


def sin(x: ArrayLike, /) -> Array:
    """Sine of radians.

    x  an array or number; integers become floats
    >>> print(jnp.sin(jnp.array([0.0, 1.0])).round(3))
    [0.    0.841]
    """
    return lax.sin(*promote_args_inexact("sin", x))


def cos(x: ArrayLike, /) -> Array:
    """Cosine of radians.

    x  an array or number; integers become floats
    >>> print(jnp.cos(jnp.array([0.0, 1.0])).round(3))
    [1.   0.54]
    """
    return lax.cos(*promote_args_inexact("cos", x))


def tan(x: ArrayLike, /) -> Array:
    """Tangent of radians.

    x  an array or number; integers become floats
    >>> print(jnp.tan(jnp.array([0.0, 1.0])).round(3))
    [0.    1.557]
    """
    return lax.tan(*promote_args_inexact("tan", x))


def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine.

    x  an array or number; integers become floats
    >>> print(jnp.sinh(jnp.array([0.0, 1.0])).round(3))
    [0.    1.175]
    """
    return lax.sinh(*promote_args_inexact("sinh", x))


def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine.

    x  an array or number; integers become floats
    >>> print(jnp.cosh(jnp.array([0.0, 1.0])).round(3))
    [1.    1.543]
    """
    return lax.cosh(*promote_args_inexact("cosh", x))


def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent.

    x  an array or number; integers become floats
    >>> print(jnp.tanh(jnp.array([0.0, 1.0])).round(3))
    [0.    0.762]
    """
    return lax.tanh(*promote_args_inexact("tanh", x))


def arcsin(x: ArrayLike, /) -> Array:
    """Inverse sine, in radians; NaN outside [-1, 1].

    x  an array or number; integers become floats
    >>> print(jnp.arcsin(jnp.array([0.0, 1.0])).round(3))
    [0.    1.571]
    """
    return lax.asin(*promote_args_inexact("arcsin", x))


def arccos(x: ArrayLike, /) -> Array:
    """Inverse cosine, in radians; NaN outside [-1, 1].

    x  an array or number; integers become floats
    >>> print(jnp.arccos(jnp.array([0.0, 1.0])).round(3))
    [1.571 0.   ]
    """
    return lax.acos(*promote_args_inexact("arccos", x))


def arctan(x: ArrayLike, /) -> Array:
    """Inverse tangent, in radians.

    x  an array or number; integers become floats
    >>> print(jnp.arctan(jnp.array([0.0, 1.0])).round(3))
    [0.    0.785]
    """
    return lax.atan(*promote_args_inexact("arctan", x))


def arcsinh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic sine.

    x  an array or number; integers become floats
    >>> print(jnp.arcsinh(jnp.array([0.0, 1.0])).round(3))
    [0.    0.881]
    """
    return lax.asinh(*promote_args_inexact("arcsinh", x))


def arccosh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic cosine; NaN below 1.

    x  an array or number; integers become floats
    >>> print(jnp.arccosh(jnp.array([1.0, 2.0])).round(3))
    [0.    1.317]
    """
    return lax.acosh(*promote_args_inexact("arccosh", x))


def arctanh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic tangent; NaN outside [-1, 1].

    x  an array or number; integers become floats
    >>> print(jnp.arctanh(jnp.array([0.0, 0.5])).round(3))
    [0.    0.549]
    """
    return lax.atanh(*promote_args_inexact("arctanh", x))


def arctan2(y: ArrayLike, x: ArrayLike, /) -> Array:
    """The angle of the point (x, y), in (-pi, pi].

    y, x  real numbers or arrays that broadcast together
    >>> print(jnp.arctan2(jnp.array([1.0, -1.0]), 1.0).round(3))
    [ 0.785 -0.785]
    """
    y, x = promote_args_inexact("arctan2", y, x)
    return _complex_arctan2(y, x) if get_aval(x).dtype.kind == "c" else lax.atan2(y, x)


@compiled
def _complex_arctan2(y: Any, x: Any) -> Array:
    """-i log((x + iy) / sqrt(x**2 + y**2)): the continuation of the angle."""
    i = literal(x, 1j)
    radius = lax.sqrt(lax.add(lax.square(x), lax.square(y)))
    return lax.neg(lax.mul(i, lax.log(lax.div(lax.add(x, lax.mul(i, y)), radius))))


asin = renamed(arcsin, "asin")
acos = renamed(arccos, "acos")
atan = renamed(arctan, "atan")
atan2 = renamed(arctan2, "atan2")
asinh = renamed(arcsinh, "asinh")
acosh = renamed(arccosh, "acosh")
atanh = renamed(arctanh, "atanh")


def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees to radians.

    x  an array or number; integers become floats
    >>> print(jnp.deg2rad(180.0).round(3))
    3.142
    """
    (x,) = promote_args_inexact("deg2rad", x)
    return lax.mul(x, literal(x, np.pi / 180))


def rad2deg(x: ArrayLike, /) -> Array:
    """Radians to degrees.

    x  an array or number; integers become floats
    >>> print(jnp.rad2deg(jnp.pi).round(3))
    180.0
    """
    (x,) = promote_args_inexact("rad2deg", x)
    return lax.mul(x, literal(x, 180 / np.pi))


radians = renamed(deg2rad, "radians")
degrees = renamed(rad2deg, "degrees")


def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """sqrt(x**2 + y**2) without overflow on the way; inf beside an inf, even with NaN.

    x     an array or number; integers become floats
    x, y  real numbers or arrays that broadcast together
    >>> jnp.hypot(3.0, 4.0)
    Array(5., dtype=float32, weak_type=True)
    """
    x, y = promote_args_inexact("hypot", x, y)
    if get_aval(x).dtype.kind == "c":
        raise ValueError(f"{library}.numpy.hypot is not well defined for complex-valued inputs")
    return _hypot(x, y)


@compiled
def _hypot(x: Any, y: Any) -> Array:
    x, y = lax.abs(x), lax.abs(y)
    inf, one = literal(x, np.inf), literal(x, 1)
    infinite = lax.bitwise_or(lax.eq(x, inf), lax.eq(y, inf))
    big, small = lax.max(x, y), lax.min(x, y)
    none = lax.eq(big, literal(x, 0))
    ratio = lax.div(small, pick(none, one, big))
    out = pick(none, big, lax.mul(big, lax.sqrt(lax.add(one, lax.square(ratio)))))
    return pick(infinite, inf, out)


def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Array:
    """log(exp(x) + exp(y)) without overflow on the way.

    x     an array or number; integers become floats
    x, y  real numbers or arrays that broadcast together
    >>> print(jnp.logaddexp(1000.0, 1000.0).round(3))
    1000.693
    """
    return _logaddexp(*promote_args_inexact("logaddexp", x, y))


def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """log2(2**x + 2**y) without overflow on the way.

    x     an array or number; integers become floats
    x, y  real numbers or arrays that broadcast together
    >>> jnp.logaddexp2(3.0, 3.0)
    Array(4., dtype=float32, weak_type=True)
    """
    x, y = promote_strong_arrays("logaddexp2", x, y)
    ln2 = literal(x, np.log(2))
    return lax.div(_logaddexp(lax.mul(x, ln2), lax.mul(y, ln2)), ln2)


@custom_jvp
def _logaddexp_core(x: Any, y: Any) -> Array:
    delta = lax.sub(x, y)
    if get_aval(x).dtype.kind == "c":
        # The term of the greater real part, and what the other adds to it.
        top, bottom = (f(x, y) for f in (lax.max, lax.min))
        out = lax.add(top, lax.log1p(lax.exp(lax.sub(bottom, top))))
        angle = lax.imag(out)  # between -pi and pi
        turn = literal(angle, 2 * np.pi)
        turns = lax.round(lax.div(angle, turn), lax.RoundingMethod.TO_NEAREST_EVEN)
        out = lax.complex(lax.real(out), lax.sub(angle, lax.mul(turns, turn)))
        return pick(lax.ne(delta, delta), lax.add(x, y), out)
    out = lax.add(lax.max(x, y), lax.log1p(lax.exp(lax.neg(lax.abs(delta)))))
    # inf - inf is NaN: the sum is the infinity, or the NaN, that is wanted.
    return pick(lax.ne(delta, delta), lax.add(x, y), out)


@_logaddexp_core.defjvp
def _logaddexp_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x, y), (dx, dy) = primals, tangents
    out = _logaddexp_core(x, y)

    def share(z: Any) -> Array:  # exp(z - out), with inf - inf as 0
        finite = [pick(lax.eq(w, literal(w, np.inf)), literal(w, 0), w) for w in (z, out)]
        return lax.exp(lax.sub(*finite))

    return out, lax.add(lax.mul(dx, share(x)), lax.mul(dy, share(y)))


_logaddexp = compiled(_logaddexp_core)


def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), and 1 at 0.

    x  an array or number; integers become floats
    >>> print(jnp.sinc(jnp.array([0.0, 0.5])).round(3))
    [1.    0.637]
    """
    (x,) = promote_strong_arrays("sinc", x)
    return _sinc(x)


@compiled
def _sinc(x: Any) -> Array:
    # sin(pi x) = (-1)^n sin(pi r) where x = n + r: r is exact, and 0 where x is an integer.
    real = lax.real(x) if dtypes.is_complex(x.dtype) else x
    n = lax.round(real, lax.RoundingMethod.TO_NEAREST_EVEN)
    is_infinite = lax.eq(lax.abs(real), literal(real, np.inf))
    rest = lax.sub(x, lax.convert_element_type(n, x.dtype) if dtypes.is_complex(x.dtype) else n)
    rest = pick(is_infinite, literal(x, 0), rest)
    half = lax.mul(n, literal(n, 0.5))
    is_odd = lax.ne(half, lax.round(half, lax.RoundingMethod.TO_NEAREST_EVEN))
    sine = lax.sin(lax.mul(rest, literal(x, np.pi)))
    sine = pick(is_odd, lax.neg(sine), sine)
    angle = lax.mul(x, literal(x, np.pi))
    # Near 0 the series: equal to the last bit, and its derivatives exist at 0.
    near = lax.lt(lax.abs(angle), np.asarray(1e-2).astype(lax.abs(angle).dtype)[()])
    one = literal(x, 1)
    t = lax.square(pick(near, angle, literal(x, 0)))
    series = one
    for k in (9, 7, 5, 3):  # 1 - t/6 (1 - t/20 (1 - t/42 (1 - t/72)))
        series = lax.sub(one, lax.mul(lax.mul(t, literal(x, 1 / (k * (k - 1)))), series))
    far = lax.add(lax.div(sine, pick(near, one, angle)), literal(x, 0))  # -0 becomes 0
    return pick(near, series, far)


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers with the positive real axis; 0 or pi of reals.

    z    an array or number
    deg  whether in degrees rather than radians
    >>> print(jnp.angle(jnp.array([1j, -1])).round(3))
    [1.571 3.142]
    """
    from lamina.numpy.arithmetic import imag, real

    check_arraylike("angle", z)
    of = get_aval(z).dtype
    if not dtypes.is_complex(of):  # as JAX's, not weak
        z = convert(z, of if dtypes.is_inexact(of) else dtypes.default_dtype(float))
    out = lax.atan2(imag(z), real(z))
    return rad2deg(out) if deg else out


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0.

    x  a real array or number
    >>> print(jnp.i0(jnp.array([0.0, 1.0])).round(3))
    [1.    1.266]
    """
    check_arraylike("i0", x)
    if get_aval(x).dtype.kind == "c":
        raise ValueError(f"Unsupported input type to {library}.numpy.i0: {get_aval(x).dtype.name}")
    (x,) = promote_args_inexact("i0", x)
    return _i0(x)


@compiled
def _i0(x: Any) -> Array:
    return bessel_i0(x)
