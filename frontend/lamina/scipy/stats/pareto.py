"""The Pareto distribution."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.nn.normalization import log1mexp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside


@compiled_on_floats
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x."""
    z = (x - loc) / scale
    return outside(z < 1, jnp.log(b / scale) - (b + 1) * jnp.log(z))


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    z = (x - loc) / scale
    return outside(z < 1, -jnp.expm1(-b * jnp.log(z)), 0.0)


@compiled_on_floats
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf."""
    z = (x - loc) / scale
    return outside(z < 1, log1mexp(b * jnp.log(jnp.maximum(z, 1))))


@compiled_on_floats
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    z = (x - loc) / scale
    return outside(z < 1, z ** -b, 1.0)


@compiled_on_floats
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf."""
    z = (x - loc) / scale
    return outside(z < 1, -b * jnp.log(z), 0.0)


@compiled_on_floats
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q."""
    value = loc + scale * jnp.exp(-jnp.log1p(-q) / b)
    return outside((q < 0) | (q > 1), value, math.nan)
