"""The logistic distribution, whose distribution function is the sigmoid."""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.logistic.logpdf(jnp.array([0.0, 1.0])).round(3))
    [-1.386 -1.627]
    """
    half = (x - loc) / scale / 2
    return -2 * jnp.logaddexp(half, -half) - jnp.log(scale)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.logistic.cdf(jnp.array([0.0, 1.0])).round(3))
    [0.5   0.731]
    """
    return special.expit((x - loc) / scale)


@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.logistic.sf(jnp.array([0.0, 1.0])).round(3))
    [0.5   0.269]
    """
    return special.expit((loc - x) / scale)


@compiled_on_floats
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability x.

    >>> print(lamina.scipy.stats.logistic.ppf(jnp.array([0.25, 0.5])).round(3))
    [-1.099  0.   ]
    """
    return special.logit(x) * scale + loc


@compiled_on_floats
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is above with probability x.

    >>> print(lamina.scipy.stats.logistic.isf(jnp.array([0.25, 0.5])).round(3))
    [1.099 0.   ]
    """
    return loc - special.logit(x) * scale
