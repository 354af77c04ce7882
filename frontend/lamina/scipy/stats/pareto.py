"""The Pareto distribution, of numbers from 1 on.

b  the exponent with which its tail falls, positive.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.nn.normalization import log1mexp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@compiled_on_floats
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.pareto.logpdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [ 0.693 -1.386]
    """
    z = (x - loc) / scale
    return outside(z < 1, jnp.log(b / scale) - (b + 1) * jnp.log(z))


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.pareto.cdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [0.   0.75]
    """
    z = (x - loc) / scale
    return outside(z < 1, -jnp.expm1(-b * jnp.log(z)), 0.0)


@compiled_on_floats
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.pareto.logcdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [  -inf -0.288]
    """
    z = (x - loc) / scale
    return outside(z < 1, log1mexp(b * jnp.log(jnp.maximum(z, 1))))


@compiled_on_floats
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.pareto.sf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [1.   0.25]
    """
    z = (x - loc) / scale
    return outside(z < 1, z ** -b, 1.0)


@compiled_on_floats
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.pareto.logsf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [-0.    -1.386]
    """
    z = (x - loc) / scale
    return outside(z < 1, -b * jnp.log(z), 0.0)


@compiled_on_floats
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q.

    >>> print(lamina.scipy.stats.pareto.ppf(jnp.array([0.0, 0.75]), 2.0).round(3))
    [1. 2.]
    """
    value = loc + scale * jnp.exp(-jnp.log1p(-q) / b)
    return outside((q < 0) | (q > 1), value, math.nan)
