"""The gamma distribution.

a  its shape, positive.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@compiled_on_floats
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.gamma.logpdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [-1.    -1.307]
    """
    z = (x - loc) / scale
    log = special.xlogy(a - 1, z) - z - special.gammaln(a) - jnp.log(scale)
    return outside(scale <= 0, outside(z < 0, log), math.nan)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.gamma.cdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [0.264 0.594]
    """
    return special.gammainc(a, jnp.maximum((x - loc) / scale, 0))


@compiled_on_floats
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.gamma.logcdf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [-1.331 -0.521]
    """
    return jnp.log(cdf(x, a, loc, scale))


@compiled_on_floats
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.gamma.sf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [0.736 0.406]
    """
    return special.gammaincc(a, jnp.maximum((x - loc) / scale, 0))


@compiled_on_floats
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.gamma.logsf(jnp.array([1.0, 2.0]), 2.0).round(3))
    [-0.307 -0.901]
    """
    return jnp.log(sf(x, a, loc, scale))
