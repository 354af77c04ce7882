"""The right-skewed Gumbel distribution, of greatest values."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.nn.normalization import log1mexp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.gumbel_r.logpdf(jnp.array([0.0, 1.0])).round(3))
    [-1.    -1.368]
    """
    z = (x - loc) / scale
    value = -z - jnp.exp(-z) - jnp.log(scale)
    return outside(scale <= 0, value, math.nan)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.gumbel_r.cdf(jnp.array([0.0, 1.0])).round(3))
    [0.368 0.692]
    """
    return jnp.exp(-jnp.exp((loc - x) / scale))


@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.gumbel_r.logcdf(jnp.array([0.0, 1.0])).round(3))
    [-1.    -0.368]
    """
    return -jnp.exp((loc - x) / scale)


@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.gumbel_r.sf(jnp.array([0.0, 1.0])).round(3))
    [0.632 0.308]
    """
    return -jnp.expm1(-jnp.exp((loc - x) / scale))


@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.gumbel_r.logsf(jnp.array([0.0, 1.0])).round(3))
    [-0.459 -1.178]
    """
    return log1mexp(jnp.exp((loc - x) / scale))


@compiled_on_floats
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability p.

    >>> print(lamina.scipy.stats.gumbel_r.ppf(jnp.array([0.25, 0.5])).round(3))
    [-0.327  0.367]
    """
    return loc - scale * jnp.log(-jnp.log(p))
