"""Exponential, sine and cosine integrals, and the dilogarithm: expi exp1 expn sici spence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes, get_aval
from lamina.lax.special.program import chebyshev, iterate, polynomial, where
from lamina.numpy.promotion import Array, ArrayLike
from lamina.scipy.special import tables
from lamina.scipy.special.define import in_double

_EULER = 0.57721566490153286
# Ein(x) / x = sum of (-x)^k / ((k + 1) (k + 1)!)
_EIN = tuple((-1) ** k / ((k + 1) * math.factorial(k + 1)) for k in range(20))


# ---- exponential integrals ---------------------------------------------------------------------
def _exp1_double(x: Any) -> Any:
    small = x <= 1.0
    near = where(small & (x > 0.0), x, 1.0)
    series = near * polynomial(near, _EIN) - (lax.log(near) + _EULER)
    far = lax.min(where(small, 1.0, x), np.float64(1e10))
    distant = chebyshev((far - 4.0) / (far + 2.0), tables.EXP1) * lax.exp(-far) / far
    value = where(small, series, distant)
    return where(x > 0.0, value, where(x == 0.0, math.inf, math.nan))


def _expi_positive(x: Any) -> Any:
    near = lax.min(x, np.float64(6))
    value = lax.log(near) + _EULER + near * chebyshev(near * (1 / 3) - 1.0, tables.EXPI_NEAR)
    middle = lax.clamp(np.float64(6), x, np.float64(12))
    second = chebyshev(3.0 - 24.0 / middle, tables.EXPI_MIDDLE)
    farther = lax.clamp(np.float64(12), x, np.float64(24))
    third = chebyshev(3.0 - 48.0 / farther, tables.EXPI_FARTHER)
    far = lax.max(x, np.float64(24))
    fourth = chebyshev(48.0 / far - 1.0, tables.EXPI_FAR)
    scaled = where(x <= 12.0, second, where(x <= 24.0, third, fourth))
    half = lax.exp(0.5 * x)
    large = half * (scaled / x) * half
    return where(x <= 6.0, value, where(x == math.inf, math.inf, large))


def _expi_double(x: Any) -> Any:
    positive = x > 0.0
    right = _expi_positive(where(positive, x, 1.0))
    left = -_exp1_double(where(x < 0.0, -x, 1.0))
    value = where(positive, right, where(x == 0.0, -math.inf, left))
    return where(x == x, value, math.nan)


exp1 = in_double("exp1", _exp1_double, 1, [lambda g, ans, x: -g * jnp.exp(-x) / x])
exp1.__doc__ = """The exponential integral E1(x), elementwise: the integral of exp(-t) / t from x to
infinity.

x  an array of real numbers; infinite at 0, NaN below.

>>> print(lamina.scipy.special.exp1(jnp.array([0.0, 1.0])).round(4))
[   inf 0.2194]
"""
expi = in_double("expi", _expi_double, 1, [lambda g, ans, x: g * jnp.exp(x) / x])
expi.__doc__ = """The exponential integral Ei(x), elementwise: the principal value of the integral
of exp(t) / t from -infinity to x.

x  an array of real numbers; -inf at 0.

>>> print(lamina.scipy.special.expi(jnp.array([0.0, 1.0])).round(4))
[  -inf 1.8951]
"""


def _expn_double(n: Any, x: Any) -> Any:
    """By the series DLMF 8.19.8 up to 1, by the continued fraction 8.19.17 beyond."""
    n = jnp.trunc(n)  # as SciPy takes an order that is no integer
    valid = (n >= 0.0) & (x >= 0.0)
    inside = valid & (x > 0.0) & (n > 0.0) & (x < math.inf)
    small = inside & (x <= 1.0)
    order, near = where(small, n, 1.0), where(small, x, 1.0)

    # (-x)^(n-1) / (n-1)! (digamma(n) - log x) - sum over k != n-1 of (-x)^k / ((k - n + 1) k!)
    def step(k: Any, power: Any, total: Any) -> Any:
        power = power * (-near / k)
        gap = k - order + 1.0
        return power, total - where(gap == 0.0, 0.0, power / where(gap == 0.0, 1.0, gap))

    def unfinished(power: Any, total: Any) -> Any:
        return lax.abs(power) > 2.0**-60

    one = lax.full_like(x, 1)
    first = where(order == 1.0, 0.0, -1.0 / where(order == 1.0, 1.0, 1.0 - order))
    total = iterate(step, unfinished, (one, first), 60)[1]
    size = lax.exp((order - 1.0) * lax.log(near) - lax.lgamma(order))
    odd = lax.floor(0.5 * (order - 1.0)) * 2.0 != order - 1.0
    leading = where(odd, -size, size) * (lax.digamma(order) - lax.log(near))
    series = total + leading

    large = inside & (x > 1.0)
    m, far = where(large, n, 1.0), where(large, x, 2.0)

    def descend(k: Any, c: Any, d: Any, h: Any, change: Any) -> Any:
        numerator = -k * (m - 1.0 + k)
        b = far + m + 2.0 * k
        d = 1.0 / (b + numerator * d)
        c = b + numerator / c
        return c, d, h * (c * d), lax.abs(c * d - 1.0)

    start = 1.0 / (far + m)
    state = (lax.full_like(x, 1e300), start, start, one)
    fraction = iterate(descend, lambda c, d, h, e: e > 2.0**-53, state, 2000)[2]
    distant = fraction * lax.exp(-far)

    value = where(small, series, distant)
    at_zero = where(n <= 1.0, math.inf, 1.0 / where(n <= 1.0, 1.0, n - 1.0))
    value = where(x == 0.0, at_zero, value)
    value = where((n == 0.0) & (x > 0.0), lax.exp(-x) / where(x > 0.0, x, 1.0), value)
    value = where(x == math.inf, 0.0, value)
    return where(valid, value, math.nan)


def _refuse_order(*_: Any) -> Any:
    raise NotImplementedError("expn has no derivative with respect to its order")


expn: Callable[..., Any] = in_double("expn", _expn_double, 2, [
    _refuse_order,
    lambda g, ans, n, x: -g * expn(n - 1, x),
])  # fmt: skip
expn.__doc__ = """The generalised exponential integral E_n(x), elementwise: the integral of exp(-x
t) / t**n from 1 to infinity. By DLMF 8.19.8 and 8.19.17.

