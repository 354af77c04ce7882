"""The error function and its kin: erf erfc erfcx erfinv dawsn wofz fresnel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.control_flow import custom_jvp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.lax.checks import scalar_like
from lamina.lax.special.program import chebyshev, where
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, promote_args_inexact
from lamina.scipy.special import tables
from lamina.scipy.special.define import in_double

_ROOT_PI = math.sqrt(math.pi)


def erf(x: ArrayLike) -> Array:
    """The error function.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.erf(jnp.array([0.25, 0.5])).round(3))
    [0.276 0.52 ]
    """
    return lax.erf(*promote_args_inexact("erf", x))


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), accurate for large x.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.erfc(jnp.array([0.25, 0.5])).round(3))
    [0.724 0.48 ]
    """
    return lax.erfc(*promote_args_inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of erf on (-1, 1).

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.erfinv(jnp.array([0.25, 0.5])).round(3))
    [0.225 0.477]
    """
    return lax.erf_inv(*promote_args_inexact("erfinv", x))


def mills(t: Any) -> Any:
    """exp(t^2 / 2) ndtr(-t), Mills' ratio times the density at 0, for finite t >= 0."""
    inverse = 1.0 / (t + 5.0)
    return chebyshev((t - 5.0) * inverse, tables.MILLS) * inverse


def halves(x: Any) -> tuple[Any, Any]:
    """x as a sum of two numbers of half its digits, whose products are exact."""
    word, low_bits = (np.uint64, 27) if x.dtype == np.float64 else (np.uint32, 12)
    mask = word(-(1 << low_bits) % (1 << np.dtype(word).itemsize * 8))
    bits = lax.bitwise_and(lax.bitcast_convert_type(x, word), mask)
    high = lax.bitcast_convert_type(bits, x.dtype)
    return high, x - high


def square_and_error(x: Any) -> tuple[Any, Any]:
    """x^2, and what rounding has taken from it."""
    square = x * x
    high, low = halves(x)
    return square, ((high * high - square) + 2.0 * high * low) + low * low


def _erfcx(x: Any) -> Any:
    size = lax.min(lax.abs(x), scalar_like(x, float(np.finfo(x.dtype).max) / 4))
    positive = 2.0 * mills(size * math.sqrt(2))
    square, error = square_and_error(size)
    grown = lax.exp(square)
    grown = where(grown < math.inf, grown + grown * error, grown)
    result = where(x < 0.0, 2.0 * grown - positive, positive)
    return where(x == math.inf, 0.0, result)


_real_erfcx = in_double("erfcx", _erfcx, 1, [
    lambda g, ans, x: g * (2 * x * ans - 2 / _ROOT_PI),
], stable=True)  # fmt: skip


def erfcx(x: ArrayLike) -> Array:
    """exp(x**2) erfc(x), elementwise, without overflow or underflow for positive x.

    x  an array of real or complex numbers.

    >>> print(lamina.scipy.special.erfcx(jnp.array([0.0, 100.0])).round(5))
    [1.      0.00564]
    """
    (x,) = promote_args_inexact("erfcx", x)
    return wofz(1j * jnp.asarray(x)) if get_aval(x).dtype.kind == "c" else _real_erfcx(x)


def _dawsn(x: Any) -> Any:
    size = lax.abs(x)
    near = lax.min(size, np.float64(5))
    near = near * chebyshev(near * near * (2 / 25) - 1.0, tables.DAWSON_NEAR)
    large = lax.max(size, np.float64(5))
    inverse = 5.0 / large
    far = chebyshev(2.0 * inverse * inverse - 1.0, tables.DAWSON_FAR) / (2.0 * large)
    value = where(size <= 5.0, near, far)
    return where(x == x, lax.sign(x) * value, x)


dawsn = in_double("dawsn", _dawsn, 1, [lambda g, ans, x: g * (1 - 2 * x * ans)])
dawsn.__doc__ = """Dawson's integral, elementwise: exp(-x**2) times the integral of exp(t**2) from 0
to x.

x  an array of real numbers.

>>> print(lamina.scipy.special.dawsn(jnp.array([0.0, 1.0])).round(4))
[0.     0.5381]
"""


