"""The exponential distribution."""

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

    >>> print(lamina.scipy.stats.expon.logpdf(jnp.array([0.0, 1.0])).round(3))
    [ 0. -1.]
    """
    return outside(x < loc, (loc - x) / scale - jnp.log(scale))


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.expon.cdf(jnp.array([0.0, 1.0])).round(3))
    [-0.     0.632]
    """
    return outside(x < loc, -jnp.expm1((loc - x) / scale), 0.0)


@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.expon.logcdf(jnp.array([0.0, 1.0])).round(3))
    [  -inf -0.459]
    """
    return outside(x < loc, log1mexp(jnp.maximum((x - loc) / scale, 0)))


@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.expon.sf(jnp.array([0.0, 1.0])).round(3))
    [1.    0.368]
    """
    return outside(x < loc, jnp.exp((loc - x) / scale), 1.0)


@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.expon.logsf(jnp.array([0.0, 1.0])).round(3))
    [ 0. -1.]
    """
    return outside(x < loc, (loc - x) / scale, 0.0)


@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q.

    >>> print(lamina.scipy.stats.expon.ppf(jnp.array([0.0, 0.5])).round(3))
    [0.    0.693]
    """
    return outside((q < 0) | (q > 1), loc - scale * jnp.log1p(-q), math.nan)
