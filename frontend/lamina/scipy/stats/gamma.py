"""The gamma distribution."""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside


@compiled_on_floats
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x."""
    z = (x - loc) / scale
    log = special.xlogy(a - 1, z) - z - special.gammaln(a) - jnp.log(scale)
    return outside(z < 0, log)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return special.gammainc(a, jnp.maximum((x - loc) / scale, 0))


@compiled_on_floats
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf."""
    return jnp.log(cdf(x, a, loc, scale))


@compiled_on_floats
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return special.gammaincc(a, jnp.maximum((x - loc) / scale, 0))


@compiled_on_floats
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf."""
    return jnp.log(sf(x, a, loc, scale))
