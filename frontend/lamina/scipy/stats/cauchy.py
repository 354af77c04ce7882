"""The Cauchy distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array, ArrayLike
from lamina.scipy.stats.define import compiled_on_floats, density


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x."""
    z = (x - loc) / scale
    return -jnp.log(math.pi * scale) - jnp.log1p(z * z)

pdf = density(logpdf)

@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return jnp.arctan2(jnp.ones_like(x), (loc - x) / scale) / math.pi

@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf."""
    return jnp.log(cdf(x, loc, scale))

@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return cdf(-x, -loc, scale)

@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf."""
    return jnp.log(sf(x, loc, scale))

@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q."""
    return loc - scale / jnp.tan(math.pi * q)

@compiled_on_floats
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is above with probability q."""
    return loc + scale / jnp.tan(math.pi * q)
