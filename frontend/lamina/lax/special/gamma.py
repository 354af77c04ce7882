"""The incomplete gamma functions P and Q, and their derivative by the first argument.

P(a, x) comes from its power series where x is the smaller, Q from Legendre's continued fraction
where x is the larger (DLMF 8.7.1, 8.9.2), and both, for large a near x, from Temme's uniform
expansion (DLMF 8.12).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive
from lamina.core.array_class import Array
from lamina.core.primitive import OWED
from lamina.lax.checks import FLOAT
from lamina.lax.elementwise_rules import elementwise
from lamina.lax.special.program import EPS, derivative_of, iterate, polynomial, program, where

# Coefficients of c_k(eta) in eta, from their recurrence DLMF 8.12.11 in exact arithmetic.
_TEMME = (
    (-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
     0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
     -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
     1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
     -5.830772132550426e-11),
    (-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
     0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
     -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
     1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09),
    (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
     -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08,
     1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10),
    (0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
     -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06,
     1.4230900732435883e-06),
    (-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
     6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05),
    (-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
     -0.00019932570516188847, 6.797780477937208e-05),
    (0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045),
)  # fmt: skip
# log Gamma(a) = (a - 1/2) log a - a + log(2 pi) / 2 + sum of b_k / a^(2k + 1) (Stirling).
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
# log(1 + u) - u = -s u + 2 s^3 (1/3 + s^2/5 + ...) for s = u / (2 + u)
_ARTANH_TAIL = tuple(2 / (2 * k + 3) for k in range(17))
_LARGE = 12.0  # from here on Stirling's series has 16 digits
_UNIFORM = 200.0  # from here on Temme's expansion has


# ---- user functions ----------------------------------------------------------------------------
def igamma(a: Any, x: Any) -> Array:
    """The regularized lower incomplete gamma function P(a, x), elementwise: the integral of
    t ** (a - 1) * exp(-t) from 0 to x, divided by gamma(a).

    a, x  floats of one dtype, which broadcast: a > 0 and x >= 0, else the result is NaN.

    Raises TypeError for other dtypes.

    >>> print(lax.igamma(1.0, jnp.array([0.0, 1.0])))
    [0.         0.63212055]
    """
    return igamma_p.bind(a, x)


def igammac(a: Any, x: Any) -> Array:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), elementwise, accurate
    where it is small.

    a, x  floats of one dtype, which broadcast: a > 0 and x >= 0, else the result is NaN.

    Raises TypeError for other dtypes.

    >>> print(lax.igammac(1.0, jnp.array([0.0, 1.0, 50.0])))
    [1.0000000e+00 3.6787945e-01 1.9287499e-22]
    """
    return igammac_p.bind(a, x)


def igamma_grad_a(a: Any, x: Any) -> Array:
    """The derivative of igamma(a, x) by a, elementwise.

    a, x  floats of one dtype, which broadcast: a > 0 and x >= 0, else the result is NaN.

    Raises TypeError for other dtypes.

    >>> lax.igamma_grad_a(2.0, 3.0).round(4)
    Array(-0.1974, dtype=float32, weak_type=True)
    """
    return igamma_grad_a_p.bind(a, x)


def random_gamma_grad(a: Any, x: Any, *, dtype: Any = None) -> Array:
    """How a sample x of the gamma distribution of shape a moves with a, elementwise: the derivative
    by a of the quantile that x is, which makes sampling differentiable (Figurnov et al., 2018,
    "Implicit reparameterization gradients").

    a      floats above 0.
    x      samples, of a's dtype and broadcasting with it.
    dtype  of the result, by default theirs.

    Raises TypeError for dtypes other than floats.

    >>> lax.random_gamma_grad(2.0, 3.0).round(4)
    Array(1.3218, dtype=float32, weak_type=True)
    """
    if dtype is not None:
        a, x = (lax.convert_element_type(v, dtype) for v in (a, x))
    return random_gamma_grad_p.bind(a, x)


