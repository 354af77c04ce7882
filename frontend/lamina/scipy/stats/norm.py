"""The normal distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.norm.logpdf(jnp.array([0.0, 1.96])).round(3))
    [-0.919 -2.84 ]
    """
    z = (x - loc) / scale
    return -0.5 * z * z - (_LOG_ROOT + jnp.log(scale))


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.norm.cdf(jnp.array([0.0, 1.96])).round(3))
    [0.5   0.975]
    """
    return special.ndtr((x - loc) / scale)


@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.norm.logcdf(jnp.array([0.0, 1.96])).round(3))
    [-0.693 -0.025]
    """
    return special.log_ndtr((x - loc) / scale)


@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.norm.sf(jnp.array([0.0, 1.96])).round(3))
    [0.5   0.025]
    """
    return special.ndtr((loc - x) / scale)


@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.norm.logsf(jnp.array([0.0, 1.96])).round(3))
    [-0.693 -3.689]
    """
    return special.log_ndtr((loc - x) / scale)


@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q.

    >>> print(lamina.scipy.stats.norm.ppf(jnp.array([0.5, 0.975])).round(3))
    [0.   1.96]
    """
    return special.ndtri(q) * scale + loc


@compiled_on_floats
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is above with probability q.

    >>> print(lamina.scipy.stats.norm.isf(jnp.array([0.5, 0.975])).round(3))
    [ 0.   -1.96]
    """
    return loc - special.ndtri(q) * scale
