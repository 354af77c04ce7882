"""The multinomial distribution: of counts of the outcomes of independent trials.

n  the number of trials.
p  the probabilities of the outcomes, a vector.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, promote_inexact
from lamina.scipy import special
from lamina.scipy.stats.define import mass

__all__ = ["logpmf", "pmf"]


@compiled
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of counts along x's last axis; -inf where they do not add up
    to n.

    x  the counts of each outcome, integers of shape (..., m).
    n  the number of trials.
    p  the probabilities of the outcomes, of shape (..., m).

    >>> of = lamina.scipy.stats.multinomial.logpmf
    >>> print(of(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])).round(3))
    -0.981
    """
    p = jnp.asarray(promote_inexact(p)[0])
    x, n = (jnp.asarray(v).astype(p.dtype) for v in (x, n))
    ways = special.gammaln(n + 1) - jnp.sum(special.gammaln(x + 1), -1)
    value = ways + jnp.sum(special.xlogy(x, p), -1)
    return jnp.where(jnp.sum(x, -1) == n, value, -math.inf)


pmf = mass(logpmf)