n  orders 0, 1, 2, ... (of others the whole part), which broadcast with x; there is no derivative by them.
x  an array of real numbers, not negative; else NaN.

>>> print(lamina.scipy.special.expn(jnp.array([1, 2]), 1.0).round(4))
[0.2194 0.1485]
"""


# ---- sine and cosine integrals -----------------------------------------------------------------
def _auxiliary(x: Any) -> tuple[Any, Any, Any, Any]:
    """f and g of DLMF 6.2(iii), sin and cos, at x >= 4."""
    far = lax.clamp(np.float64(4), x, np.float64(1e100))
    inverse = 1.0 / far
    t = 32.0 * inverse * inverse - 1.0
    f = inverse * chebyshev(t, tables.SICI_F)
    g = inverse * inverse * chebyshev(t, tables.SICI_G)
    return f, g, lax.sin(far), lax.cos(far)


def _si(x: Any) -> Any:
    size = lax.abs(x)
    near = lax.min(size, np.float64(4))
    small = near * chebyshev(near * near * 0.125 - 1.0, tables.SI_NEAR)
    f, g, sine, cosine = _auxiliary(size)
    large = where(size == math.inf, math.pi / 2, math.pi / 2 - f * cosine - g * sine)
    value = lax.sign(x) * where(size <= 4.0, small, large)
    return where(x == x, value, x)


def _ci(x: Any) -> Any:
    size = lax.abs(x)
    near = lax.min(size, np.float64(4))
    square = near * near
    small = lax.log(near) + _EULER - square * chebyshev(square * 0.125 - 1.0, tables.CIN_NEAR)
    f, g, sine, cosine = _auxiliary(size)
    large = where(x == math.inf, 0.0, f * sine - g * cosine)
    value = where(size <= 4.0, small, large)
    return where((x == x) & (x > -math.inf), value, math.nan)


_sine_integral = in_double("si", _si, 1, [lambda g, ans, x: g * jnp.sinc(x / math.pi)])
_cosine_integral = in_double("ci", _ci, 1, [lambda g, ans, x: g * jnp.cos(x) / x])


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and the cosine integral, elementwise: Si(x), of sin(t) / t from 0 to x, and Ci(x),
    minus the integral of cos(t) / t from x to infinity.

    x  an array of real numbers; below 0 the real part of Ci(x) is given. Gives a tuple of two
       arrays.

    Raises ValueError for complex numbers.

    >>> si, ci = lamina.scipy.special.sici(jnp.array([1.0]))
    >>> print(si.round(4), ci.round(4))
    [0.9461] [0.3374]
    """
    if dtypes.is_complex(get_aval(x).dtype):
        raise ValueError(f"Argument `x` to sici must be real-valued. Got {get_aval(x).str_short()}")
    return _sine_integral(x), _cosine_integral(x)


# ---- the dilogarithm ---------------------------------------------------------------------------
def _dilog(y: Any) -> Any:
    return y * chebyshev((4.0 * y + 1.0) * (1 / 3), tables.DILOG)


def _spence(x: Any) -> Any:
    """Li2(1 - x), brought to arguments from -1 to 1/2 by DLMF 25.12.4 and 25.12.6."""
    tiny = x == 0.0
    y = where(tiny, 0.5, x)
    log = lax.log(y)
    # x < 1/2: pi^2/6 - log x log(1-x) - Li2(x); x <= 2: itself; beyond: by 1 - 1/x
    low, high = y < 0.5, y > 2.0
    inner = _dilog(where(low, y, where(high, 1.0 - 1.0 / y, 1.0 - y)))
    left = math.pi**2 / 6 - log * lax.log1p(-where(low, y, 0.25)) - inner
    right = -inner - 0.5 * log * log
    half = 1.0 / where(high, y, 2.0)
    small = half < 0.5
    # for x > 2, Li2(1 - 1/x) itself needs the reflection
    reflected = math.pi**2 / 6 - lax.log(half) * lax.log1p(-half) - _dilog(where(small, half, 0.25))
    right = where(small, -reflected - 0.5 * log * log, right)
    value = where(low, left, where(high, right, inner))
    value = where(tiny, math.pi**2 / 6, value)
    return where((x >= 0.0) & (x < math.inf), value, math.nan)


def _spence_derivative(g: Any, ans: Any, x: Any) -> Any:
    near_one = jnp.abs(x - 1) < 1e-3
    away = jnp.where(near_one, 2, x)
    z = x - 1
    series = -1 + z * (1 / 2 - z * (1 / 3 - z / 4))
    return g * jnp.where(near_one, series, jnp.log(away) / (1 - away))


spence = in_double("spence", _spence, 1, [_spence_derivative])
spence.__doc__ = """Spence's integral, elementwise: of log(t) / (1 - t) from 1 to x, which is the
dilogarithm of 1 - x.

x  an array of real numbers, not negative; else NaN.

>>> print(lamina.scipy.special.spence(jnp.array([0.0, 1.0])).round(4))
[1.6449 0.    ]
"""
