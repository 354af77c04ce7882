"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x."""
    return outside((x < loc) | (x > loc + scale), -jnp.log(scale) + 0 * x)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return jnp.clip((x - loc) / scale, 0, 1)


@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q."""
    return outside((q < 0) | (q > 1), q * scale + loc, math.nan)
