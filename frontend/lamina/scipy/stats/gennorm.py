"""The generalised normal distribution, of density proportional to exp(-|x| ** beta).

beta  its shape, positive: 1 for Laplace's, 2 for a normal distribution.
"""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density

__all__ = ["cdf", "logpdf", "pdf"]


@compiled_on_floats
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.gennorm.logpdf(jnp.array([0.0, 1.0]), 2.0).round(3))
    [-0.572 -1.572]
    """
    return jnp.log(beta / 2) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.gennorm.cdf(jnp.array([0.0, 1.0]), 2.0).round(3))
    [0.5   0.921]
    """
    return (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta)) / 2
