"""The uniform distribution on [0, 1]."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.uniform.logpdf(jnp.array([0.25, 2.0])).round(3))
    [  0. -inf]
    """
    log = outside((x < loc) | (x > loc + scale), -jnp.log(scale) + 0 * x)
    return outside(scale <= 0, log, math.nan)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.uniform.cdf(jnp.array([0.25, 2.0])).round(3))
    [0.25 1.  ]
    """
    return jnp.clip((x - loc) / scale, 0, 1)


@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q.

    >>> print(lamina.scipy.stats.uniform.ppf(jnp.array([0.25, 0.75])).round(3))
    [0.25 0.75]
    """
    return outside((q < 0) | (q > 1), q * scale + loc, math.nan)
