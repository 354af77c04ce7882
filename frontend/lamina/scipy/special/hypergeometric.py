"""Hypergeometric functions of real arguments: hyp1f1, hyp2f1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.lax.special.program import derivative_of, iterate, where
from lamina.scipy.special.define import in_double
from lamina.scipy.special.gamma_functions import _gamma, _sign

_EPS = 2.0**-54


# ---- Kummer's function -------------------------------------------------------------------------
def _kummer_series(a: Any, b: Any, x: Any) -> Any:
    def step(k: Any, term: Any, total: Any) -> Any:
        term = term * ((a + (k - 1.0)) / (b + (k - 1.0))) * (x / k)
        return term, total + term

    def unfinished(term: Any, total: Any) -> Any:
        return lax.abs(term) > _EPS * lax.abs(total)

    one = lax.full_like(x, 1)
    return iterate(step, unfinished, (one, one), 2000)[1]


def _gamma_quotient(top: Any, bottom: Any) -> Any:
    """gamma(top) / gamma(bottom), 0 where bottom is a pole."""
    pole = (bottom <= 0.0) & (lax.floor(bottom) == bottom)
    below = where(pole, 1.0, bottom)
    size = lax.exp(lax.lgamma(top) - lax.lgamma(below))
    return where(pole, 0.0, size * _sign(top) * _sign(below))


def _kummer_far(a: Any, b: Any, x: Any) -> Any:
    """The asymptotic series for large x of one sign (DLMF 13.7.2): by powers of 1 / |x|."""
    size = lax.abs(x)
    p, q = where(x > 0.0, b - a, a), where(x > 0.0, 1.0 - a, a - b + 1.0)

    def step(k: Any, term: Any, total: Any, least: Any) -> Any:
        following = term * ((p + (k - 1.0)) * (q + (k - 1.0)) / (k * size))
        # Summed while the terms fall.
        falls = lax.abs(following) < least
        following = where(falls, following, 0.0)
        return following, total + following, lax.min(least, lax.abs(following))

    def unfinished(term: Any, total: Any, least: Any) -> Any:
        return lax.abs(term) > _EPS * lax.abs(total)

    one = lax.full_like(x, 1)
    total = iterate(step, unfinished, (one, one, lax.full_like(x, math.inf)), 500)[1]
    log_size = lax.log(size)
    right = _gamma_quotient(b, a) * lax.exp(x + (a - b) * log_size)
    left = _gamma_quotient(b, b - a) * lax.exp(-a * log_size)
    return total * where(x > 0.0, right, left)


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    far = lax.abs(x) > 100.0
    near = where(far, 0.0, x)
    # Kummer's transformation keeps the terms of one sign.
    turned = near < 0.0
    series = _kummer_series(where(turned, b - a, a), b, lax.abs(near))
    series = where(turned, lax.exp(near), 1.0) * series
    distant = _kummer_far(a, b, where(far, x, 200.0))
    value = where(far, distant, series)
    return where((x == 0.0) | (a == 0.0), 1.0, value)


hyp1f1: Callable[..., Any] = in_double("hyp1f1", _hyp1f1, 3, [
    lambda g, ans, a, b, x: g * _hyp1f1_a(a, b, x),
    lambda g, ans, a, b, x: g * _hyp1f1_b(a, b, x),
    lambda g, ans, a, b, x: g * (a / b) * hyp1f1(a + 1, b + 1, x),
])  # fmt: skip
hyp1f1.__doc__ = """Kummer's confluent hypergeometric function 1F1(a; b; x), elementwise.

a, b, x  arrays of real numbers, which broadcast; computed in double precision.

