"""The Poisson distribution: of counts of independent events.

mu  the mean count, not negative.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, mass, outside

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@compiled_on_floats
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> print(lamina.scipy.stats.poisson.logpmf(jnp.array([0, 1]), 2.0).round(3))
    [-2.    -1.307]
    """
    x = k - loc
    value = special.xlogy(x, mu) - special.gammaln(x + 1) - mu
    return outside((x < 0) | (x != jnp.floor(x)), value)


pmf = mass(logpmf)


@compiled_on_floats
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of at most k.

    >>> print(lamina.scipy.stats.poisson.cdf(jnp.array([0, 1]), 2.0).round(3))
    [0.135 0.406]
    """
    x = jnp.floor(k - loc)
    value = special.gammaincc(jnp.maximum(x, 0) + 1, mu)
    return outside(x < 0, value, 0.0)


@compiled_on_floats
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats.

    >>> print(lamina.scipy.stats.poisson.entropy(jnp.array([1.0, 2.0])).round(3))
    [1.305 1.705]
    """
    # The sum of -p log p over all k that count, and for large mu the series in 1 / mu.
    small = mu < 100
    rate = jnp.where(small, mu, 1)[..., None]
    k = jnp.arange(260, dtype=rate.dtype)
    log = special.xlogy(k, rate) - special.gammaln(k + 1) - rate
    summed = jnp.sum(-jnp.exp(log) * log, -1)
    large = jnp.where(small, 100, mu)
    series = 0.5 * jnp.log(2 * math.pi * math.e * large)
    series = series - (1 / 12 + (1 / 24 + 19 / (360 * large)) / large) / large
    value = jnp.where(small, summed, series)
    return jnp.where(mu < 0, math.nan, jnp.where(mu == 0, 0, value)) + 0 * loc
