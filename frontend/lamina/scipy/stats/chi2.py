"""The chi-squared distribution: of a sum of squares of standard normal numbers.

df  how many, the degrees of freedom.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@compiled_on_floats
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.chi2.logpdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [-1.193 -1.693]
    """
    z, half = (x - loc) / scale, df / 2
    log = special.xlogy(half - 1, z) - z / 2 - special.gammaln(half)
    log = outside(z < 0, log - half * math.log(2) - jnp.log(scale))
    return outside(scale <= 0, log, math.nan)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.chi2.cdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [0.393 0.632]
    """
    return special.gammainc(df / 2, jnp.maximum((x - loc) / scale, 0) / 2)


@compiled_on_floats
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.chi2.logcdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [-0.933 -0.459]
    """
    return jnp.log(cdf(x, df, loc, scale))


@compiled_on_floats
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.chi2.sf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [0.607 0.368]
    """
    return special.gammaincc(df / 2, jnp.maximum((x - loc) / scale, 0) / 2)


@compiled_on_floats
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.chi2.logsf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [-0.5 -1. ]
    """
    return jnp.log(sf(x, df, loc, scale))
