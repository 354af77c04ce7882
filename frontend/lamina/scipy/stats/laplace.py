"""Laplace's distribution, of density exp(-|x|) / 2."""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density

__all__ = ["cdf", "logpdf", "pdf"]


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.laplace.logpdf(jnp.array([0.0, 1.0])).round(3))
    [-0.693 -1.693]
    """
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.laplace.cdf(jnp.array([0.0, 1.0])).round(3))
    [0.5   0.816]
    """
    z = (x - loc) / scale
    tail = jnp.exp(-jnp.abs(z)) / 2
    return jnp.where(z <= 0, tail, 1 - tail)
