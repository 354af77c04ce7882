"""The gamma function and what is made of it: factorials, binomials, beta, polygamma, zeta."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.lax.special.gamma import rising, stirling_rest
from lamina.lax.special.program import polynomial, where
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    literal,
    promote_args_inexact,
    promote_strong,
)
from lamina.scipy.special.define import in_double

_LARGE = 12
# gamma(x) = sqrt(2 pi) x^(x - 1/2) e^-x times this series in 1/x (DLMF 5.11.3), here with the root.
_STIRLING = tuple(math.sqrt(2 * math.pi) * c for c in (
    1.0, 0.08333333333333333, 0.003472222222222222, -0.0026813271604938273, -0.00022947209362139917,
    0.0007840392217200666, 6.972813758365857e-05, -0.0005921664373536939, -5.171790908260592e-05,
    0.0008394987206720873, 7.204895416020011e-05, -0.0019144384985654776, -0.00016251626278391583,
    0.00640336283380807, 0.0005401647678926045,
))  # fmt: skip


# ---- gamma -------------------------------------------------------------------------------------
def gammaln(x: ArrayLike) -> Array:
    """log |gamma(x)|.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.gammaln(jnp.array([0.25, 0.5])).round(3))
    [1.288 0.572]
    """
    return lax.lgamma(*promote_args_inexact("gammaln", x))


@compiled
def loggamma(x: ArrayLike) -> Array:
    """log(gamma(x)), elementwise, for complex x on its principal branch, for which
    loggamma(x + 1) = loggamma(x) + log(x).

    x  an array of real numbers, of which negative ones give NaN, or of complex numbers.

    >>> print(lamina.scipy.special.loggamma(jnp.array([1.0, 4.0, -0.5])).round(4))
    [0.     1.7918    nan]
    """
    (x,) = promote_args_inexact("loggamma", x)
    if dtypes.is_complex(get_aval(x).dtype):
        return _complex_loggamma(x)
    return jnp.where(x < 0, literal(x, math.nan), lax.lgamma(x))


def _complex_loggamma(z: Any) -> Array:
    """Stirling's series, after a recurrence to the right and, in the left half plane, reflection."""
    left = z.real < 0.0
    w = jnp.where(left, 1 - z, z)
    shift, product = w, jnp.zeros_like(w)
    for _ in range(_LARGE):
        near = jnp.abs(shift) < _LARGE
        product = jnp.where(near, product + jnp.log(shift), product)
        shift = jnp.where(near, shift + 1, shift)
    right = (shift - 0.5) * jnp.log(shift) - shift + 0.5 * math.log(2 * math.pi)
    inverse = 1 / shift
    right = right + inverse * _polynomial(inverse * inverse) - product
    # log(sin(pi z)), continued through the upper half plane; the lower one is its mirror.
    upper = jnp.where(z.imag < 0, jnp.conj(z), z)
    turned = jnp.exp(2j * math.pi * (upper - jnp.floor(upper.real).astype(z.dtype)))
    log_sine = -1j * math.pi * (upper - 0.5) + jnp.log1p(-turned) - math.log(2)
    log_sine = jnp.where(z.imag < 0, jnp.conj(log_sine), log_sine)
    result = jnp.where(left, math.log(math.pi) - log_sine - right, right)
    pole = (z.imag == 0) & (z.real <= 0) & (z.real == jnp.floor(z.real))
    return jnp.where(pole, literal(z, complex(math.nan, math.nan)), result).astype(z.dtype)


def _polynomial(x: Any) -> Any:
    from lamina.lax.special.gamma import _STIRLING

    total: Any = _STIRLING[-1]
    for c in reversed(_STIRLING[:-1]):
        total = total * x + c
    return total


