"""The exponential distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.nn.normalization import log1mexp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x."""
    return outside(x < loc, (loc - x) / scale - jnp.log(scale))


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return outside(x < loc, -jnp.expm1((loc - x) / scale), 0.0)


@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf."""
    return outside(x < loc, log1mexp(jnp.maximum((x - loc) / scale, 0)))


@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return outside(x < loc, jnp.exp((loc - x) / scale), 1.0)


@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf."""
    return outside(x < loc, (loc - x) / scale, 0.0)


@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q."""
    return outside((q < 0) | (q > 1), loc - scale * jnp.log1p(-q), math.nan)
