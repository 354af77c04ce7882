"""The chi-squared distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside


@compiled_on_floats
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x."""
    z, half = (x - loc) / scale, df / 2
    log = special.xlogy(half - 1, z) - z / 2 - special.gammaln(half)
    return outside(z < 0, log - half * math.log(2) - jnp.log(scale))


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return special.gammainc(df / 2, jnp.maximum((x - loc) / scale, 0) / 2)


@compiled_on_floats
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf."""
    return jnp.log(cdf(x, df, loc, scale))


@compiled_on_floats
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return special.gammaincc(df / 2, jnp.maximum((x - loc) / scale, 0) / 2)


@compiled_on_floats
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf."""
    return jnp.log(sf(x, df, loc, scale))
