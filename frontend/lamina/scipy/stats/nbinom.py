"""The negative binomial distribution: of the failures before the n-th success.

n  the number of successes.
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

    >>> print(lamina.scipy.stats.nbinom.logpmf(jnp.array([0, 1]), 2, 0.5).round(3))
    [-1.386 -1.386]
    """
    x = k - loc
    ways = -jnp.log(n + x) - special.betaln(n, x + 1)
    value = ways + n * jnp.log(p) + special.xlog1py(x, -p)
    return outside((x < 0) | (x != jnp.floor(x)), value)


pmf = mass(logpmf)