# ---- Fresnel's integrals -----------------------------------------------------------------------
def _fresnel(x: Any) -> tuple[Any, Any]:
    size = lax.abs(x)
    near = lax.min(size, np.float64(1.5))
    square = near * near
    t = 2.0 * (square / 2.25) * (square / 2.25) - 1.0
    sine = near * square * chebyshev(t, tables.FRESNEL_S)
    cosine = near * chebyshev(t, tables.FRESNEL_C)
    far = lax.max(size, np.float64(1.5))
    far = lax.min(far, np.float64(1e100))
    ratio = (1.5 / far) * (1.5 / far)
    t = 2.0 * ratio * ratio - 1.0
    f = chebyshev(t, tables.FRESNEL_F) / (math.pi * far)
    g = chebyshev(t, tables.FRESNEL_G) / (math.pi**2 * far * far * far)
    # pi x^2 / 2 modulo 2 pi: the remainder of the square by 4 is exact, but for the square itself.
    angle = _half_pi_times_square(far)
    s, c = lax.sin(angle), lax.cos(angle)
    large = size > 1.5
    sine = where(large, 0.5 - f * c - g * s, sine)
    cosine = where(large, 0.5 + f * s - g * c, cosine)
    return sine, cosine


def _half_pi_times_square(x: Any) -> Any:
    high, low = halves(x)
    square = high * high
    rest = 2.0 * high * low + low * low
    four = lax.full_like(x, 4)
    turn = lax.rem(square, four) + lax.rem(rest, four)
    return turn * (math.pi / 2)


def _fresnel_s(x: Any) -> Any:
    value = lax.sign(x) * _fresnel(x)[0]
    return where(x == x, where(lax.abs(x) == math.inf, 0.5 * lax.sign(x), value), x)


def _fresnel_c(x: Any) -> Any:
    value = lax.sign(x) * _fresnel(x)[1]
    return where(x == x, where(lax.abs(x) == math.inf, 0.5 * lax.sign(x), value), x)


_sine_integral = in_double("fresnel_s", _fresnel_s, 1, [
    lambda g, ans, x: g * jnp.sin(0.5 * math.pi * x * x),
])  # fmt: skip
_cosine_integral = in_double("fresnel_c", _fresnel_c, 1, [
    lambda g, ans, x: g * jnp.cos(0.5 * math.pi * x * x),
])  # fmt: skip


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals S(x) and C(x), elementwise: of sin(pi t**2 / 2) and cos(pi t**2 / 2) from
    0 to x.

    x  an array of real numbers. Gives a tuple of two arrays of its shape.

    >>> s, c = lamina.scipy.special.fresnel(jnp.array([1.0]))
    >>> print(s.round(4), c.round(4))
    [0.4383] [0.7799]
    """
    return _sine_integral(x), _cosine_integral(x)


# ---- Faddeeva's function -----------------------------------------------------------------------
@compiled
def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function exp(-z**2) erfc(-i z), elementwise; complex.

    z  an array of real or complex numbers.

    >>> print(lamina.scipy.special.wofz(jnp.array([0j, 1j])).round(4))
    [1.    +0.j 0.4276+0.j]
    """
    (z,) = promote_args_inexact("wofz", z)
    return _wofz(lax.convert_element_type(z, dtypes.complex_dtype(get_aval(z).dtype)))


@custom_jvp
def _wofz(z: Any) -> Array:
    """Weideman's rational series in the upper half plane, far out the asymptotic one; below by
    w(z) = 2 exp(-z^2) - w(-z)."""
    lower = z.imag < 0
    upper = jnp.where(lower, -z, z)
    size = len(tables.FADDEEVA)
    scale = math.sqrt(size / math.sqrt(2))
    far = jnp.abs(upper) > 12
    near = jnp.where(far, 1j, upper).astype(z.dtype)
    turned = 1j * near
    below = scale - turned
    ratio = (scale + turned) / below
    total = jnp.zeros_like(near)
    for c in reversed(tables.FADDEEVA):
        total = total * ratio + c
    series = (2 * total / below + 1 / _ROOT_PI) / below
    distant = jnp.where(far, upper, 12j).astype(z.dtype)
    # Laplace's continued fraction, a few terms of which are enough
    fraction = distant
    for k in range(9, 0, -1):
        fraction = distant - (k / 2) / fraction
    value = jnp.where(far, 1j / _ROOT_PI / fraction, series)
    mirrored = 2 * jnp.exp(-z * z) - value
    return jnp.where(lower, mirrored, value).astype(z.dtype)


@_wofz.defjvp
def _wofz_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (z,), (dz,) = primals, tangents
    value = _wofz(z)
    return value, (dz * (2j / _ROOT_PI - 2 * z * value)).astype(value.dtype)
