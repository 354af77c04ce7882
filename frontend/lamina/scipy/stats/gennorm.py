"""The generalized normal distribution, of density proportional to exp(-|x|**beta)."""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density


@compiled_on_floats
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the probability density at x."""
    return jnp.log(beta / 2) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of at most x."""
    return (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta)) / 2