def _gamma(x: Any) -> Any:
    left = x < 0.5
    y = where(left, 1.0 - x, x)
    # Up to 12 by the recurrence, beyond by Stirling's formula; x^(x/2) twice does not overflow.
    small = y < _LARGE
    large = where(small, y + _LARGE, y)
    root = lax.pow(large, 0.5 * large - 0.25)
    scale = lax.exp(-large) * polynomial(1.0 / large, _STIRLING)
    right = root * scale * root / where(small, rising(lax.min(y, np.float64(_LARGE)), _LARGE), 1.0)
    right = where(y > 171.7, math.inf, right)
    # sin(pi x) by the distance to the nearest integer
    nearest = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    offset = x - nearest
    odd = nearest * 0.5 != lax.floor(nearest * 0.5)
    sine = lax.sin(offset * math.pi)
    reflected = math.pi / (where(odd, -sine, sine) * right)
    result = where(left, reflected, right)
    pole = left & (offset == 0.0)
    zero = where(lax.div(lax.full_like(x, 1), x) < 0.0, -math.inf, math.inf)
    result = where(pole, where(x == 0.0, zero, math.nan), result)
    result = where(x == -math.inf, math.nan, result)
    return where(x == x, result, math.nan)


_real_gamma = in_double("gamma", _gamma, 1, [lambda g, ans, x: g * ans * lax.digamma(x)], weak=True)


def _gamma_of(x: Any) -> Array:
    return jnp.exp(loggamma(x)) if dtypes.is_complex(get_aval(x).dtype) else _real_gamma(x)


def gamma(x: ArrayLike) -> Array:
    """The gamma function, of real or complex x.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.gamma(jnp.array([0.25, 0.5])).round(3))
    [3.626 1.772]
    """
    (x,) = promote_strong("gamma", x)
    return _gamma_of(x)


