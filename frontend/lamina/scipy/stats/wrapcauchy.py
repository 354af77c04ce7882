"""The wrapped Cauchy distribution of angles, from 0 to 2 pi.

c  its concentration, between 0 and 1.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["logpdf", "pdf"]


@compiled_on_floats
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.wrapcauchy.logpdf(jnp.array([0.0, 1.0]), 0.5).round(3))
    [-0.739 -1.783]
    """
    value = jnp.log((1 - c) * (1 + c)) - math.log(2 * math.pi)
    value = value - jnp.log(1 + c * c - 2 * c * jnp.cos(x))
    return jnp.where((c > 0) & (c < 1), outside((x < 0) | (x > 2 * math.pi), value), math.nan)


pdf = density(logpdf)
