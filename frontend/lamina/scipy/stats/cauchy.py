"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _cotangent(q: Any) -> Array:
    """The cotangent of pi q on [0, 1], by the nearer end; NaN elsewhere."""
    upper = q > 0.5
    near = jnp.where(upper, 1 - q, q)
    value = jnp.where(upper, -1, 1) / jnp.tan(math.pi * near)
    return outside((q < 0) | (q > 1), value, math.nan)


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.cauchy.logpdf(jnp.array([0.0, 1.0])).round(3))
    [-1.145 -1.838]
    """
    z = (x - loc) / scale
    return -jnp.log(math.pi * scale) - jnp.log1p(z * z)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.cauchy.cdf(jnp.array([0.0, 1.0])).round(3))
    [0.5  0.75]
    """
    return jnp.arctan2(jnp.ones_like(x), (loc - x) / scale) / math.pi


@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.cauchy.logcdf(jnp.array([0.0, 1.0])).round(3))
    [-0.693 -0.288]
    """
    return jnp.log(cdf(x, loc, scale))


@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.cauchy.sf(jnp.array([0.0, 1.0])).round(3))
    [0.5  0.25]
    """
    return cdf(-x, -loc, scale)


@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.cauchy.logsf(jnp.array([0.0, 1.0])).round(3))
    [-0.693 -1.386]
    """
    return jnp.log(sf(x, loc, scale))


@compiled_on_floats
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability q.

    >>> print(lamina.scipy.stats.cauchy.ppf(jnp.array([0.25, 0.5])).round(3))
    [-1.  0.]
    """
    return loc - scale * _cotangent(q)


@compiled_on_floats
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is above with probability q.

    >>> print(lamina.scipy.stats.cauchy.isf(jnp.array([0.25, 0.5])).round(3))
    [ 1. -0.]
    """
    return loc + scale * _cotangent(q)
