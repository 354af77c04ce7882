"""The geometric distribution: trials up to the first success."""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, mass, outside


@compiled_on_floats
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    x = k - loc
    value = special.xlog1py(x - 1, -p) + jnp.log(p)
    return outside((x < 1) | (x != jnp.floor(x)), value)


pmf = mass(logpmf)
