"""The Bernoulli distribution: 1 with probability p, else 0.

p  the probability of 1, from 0 to 1.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, mass, outside

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@compiled_on_floats
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> print(lamina.scipy.stats.bernoulli.logpmf(jnp.array([0, 1]), 0.25).round(3))
    [-0.288 -1.386]
    """
    x = k - loc
    value = special.xlogy(x, p) + special.xlog1py(1 - x, -p)
    return outside((x != 0) & (x != 1), value)


pmf = mass(logpmf)


@compiled_on_floats
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of at most k.

    >>> print(lamina.scipy.stats.bernoulli.cdf(jnp.array([0, 1]), 0.25).round(3))
    [0.75 1.  ]
    """
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1)) + 0 * p
    return jnp.where(jnp.isnan(k) | ~((p >= 0) & (p <= 1)), math.nan, value)


@compiled_on_floats
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The value that a number is below with probability q.

    >>> print(lamina.scipy.stats.bernoulli.ppf(jnp.array([0.5, 0.9]), 0.25).round(3))
    [0. 1.]
    """
    right = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
    return jnp.where(right, jnp.where(q <= 1 - p, 0.0, 1.0), math.nan).astype(q.dtype)
