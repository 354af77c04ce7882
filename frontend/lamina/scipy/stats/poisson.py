"""The Poisson distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, mass, outside


@compiled_on_floats
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    x = k - loc
    value = special.xlogy(x, mu) - special.gammaln(x + 1) - mu
    return outside((x < 0) | (x != jnp.floor(x)), value)


pmf = mass(logpmf)


@compiled_on_floats
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of at most k."""
    x = jnp.floor(k - loc)
    value = special.gammaincc(jnp.maximum(x, 0) + 1, mu)
    return outside(x < 0, value, 0.0)


@compiled_on_floats
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats."""
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
