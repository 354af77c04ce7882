"""The geometric distribution: of the number of trials up to the first success.

p  the probability of a success.
"""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, mass, outside

__all__ = ["logpmf", "pmf"]


@compiled_on_floats
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> print(lamina.scipy.stats.geom.logpmf(jnp.array([1, 2]), 0.5).round(3))
    [-0.693 -1.386]
    """
    x = k - loc
    value = special.xlog1py(x - 1, -p) + jnp.log(p)
    return outside((x < 1) | (x != jnp.floor(x)), value)


pmf = mass(logpmf)