@compiled
def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function, elementwise: 1 or -1; NaN at its poles -1, -2, ..., the sign
    of zero at 0.

    x  an array of real numbers.

    >>> print(lamina.scipy.special.gammasgn(jnp.array([1.5, -0.5, -1.5, 0.0, -0.0, -1.0])))
    [ 1. -1.  1.  1. -1. nan]
    """
    (x,) = promote_strong("gammasgn", x)
    floor = lax.floor(x)
    odd = floor != 2 * lax.floor(0.5 * floor)
    negative = jnp.where(odd, literal(x, -1), literal(x, 1))
    negative = jnp.where((floor == x) | jnp.isinf(x), literal(x, math.nan), negative)
    at_zero = jnp.copysign(literal(x, 1), x)
    result = jnp.where(x == 0, at_zero, jnp.where(x < 0, negative, literal(x, 1)))
    return jnp.where(jnp.isnan(x), x, result)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x), elementwise: the probability that a
    gamma variable of shape a is below x.

    a, x  arrays of real numbers, which broadcast: a > 0 and x >= 0, else NaN.

    >>> print(lamina.scipy.special.gammainc(1.0, jnp.array([0.0, 1.0])).round(4))
    [0.     0.6321]
    """
    return lax.igamma(*promote_args_inexact("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), elementwise, accurate
    where it is small.

    a, x  arrays of real numbers, which broadcast: a > 0 and x >= 0, else NaN.

    >>> print(lamina.scipy.special.gammaincc(1.0, jnp.array([0.0, 1.0])).round(4))
    [1.     0.3679]
    """
    return lax.igammac(*promote_args_inexact("gammaincc", a, x))


# ---- factorials and binomials ------------------------------------------------------------------
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! as a float, elementwise: gamma(n + 1); 0 for negative n.

    n      an array of real numbers.
    exact  False: there are no integers of any length.

    Raises NotImplementedError for exact=True.

    >>> print(lamina.scipy.special.factorial(jnp.array([0, 3, 5])))
    [  1.   6. 120.]
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    (n,) = promote_args_inexact("factorial", n)
    return jnp.where(n < 0, literal(n, 0), _gamma_of(n + literal(n, 1)))


def _poch(z: Any, m: Any) -> Any:
    # Where both gammas are moderate their quotient keeps the digits; else their logarithms do.
    moderate = (lax.abs(z) < 100.0) & (lax.abs(z + m) < 100.0)
    z1, m1 = where(moderate, z, 1.0), where(moderate, m, 1.0)
    below = _gamma(z1)
    bottom_pole = below != below
    quotient = _gamma(z1 + m1) / where(bottom_pole, 1.0, below)
    z2, m2 = where(moderate, 200.0, z), where(moderate, 1.0, m)
    large = lax.exp(lax.lgamma(z2 + m2) - lax.lgamma(z2))
    sign = where(_sign(z2 + m2) == _sign(z2), 1.0, -1.0)
    result = where(moderate, where(bottom_pole, 0.0, quotient), large * sign)
    return where(m == 0.0, 1.0, result)


def _sign(x: Any) -> Any:
    floor = lax.floor(x)
    return where((x < 0.0) & (floor != 2.0 * lax.floor(0.5 * floor)), -1.0, 1.0)


poch = in_double("poch", _poch, 2, [
    lambda g, ans, z, m: g * ans * (lax.digamma(z + m) - lax.digamma(z)),
    lambda g, ans, z, m: g * ans * lax.digamma(z + m),
])  # fmt: skip
poch.__doc__ = """The rising factorial (Pochhammer's symbol) gamma(z + m) / gamma(z), elementwise.

z, m  arrays of real numbers, which broadcast.

>>> print(lamina.scipy.special.poch(2.0, jnp.array([0.0, 1.0, 3.0])))
[ 1.  2. 24.]
"""


def _comb(n: Any, k: Any) -> Any:
    inside = (n >= 0.0) & (k >= 0.0) & (k <= n)
    n, k = where(inside, n, 1.0), where(inside, k, 0.0)
    k = lax.min(k, n - k)
    log = -lax.log1p(n) - _betaln(n - k + 1.0, k + 1.0)
    value = lax.exp(log)
    whole = (lax.floor(n) == n) & (lax.floor(k) == k) & (value < 2.0**52)
    rounded = lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN)
    return where(inside, where(whole, rounded, value), 0.0)


_binomial = in_double("comb", _comb, 2, [
    lambda g, ans, n, k: g * ans * (lax.digamma(n + 1) - lax.digamma(n - k + 1)),
    lambda g, ans, n, k: g * ans * (lax.digamma(n - k + 1) - lax.digamma(k + 1)),
], weak=True)  # fmt: skip


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things, elementwise, as a float; 0 where there is none.

    N, k        arrays of real numbers, which broadcast.
    repetition  things may be chosen more than once.

    >>> print(lamina.scipy.special.comb(4, jnp.array([0, 2, 5])))
    [1. 6. 0.]
    >>> print(lamina.scipy.special.comb(4, 2, repetition=True))
    10.0
    """
    N, k = promote_args_inexact("comb", N, k)
    if repetition:
        drawn = _binomial(N + k - 1, k)
        return jnp.where((N == 0) & (k == 0), literal(drawn, 1), drawn)
    return _binomial(N, k)


# ---- beta --------------------------------------------------------------------------------------
def _betaln(a: Any, b: Any) -> Any:
    """By Stirling's series where an argument is large: logarithms of gammas would cancel. Each case
    takes its arguments of the few costly functions, which are computed once for all."""
    small, large = lax.min(a, b), lax.max(a, b)
    limit = float(_LARGE)
    far, few = large >= limit, small < limit
    odd = far & (small <= 0.0)
    both = far & lax.bitwise_not(few)
    of_small = lax.lgamma(where(both, 1.0, small))
    direct = odd | lax.bitwise_not(far)
    of_rest = lax.lgamma(where(direct, large, 1.0)) - lax.lgamma(where(direct, small + large, 1.0))
    # Of a large b the logarithms of gammas cancel: their difference is -a log b, nearly.
    grown = odd & (large > 1e8)
    a1, b1 = where(far & (small > 0.0), small, 1.0), where(far, large, limit)
    total = a1 + b1
    log_large = lax.log(b1)
    log = lax.log(where(few, total, a1 / total))
    apart = lax.log1p(a1 / b1)
    rest = stirling_rest(b1) - stirling_rest(total)
    one = of_small + rest - a1 * log - (b1 - 0.5) * apart + a1
    rest = rest + stirling_rest(where(both, small, limit))
    two = 0.5 * (math.log(2 * math.pi) - log_large) + (a1 - 0.5) * log - b1 * apart + rest
    of_few = where(direct, of_small + where(grown, -small * log_large, of_rest), one)
    return where(both, two, of_few)


betaln = in_double("betaln", _betaln, 2, [
    lambda g, ans, a, b: g * (lax.digamma(a) - lax.digamma(a + b)),
    lambda g, ans, a, b: g * (lax.digamma(b) - lax.digamma(a + b)),
], weak=True)  # fmt: skip
betaln.__doc__ = """log |beta(a, b)|, elementwise, without overflow where beta is out of range.

a, b  arrays of real numbers, which broadcast; computed in double precision.

>>> print(lamina.scipy.special.betaln(jnp.array([1.0, 500.0]), 2.0).round(3))
[ -0.693 -12.431]
"""


@compiled
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function gamma(a) gamma(b) / gamma(a + b), elementwise.

    a, b  arrays of real numbers, which broadcast.

    >>> print(lamina.scipy.special.beta(jnp.array([1.0, 2.0]), 2.0).round(4))
    [0.5    0.1667]
    """
    a, b = promote_args_inexact("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function I_x(a, b), elementwise: the probability that a beta
    variable with parameters a and b is below x.

    a, b  arrays of positive real numbers.
    x     an array of numbers from 0 to 1. All three broadcast; outside of these ranges NaN.

    >>> print(lamina.scipy.special.betainc(1.0, 2.0, jnp.array([0.0, 0.5, 1.0])))
    [0.   0.75 1.  ]
    """
    return lax.betainc(*promote_args_inexact("betainc", a, b, x))


@compiled(static=("d",))
def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the multivariate gamma function, elementwise: of d (d - 1) / 4 * log(pi) and
    the sum of gammaln(a - j / 2) over j = 0, ..., d - 1.

    a  an array of real numbers above (d - 1) / 2.
    d  the dimension, a Python int.

    >>> print(lamina.scipy.special.multigammaln(jnp.array([2.0, 3.0]), 1).round(4))
    [0.     0.6931]
    """
    (a,) = promote_args_inexact("multigammaln", a)
    d = operator.index(d)
    steps = jnp.expand_dims(a, -1) - jnp.asarray(np.arange(d) / 2, get_aval(a).dtype)
    constant = literal(a, d * (d - 1) / 4 * math.log(math.pi))
    return jnp.sum(lax.lgamma(steps), -1) + constant


# ---- digamma and zeta --------------------------------------------------------------------------
def digamma(x: ArrayLike) -> Array:
    """The derivative of gammaln.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.digamma(jnp.array([0.25, 0.5])).round(3))
    [-4.227 -1.964]
    """
    return lax.digamma(*promote_args_inexact("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order n of digamma, elementwise.

    n  the orders, 0 or more, which broadcast with x; there is no derivative by them.
    x  an array of real numbers.

    >>> print(lamina.scipy.special.polygamma(1, jnp.array([1.0, 2.0])).round(4))
    [1.6449 0.6449]
    """
    n, x = promote_args_inexact("polygamma", n, x)
    return lax.polygamma(n, x)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function, elementwise: the sum of (k + q) ** -x over k = 0, 1, 2, ...;
    Riemann's zeta function without q.

    x  the exponents, an array of real numbers; there is no derivative by them.
    q  an array of real numbers, which broadcast with x; None: 1.

    >>> print(lamina.scipy.special.zeta(2.0, jnp.array([1.0, 2.0])).round(4))
    [1.6449 0.6449]
    """
    x, q = promote_args_inexact("zeta", x, 1.0 if q is None else q)
    return lax.zeta(x, q)


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B_0, ..., B_n, with B_1 = -1/2, as floats.

    n  a Python int, 0 or more.

    Raises ValueError for a negative n.

    >>> print(lamina.scipy.special.bernoulli(4).round(4))
    [ 1.     -0.5     0.1667  0.     -0.0333]
    """
    count = operator.index(n)
    if count < 0:
        raise ValueError("n must be a non-negative integer.")
    exact = [Fraction(1), Fraction(-1, 2)]
    limit = min(count, 60)
    for m in range(2, limit + 1):
        total = sum((math.comb(m + 1, k) * exact[k] for k in range(m)), Fraction(0))
        exact.append(Fraction(0) if m % 2 else -total / (m + 1))
    values = [float(b) for b in exact[: count + 1]]
    for m in range(limit + 1, count + 1):
        # zeta(m) is 1 for these m, in double precision.
        log_size = math.log(2) + math.lgamma(m + 1) - m * math.log(2 * math.pi)
        size = math.exp(log_size) if log_size < 709 else math.inf
        values.append(0.0 if m % 2 else math.copysign(size, 1 if m % 4 == 2 else -1))
    with np.errstate(over="ignore"):
        return jnp.asarray(np.asarray(values).astype(dtypes.canonicalize(float)))
