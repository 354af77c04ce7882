"""The multinomial distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, promote_inexact
from lamina.scipy import special
from lamina.scipy.stats.define import mass


@compiled
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts along x's last axis; -inf unless they sum
    to n."""
    x, n, p = (jnp.asarray(v) for v in promote_inexact(x, n, p))
    ways = special.gammaln(n + 1) - jnp.sum(special.gammaln(x + 1), -1)
    value = ways + jnp.sum(special.xlogy(x, p), -1)
    return jnp.where(jnp.sum(x, -1) == n, value, -math.inf)


pmf = mass(logpmf)
