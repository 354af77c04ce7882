"""The binomial distribution: of the successes of independent trials.

n  the number of trials.
p  the probability of a success.
"""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, mass, outside

__all__ = ["logpmf", "pmf"]


@compiled_on_floats
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> print(lamina.scipy.stats.binom.logpmf(jnp.array([0, 2]), 4, 0.5).round(3))
    [-2.773 -0.981]
    """
    x = k - loc
    choose = -jnp.log1p(n) - special.betaln(n - x + 1, x + 1)
    value = choose + special.xlogy(x, p) + special.xlog1py(n - x, -p)
    return outside((x < 0) | (x > n) | (x != jnp.floor(x)), value)


pmf = mass(logpmf)
