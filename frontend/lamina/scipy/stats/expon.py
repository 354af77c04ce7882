"""The exponential distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array, ArrayLike
from lamina.scipy.stats.define import compiled_on_floats, density, inside


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x."""
    return inside(x >= loc, (loc - x) / scale - jnp.log(scale))

pdf = density(logpdf)

@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return inside(x >= loc, -jnp.expm1((loc - x) / scale), 0.0)

@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf."""
    z = (x - loc) / scale
    small = z < math.log(2)
    near = jnp.log(-jnp.expm1(-jnp.where(small, z, 1)))
    return inside(x >= loc, jnp.where(small, near, jnp.log1p(-jnp.exp(-jnp.where(small, 1, z)))))

@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return inside(x >= loc, jnp.exp((loc - x) / scale), 1.0)

@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf."""
    return inside(x >= loc, (loc - x) / scale, 0.0)

@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q."""
    return inside((q >= 0) & (q <= 1), loc - scale * jnp.log1p(-q), math.nan)
