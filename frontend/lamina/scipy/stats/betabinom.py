"""The beta-binomial distribution: of the successes of n trials whose probability has a beta
distribution.

n     the number of trials.
a, b  the shapes of the beta distribution, positive.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, mass, outside

__all__ = ["logpmf", "pmf"]


@compiled_on_floats
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> print(lamina.scipy.stats.betabinom.logpmf(jnp.array([0, 2]), 4, 2.0, 3.0).round(3))
    [-1.54  -1.358]
    """
    x = k - loc
    choose = -jnp.log1p(n) - special.betaln(n - x + 1, x + 1)
    value = choose + special.betaln(x + a, n - x + b) - special.betaln(a, b)
    right = (n >= 0) & (a > 0) & (b > 0)
    value = outside((x < 0) | (x > n) | (x != jnp.floor(x)), value)
    return jnp.where(right, value, math.nan)


pmf = mass(logpmf)
