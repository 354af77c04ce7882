"""The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""

from __future__ import annotations

import math
from typing import Any

from lamina import lax
from lamina.core import Primitive
from lamina.core.array_class import Array
from lamina.core.primitive import OWED
from lamina.lax.checks import FLOAT, scalar_like
from lamina.lax.elementwise_rules import elementwise
from lamina.lax.special.gamma import log1p_minus, stirling_rest
from lamina.lax.special.program import derivative_of, iterate, program, where

_LARGE = 12.0
_TINY = 1e-300
_BESIDE = 1 + 2.0**-38


# ---- user functions ----------------------------------------------------------------------------
def betainc(a: Any, b: Any, x: Any) -> Array:
    """The regularized incomplete beta function I_x(a, b), elementwise: the chance that a variable
    of the beta distribution with parameters a and b is below x.

    a, b  floats above 0.
    x     floats from 0 to 1. All three are of one dtype and broadcast; outside of these ranges the
          result is NaN.

    Raises TypeError for other dtypes. Differentiable by all three.

    >>> print(lax.betainc(1.0, 2.0, jnp.array([0.0, 0.5, 1.0])))
    [0.   0.75 1.  ]
    """
    return regularized_incomplete_beta_p.bind(a, b, x)


def betainc_grad_a(a: Any, b: Any, x: Any) -> Any:
    """The derivative of betainc by a."""
    return betainc_grad_a_p.bind(a, b, x)


def betainc_grad_b(a: Any, b: Any, x: Any) -> Any:
    """The derivative of betainc by b."""
    return betainc_grad_b_p.bind(a, b, x)


# ---- parts -------------------------------------------------------------------------------------
def _density(a: Any, b: Any, x: Any) -> Any:
    """x^a (1-x)^b / B(a, b). With large a or b by Stirling's series, lest digits cancel."""
    a_large, b_large = a >= _LARGE, b >= _LARGE
    log_x, log_y = lax.log(x), lax.log1p(-x)

    big_a, big_b = where(a_large, a, _LARGE), where(b_large, b, _LARGE)
    excess = big_b * x - big_a * (1.0 - x)
    both = big_a * _log_ratio(x, excess, big_a, big_b) + big_b * _log_ratio(
        1.0 - x, -excess, big_b, big_a
    )
    both = both + stirling_rest(big_a + big_b) - stirling_rest(big_a) - stirling_rest(big_b)
    root = lax.sqrt(big_a * (big_b / (big_a + big_b)) / (2 * math.pi))

    # One large, one small: the small one is s.
    large, small = where(a_large, big_a, big_b), where(a_large, b, a)
    few = where(small < _LARGE, small, 1.0)
    quotient = (
        few * lax.log(large + few) + (large - 0.5) * lax.log1p(few / large) - few
        + stirling_rest(large + few) - stirling_rest(large) - lax.lgamma(few)
    )  # fmt: skip
    a1, b1 = where(a_large, 1.0, a), where(b_large, 1.0, b)
    neither = lax.lgamma(a1 + b1) - lax.lgamma(a1) - lax.lgamma(b1)
    beta = where(a_large | b_large, quotient, neither)
    direct = lax.exp(a * log_x + b * log_y + beta)
    return where(a_large & b_large, root * lax.exp(both), direct)


def _log_ratio(x: Any, excess: Any, a: Any, b: Any) -> Any:
    """log(x / x0) - (x - x0) / x0 for x0 = a / (a + b), where excess / a is (x - x0) / x0."""
    u = excess / a
    ratio = x * ((a + b) / a)
    far = ratio < 0.5
    return where(far, lax.log(where(far, ratio, 0.5)) - u, log1p_minus(where(far, 0.0, u)))