# ---- parts -------------------------------------------------------------------------------------
def log1p_minus(u: Any) -> Any:
    """log(1 + u) - u, accurate near 0."""
    small = lax.abs(u) < 0.5
    near = where(small, u, 0.0)
    s = near / (near + 2.0)
    square = s * s
    series = s * square * polynomial(square, _ARTANH_TAIL) - s * near
    return where(small, series, lax.log1p(u) - u)


def stirling_rest(a: Any) -> Any:
    """log Gamma(a) without the three leading terms of Stirling's series, for a >= 12."""
    inverse = 1.0 / a
    return inverse * polynomial(inverse * inverse, _STIRLING)


def rising(a: Any, count: int) -> Any:
    """a (a + 1) ... (a + count - 1), of an even count: (a + j) (a + n - j) is a (a + n) + j (n - j)."""
    n = count - 1
    outer = a * (a + float(n))
    product = outer
    for j in range(1, count // 2):
        product = product * (outer + float(j * (n - j)))
    return product


def _density(a: Any, x: Any) -> Any:
    """x^a e^-x / Gamma(a + 1)."""
    large = a >= _LARGE
    many = where(large, a, _LARGE)
    ratio = x / many
    u = (x - many) / many
    far = where(ratio < 0.5, lax.log(ratio) - u, log1p_minus(u))
    by_stirling = lax.exp(many * far - stirling_rest(many)) / lax.sqrt(many * (2 * math.pi))
    few = where(large, 1.0, a)
    directly = lax.exp(few * lax.log(x) - x - lax.lgamma(few + 1.0))
    return where(large, by_stirling, directly)


def _series(a: Any, x: Any, eps: float) -> Any:
    """The sum of x^n / ((a+1) ... (a+n)) over n >= 0, up to terms of `eps` of it."""

    def step(n: Any, term: Any, total: Any) -> Any:
        term = term * (x / (a + n))
        return term, total + term

    one = lax.full_like(a, 1)
    return iterate(step, lambda term, total: term > eps * total, (one, one), 10000)[1]


def _series_by_a(a: Any, x: Any) -> tuple[Any, Any]:
    """The same sum, and its derivative by a."""

    def step(n: Any, term: Any, total: Any, term_a: Any, total_a: Any) -> Any:
        factor = x / (a + n)
        term_a = (term_a - term / (a + n)) * factor
        term = term * factor
        return term, total + term, term_a, total_a + term_a

    def unfinished(term: Any, total: Any, term_a: Any, total_a: Any) -> Any:
        return (term > EPS * total) | (lax.abs(term_a) > EPS * lax.abs(total_a))

    one, zero = lax.full_like(a, 1), lax.full_like(a, 0)
    _, total, _, total_a = iterate(step, unfinished, (one, one, zero, zero), 10000)
    return total, total_a


def _fraction(a: Any, x: Any, eps: float) -> Any:
    """Legendre's continued fraction 1 / (x+1-a - 1(1-a) / (x+3-a - ...)), by Lentz's algorithm
    (as modified by Thompson and Barnett)."""

    def step(n: Any, c: Any, d: Any, h: Any, change: Any) -> Any:
        numerator = n * (a - n)
        b = x - a + (2.0 * n + 1.0)
        d = 1.0 / (b + numerator * d)
        c = b + numerator / c
        factor = c * d
        return c, d, h * factor, lax.abs(factor - 1.0)

    first = 1.0 / (x - a + 1.0)
    # The first step divides by c: any large number stands for infinity.
    start = (lax.full_like(a, 1e300), first, first, lax.full_like(a, 1))
    return iterate(step, lambda c, d, h, change: change > 4.0 * eps, start, 10000)[2]


def _fraction_by_a(a: Any, x: Any) -> tuple[Any, Any]:
    """The same fraction, and its derivative by a."""

    def step(n: Any, c: Any, d: Any, h: Any, c_a: Any, d_a: Any, h_a: Any, change: Any) -> Any:
        numerator = n * (a - n)
        b = x - a + (2.0 * n + 1.0)
        d_next = 1.0 / (b + numerator * d)
        d_a = -d_next * d_next * (n * d - 1.0 + numerator * d_a)
        c_a = n / c - numerator * c_a / (c * c) - 1.0
        c = b + numerator / c
        factor = c * d_next
        h_next = h_a * factor + h * (c_a * d_next + c * d_a)
        # For integer a the fraction ends, and its derivative goes on.
        change_a = lax.abs(h_next - h_a) > 16.0 * EPS * lax.abs(h_next)
        change = where(change_a, 1.0, lax.abs(factor - 1.0))
        return c, d_next, h * factor, c_a, d_a, h_next, change

    def unfinished(c: Any, d: Any, h: Any, c_a: Any, d_a: Any, h_a: Any, change: Any) -> Any:
        return change > 4.0 * EPS

    first = 1.0 / (x - a + 1.0)
    start = (lax.full_like(a, 1e300), first, first, lax.full_like(a, 0), first * first,
             first * first, lax.full_like(a, 1))  # fmt: skip
    final = iterate(step, unfinished, start, 10000)
    return final[2], final[5]


def _uniform(a: Any, x: Any, upper: bool) -> Any:
    """Q (upper) or P for a >= 200 and x within 0.3 a of it."""
    u = (x - a) / a
    half_square = -log1p_minus(u)
    # At 0 the root has no derivative, and eta is u.
    away = half_square > 0.0
    eta = where(away, lax.sqrt(2.0 * where(away, half_square, 1.0)), 0.0)
    eta = where(u < 0.0, -eta, eta)
    inverse = 1.0 / a
    total: Any = 0.0
    for row in reversed(_TEMME):
        total = total * inverse + polynomial(eta, row)
    rest = lax.exp(-a * half_square) / lax.sqrt(a * (2 * math.pi)) * total
    z = eta * lax.sqrt(0.5 * a)
    return 0.5 * lax.erfc(z) + rest if upper else 0.5 * lax.erfc(-z) - rest


def _regions(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Where each way is taken: the series, the continued fraction, the uniform expansion."""
    inside = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    uniform = inside & (a >= _UNIFORM) & (lax.abs(x - a) < 0.3 * a)
    rest = inside & lax.bitwise_not(uniform)
    by_series = rest & ((x <= 1.0) | (x <= a))
    return by_series, rest & lax.bitwise_not(by_series), uniform


def _regularized(a: Any, x: Any, eps: float, *, upper: bool) -> Any:
    by_series, by_fraction, uniform = _regions(a, x)
    a1, x1 = where(by_series, a, 1.0), where(by_series, x, 0.5)
    lower = _density(a1, x1) * _series(a1, x1, eps)
    a2, x2 = where(by_fraction, a, 1.0), where(by_fraction, x, 2.0)
    above = _density(a2, x2) * a2 * _fraction(a2, x2, eps)
    a3, x3 = where(uniform, a, _UNIFORM), where(uniform, x, _UNIFORM)
    both = _uniform(a3, x3, upper)
    result = where(by_series, 1.0 - lower if upper else lower, both)
    result = where(by_fraction, above if upper else 1.0 - above, result)
    # At the edges: x = 0 or a infinite gives P = 0, x infinite or a = 0 gives P = 1.
    nothing = ((x == 0.0) & (a > 0.0)) | ((a == math.inf) & (x >= 0.0) & (x < math.inf))
    all_ = ((x == math.inf) & (a >= 0.0) & (a < math.inf)) | ((a == 0.0) & (x > 0.0))
    result = where(nothing, float(upper), result)
    result = where(all_, float(not upper), result)
    known = nothing | all_ | by_series | by_fraction | uniform
    return where(known, result, math.nan)


def _lower(a: Any, x: Any, eps: float) -> Any:
    return _regularized(a, x, eps, upper=False)


def _upper(a: Any, x: Any, eps: float) -> Any:
    return _regularized(a, x, eps, upper=True)


def _by_a(a: Any, x: Any, *, as_sample: bool) -> Any:
    """dP/da; or, as_sample, -dP/da / (dP/dx)."""
    from lamina.interpreters.jvp import jvp_flat

    by_series, by_fraction, uniform = _regions(a, x)
    a1, x1 = where(by_series, a, 1.0), where(by_series, x, 0.5)
    total, total_a = _series_by_a(a1, x1)
    slope = total_a + total * (lax.log(x1) - lax.digamma(a1 + 1.0))
    # dP/dx is the density of P times a / x.
    lower = slope * (-x1 / a1) if as_sample else slope * _density(a1, x1)
    a2, x2 = where(by_fraction, a, 1.0), where(by_fraction, x, 2.0)
    total, total_a = _fraction_by_a(a2, x2)
    slope = total_a + total * (lax.log(x2) - lax.digamma(a2))
    above = slope * x2 if as_sample else -slope * a2 * _density(a2, x2)
    a3, x3 = where(uniform, a, _UNIFORM), where(uniform, x, _UNIFORM * 1.0001)
    one = lax.full_like(a, 1)
    # Of the two, the smaller one's derivative keeps its digits.
    _, (below_a, above_a) = jvp_flat(
        lambda v: [_uniform(v, x3, upper=False), _uniform(v, x3, upper=True)], [a3], [one]
    )
    both = where(x3 < a3, below_a, -above_a)
    if as_sample:
        both = -both * x3 / (a3 * _density(a3, x3))
    result = where(by_series, lower, where(by_fraction, above, both))
    edge = ((x == 0.0) & (a > 0.0)) | ((x == math.inf) & (a > 0.0))
    known = by_series | by_fraction | uniform
    return where(known, result, where(edge, 0.0, math.nan))


def _lower_by_a(a: Any, x: Any) -> Any:
    return _by_a(a, x, as_sample=False)


def _sample_by_a(a: Any, x: Any) -> Any:
    return _by_a(a, x, as_sample=True)


# ---- primitives --------------------------------------------------------------------------------
def _density_by_x(a: Any, x: Any) -> Any:
    """dP/dx."""
    one = np.asarray(1).astype(x.dtype)[()] if hasattr(x, "dtype") else 1.0
    exponent = lax.sub(lax.mul(lax.sub(a, one), lax.log(x)), lax.add(x, lax.lgamma(a)))
    return lax.exp(exponent)


def _by_a_and_x(a: Any, x: Any) -> Any:
    """d2P / da dx."""
    return lax.mul(_density_by_x(a, x), lax.sub(lax.log(x), lax.digamma(a)))


def _with_second_derivatives() -> Primitive:
    """The derivative of igamma by a; its own by a is that program's."""
    second = elementwise(
        "igamma_grad_aa", program(derivative_of(_lower_by_a, 0)), FLOAT, FLOAT, jvp=OWED
    )
    return elementwise(
        "igamma_grad_a", program(_lower_by_a), FLOAT, FLOAT,
        derivatives=[
            lambda g, ans, a, x: lax.mul(g, second.bind(a, x)),
            lambda g, ans, a, x: lax.mul(g, _by_a_and_x(a, x)),
        ],
    )  # fmt: skip


igamma_grad_a_p: Primitive = _with_second_derivatives()
igamma_p: Primitive = elementwise(
    "igamma", program(_lower, converges=True), FLOAT, FLOAT,
    derivatives=[
        lambda g, ans, a, x: lax.mul(g, igamma_grad_a(a, x)),
        lambda g, ans, a, x: lax.mul(g, _density_by_x(a, x)),
    ],
)  # fmt: skip
igammac_p: Primitive = elementwise(
    "igammac", program(_upper, converges=True), FLOAT, FLOAT,
    derivatives=[
        lambda g, ans, a, x: lax.neg(lax.mul(g, igamma_grad_a(a, x))),
        lambda g, ans, a, x: lax.neg(lax.mul(g, _density_by_x(a, x))),
    ],
)  # fmt: skip
random_gamma_grad_p: Primitive = elementwise(
    "random_gamma_grad", program(_sample_by_a), FLOAT, FLOAT, jvp=OWED
)
