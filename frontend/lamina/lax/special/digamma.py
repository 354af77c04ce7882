"""The digamma function, the derivative of log gamma.

To the right of 10 by Stirling's series (DLMF 5.11.2). Below that by the recurrence over ten steps,
whose reciprocals are two polynomials' quotient, and left of 0 by reflection (DLMF 5.5.4).
"""

from __future__ import annotations

import math
from typing import Any

from lamina import lax
from lamina.core import Primitive
from lamina.core.array_class import Array
from lamina.lax.checks import FLOAT, scalar_like
from lamina.lax.elementwise_rules import elementwise
from lamina.lax.special.program import chebyshev, polynomial, program, where

# Chebyshev series of pi f cot(pi f) for f^2 in [0, 1/4] in 8 f^2 - 1, computed with mpmath.
_COTANGENT = (
    0.5253279221228653, -0.49826262459610543, -0.025204265589660785, -0.0017285135738642446,
    -0.00012302053867801815, -8.816171766795101e-06, -6.327164762557792e-07,
    -4.542291116211556e-08, -3.2611526454098293e-09, -2.341391685159806e-10,
    -1.681041892720422e-11, -1.2069335019097015e-12, -8.6653922277031e-14, -6.221471631944806e-15,
    -4.466815649526536e-16, -3.207029344047056e-17, -2.302543472842057e-18,
)  # fmt: skip
# Bernoulli numbers B_2k / 2k: digamma(z) = log z - 1 / (2z) - sum of these / z^2k.
_STIRLING = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_STEPS = 10


def digamma(x: Any) -> Array:
    """The derivative of lgamma; -inf at 0, NaN at the other poles.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.digamma(jnp.array([0.25, 0.5])).round(3))
    [-4.227 -1.964]
    """
    return digamma_p.bind(x)


def _digamma(x: Any) -> Any:
    left = x <= 0.0
    y = where(left, 1.0 - x, x)
    small = y < float(_STEPS)
    z = where(small, y + float(_STEPS), y)
    inverse = 1.0 / z
    rest = inverse * polynomial(inverse * inverse, _STIRLING)
    series = lax.log(z) - inverse * (0.5 + rest)
    # 1/(y + j) + 1/(y + 9 - j) = (2y + 9) / (y (y + 9) + j (9 - j))
    few, last = lax.min(y, scalar_like(y, _STEPS)), float(_STEPS - 1)
    product = few * (few + last)
    above: Any = lax.full_like(x, 1)
    below = product
    for j in range(1, _STEPS // 2):
        factor = product + j * (last - j)
        above, below = above * factor + below, below * factor
    above = where(small, above * (few + few + last), 0.0)
    # pi cot(pi x) by the distance to the nearest integer, with one division for both
    offset = x - lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    cotangent = chebyshev(8.0 * offset * offset - 1.0, _COTANGENT)
    offset = where(left, where(offset == 0.0, math.nan, offset), 1.0)
    mirrored = where(left, cotangent, 0.0)
    found = series - (above * offset + mirrored * below) / (below * offset)
    return where(x == 0.0, -math.inf, found)


# In float64 of any dtype: beside its zeros left of 0 all digits of narrower ones would cancel.
digamma_p: Primitive = elementwise(
    "digamma", program(_digamma), FLOAT,
    derivatives=[lambda g, ans, x: lax.mul(g, lax.polygamma(scalar_like(x, 1), x))],
)  # fmt: skip