def _fraction(a: Any, b: Any, x: Any) -> Any:
    """1 / (1 + d1 / (1 + d2 / ...)), two terms a step, by Lentz's algorithm."""

    def advance(term: Any, c: Any, d: Any, h: Any) -> tuple[Any, Any, Any, Any]:
        d = 1.0 / _away_from_zero(1.0 + term * d)
        c = _away_from_zero(1.0 + term / c)
        return c, d, h * (c * d), c * d

    def step(m: Any, c: Any, d: Any, h: Any, change: Any) -> Any:
        odd = -(a + (m - 1.0)) * (a + b + (m - 1.0)) * x
        odd = odd / ((a + (2.0 * m - 2.0)) * (a + (2.0 * m - 1.0)))
        even = m * (b - m) * x / ((a + (2.0 * m - 1.0)) * (a + 2.0 * m))
        c, d, h, first = advance(odd, c, d, h)
        c, d, h, second = advance(even, c, d, h)
        return c, d, h, lax.max(lax.abs(first - 1.0), lax.abs(second - 1.0))

    def unfinished(c: Any, d: Any, h: Any, change: Any) -> Any:
        return change > 2.0**-52

    one = lax.full_like(a, 1)
    # The first step divides by c: any large number stands for infinity.
    return iterate(step, unfinished, (lax.full_like(a, 1e300), one, one, one), 10000)[2]


def _away_from_zero(x: Any) -> Any:
    return where(lax.abs(x) < _TINY, _TINY, x)


def _betainc(a: Any, b: Any, x: Any) -> Any:
    inside = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    a1, b1, x1 = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.25)
    # The fraction converges fast up to the mean; beyond it I_x(a, b) = 1 - I_(1-x)(b, a).
    swap = x1 * (a1 + b1 + 2.0) > a1 + 1.0
    p, q, y = where(swap, b1, a1), where(swap, a1, b1), where(swap, 1.0 - x1, x1)
    part = _density(a1, b1, x1) / p * _fraction(p, q, y)
    result = where(swap, 1.0 - part, part)
    right = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    nothing = (x == 0.0) | ((b == 0.0) & (a > 0.0) & (x < 1.0))
    nothing = nothing | ((a == math.inf) & (b < math.inf) & (x < 1.0))
    all_ = (x == 1.0) | ((a == 0.0) & (b > 0.0) & (x > 0.0))
    all_ = all_ | ((b == math.inf) & (a < math.inf) & (x > 0.0))
    undefined = ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))  # limits differ by the way there
    right = right & ~undefined
    result = where(inside, result, math.nan)
    result = where(right & all_, 1.0, result)
    return where(right & nothing, 0.0, result)


def _by(position: int) -> Any:
    def betainc_grad(a: Any, b: Any, x: Any) -> Any:
        from lamina.interpreters.jvp import jvp_flat

        # For integers the fraction ends, and its derivative goes on: keep off them.
        a, b = a * _BESIDE, b * _BESIDE

        def of(v: Any) -> list[Any]:
            return [_betainc(v, b, x) if position == 0 else _betainc(a, v, x)]

        at = (a, b)[position]
        return jvp_flat(of, [at], [lax.full_like(at, 1)])[1][0]

    return betainc_grad


def _by_x(a: Any, b: Any, x: Any) -> Any:
    """The density of the beta distribution."""
    one = scalar_like(x, 1)
    beta = lax.sub(lax.lgamma(lax.add(a, b)), lax.add(lax.lgamma(a), lax.lgamma(b)))
    left, right = lax.mul(lax.sub(a, one), lax.log(x)), lax.log1p(lax.neg(x))
    return lax.exp(lax.add(lax.add(left, lax.mul(lax.sub(b, one), right)), beta))


# ---- primitives --------------------------------------------------------------------------------
def _second(name: str, first: int) -> Primitive:
    """The derivative of betainc by a (0) or b (1), whose own derivatives are programs, too."""
    further = [
        elementwise(f"{name}_{v}", program(derivative_of(_by(first), i)), *[FLOAT] * 3, jvp=OWED)
        for i, v in enumerate("abx")
    ]

    def rule(primitive: Primitive) -> Any:
        return lambda g, ans, a, b, x: lax.mul(g, primitive.bind(a, b, x))

    return elementwise(
        name, program(_by(first)), *[FLOAT] * 3, derivatives=[rule(p) for p in further]
    )


betainc_grad_a_p: Primitive = _second("betainc_grad_a", 0)
betainc_grad_b_p: Primitive = _second("betainc_grad_b", 1)
regularized_incomplete_beta_p: Primitive = elementwise(
    "regularized_incomplete_beta", program(_betainc), FLOAT, FLOAT, FLOAT,
    derivatives=[
        lambda g, ans, a, b, x: lax.mul(g, betainc_grad_a(a, b, x)),
        lambda g, ans, a, b, x: lax.mul(g, betainc_grad_b(a, b, x)),
        lambda g, ans, a, b, x: lax.mul(g, _by_x(a, b, x)),
    ],
)  # fmt: skip
