"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside


def _cotangent(q: Any) -> Array:
    """The cotangent of pi q on [0, 1], by the nearer end; NaN elsewhere."""
    upper = q > 0.5
    near = jnp.where(upper, 1 - q, q)
    value = jnp.where(upper, -1, 1) / jnp.tan(math.pi * near)
    return outside((q < 0) | (q > 1), value, math.nan)


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
    return loc - scale * _cotangent(q)


@compiled_on_floats
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is above with probability q."""
    return loc + scale * _cotangent(q)