>>> print(lamina.scipy.special.hyp1f1(1.0, 1.0, jnp.array([0.0, 1.0])).round(4))
[1.     2.7183]
"""
_hyp1f1_a: Callable[..., Any] = in_double("hyp1f1_grad_a", derivative_of(_hyp1f1, 0), 3, None)
_hyp1f1_b: Callable[..., Any] = in_double("hyp1f1_grad_b", derivative_of(_hyp1f1, 1), 3, None)


# ---- Gauss' function ---------------------------------------------------------------------------
def _gauss_series(a: Any, b: Any, c: Any, x: Any) -> Any:
    def step(k: Any, term: Any, total: Any) -> Any:
        n = k - 1.0
        term = term * ((a + n) * (b + n) / ((c + n) * k)) * x
        return term, total + term

    def unfinished(term: Any, total: Any) -> Any:
        return lax.abs(term) > _EPS * lax.abs(total)

    one = lax.full_like(x, 1)
    return iterate(step, unfinished, (one, one), 5000)[1]


def _inverse_gamma(x: Any) -> Any:
    pole = (x <= 0.0) & (lax.floor(x) == x)
    return where(pole, 0.0, 1.0 / _gamma(where(pole, 1.0, x)))


def _about_one(a: Any, b: Any, c: Any, x: Any) -> Any:
    """DLMF 15.8.4, in powers of 1 - x, for c - a - b that is no integer."""
    s, y = c - a - b, 1.0 - x
    first = _gauss_series(a, b, 1.0 - s, y) * _inverse_gamma(c - a) * _inverse_gamma(c - b)
    second = _gauss_series(c - a, c - b, 1.0 + s, y) * _inverse_gamma(a) * _inverse_gamma(b)
    return _gamma(c) * (_gamma(s) * first + _gamma(-s) * lax.pow(y, s) * second)


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    # Pfaff's transformation brings the negative axis to [0, 1).
    turned = x < 0.0
    factor = where(turned, lax.exp(-a * lax.log1p(-where(turned, x, 0.0))), 1.0)
    b1 = where(turned, c - b, b)
    y = where(turned, x / (x - 1.0), x)
    y = where(x == -math.inf, 1.0, y)

    polynomial = _whole_negative(a) | _whole_negative(b1)
    near = (y <= 0.75) | polynomial
    y1 = where(near & (y <= 1.0), y, 0.0)
    series = _gauss_series(a, b1, c, where(polynomial, y, y1))
    # Where c - a - b is an integer, the mean over c on both sides of it: a fourth-order rule.
    a2, b2, c2 = where(near, 0.5, a), where(near, 0.5, b1), where(near, 1.75, c)
    y2 = where(near | (y >= 1.0), 0.9, y)
    s = c2 - a2 - b2
    whole = lax.round(s, lax.RoundingMethod.TO_NEAREST_EVEN)
    step = lax.full_like(s, 2.0**-10)
    degenerate = lax.abs(s - whole) < 2.0**-11
    inner, outer = (
        0.5 * (_about_one(a2, b2, c2 + k, y2) + _about_one(a2, b2, c2 - k, y2))
        for k in (where(degenerate, step, 0.0), where(degenerate, 2.0 * step, 0.0))
    )
    beyond = where(degenerate, (4.0 * inner - outer) * (1 / 3), inner)

    # Gauss' theorem at 1
    s1 = c - a - b1
    at_one = _gamma(c) * _gamma(where(s1 > 0.0, s1, 1.0))
    at_one = at_one * _inverse_gamma(c - a) * _inverse_gamma(c - b1)
    at_one = where(s1 > 0.0, at_one, math.inf)
    value = where(near, series, where(y == 1.0, at_one, beyond))
    value = where((y > 1.0) & lax.bitwise_not(polynomial), math.inf, value)
    value = where((x == 0.0) | (a == 0.0) | (b == 0.0), 1.0, factor * value)
    return where((a == a) & (b == b) & (c == c) & (x == x), value, math.nan)


def _whole_negative(x: Any) -> Any:
    return (x <= 0.0) & (lax.floor(x) == x) & (x > np.float64(-1e4))


hyp2f1: Callable[..., Any] = in_double("hyp2f1", _hyp2f1, 4, [
    lambda g, ans, a, b, c, x: g * _hyp2f1_a(a, b, c, x),
    lambda g, ans, a, b, c, x: g * _hyp2f1_a(b, a, c, x),
    lambda g, ans, a, b, c, x: g * _hyp2f1_c(a, b, c, x),
    lambda g, ans, a, b, c, x: g * (a * b / c) * hyp2f1(a + 1, b + 1, c + 1, x),
])  # fmt: skip
hyp2f1.__doc__ = """Gauss' hypergeometric function 2F1(a, b; c; x), elementwise.

a, b, c  arrays of real numbers, which broadcast with x; computed in double
         precision.
x        an array of real numbers, at most 1.

>>> print(lamina.scipy.special.hyp2f1(1.0, 1.0, 2.0, jnp.array([0.0, 0.5])).round(4))
[1.     1.3863]
"""
_hyp2f1_a: Callable[..., Any] = in_double("hyp2f1_grad_a", derivative_of(_hyp2f1, 0), 4, None)
_hyp2f1_c: Callable[..., Any] = in_double("hyp2f1_grad_c", derivative_of(_hyp2f1, 2), 4, None)
