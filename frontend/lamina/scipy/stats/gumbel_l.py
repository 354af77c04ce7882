"""The left-skewed Gumbel distribution, of least values."""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.nn.normalization import log1mexp
from lamina.numpy.promotion import Array
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@compiled_on_floats
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.gumbel_l.logpdf(jnp.array([-1.0, 0.0])).round(3))
    [-1.368 -1.   ]
    """
    z = (x - loc) / scale
    value = z - jnp.exp(z) - jnp.log(scale)
    return outside(scale <= 0, value, math.nan)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> print(lamina.scipy.stats.gumbel_l.cdf(jnp.array([-1.0, 0.0])).round(3))
    [0.308 0.632]
    """
    return -jnp.expm1(-jnp.exp((x - loc) / scale))


@compiled_on_floats
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.gumbel_l.logcdf(jnp.array([-1.0, 0.0])).round(3))
    [-1.178 -0.459]
    """
    return log1mexp(jnp.exp((x - loc) / scale))


@compiled_on_floats
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.gumbel_l.sf(jnp.array([-1.0, 0.0])).round(3))
    [0.692 0.368]
    """
    return jnp.exp(-jnp.exp((x - loc) / scale))


@compiled_on_floats
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.gumbel_l.logsf(jnp.array([-1.0, 0.0])).round(3))
    [-0.368 -1.   ]
    """
    return -jnp.exp((x - loc) / scale)


@compiled_on_floats
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The value that a number is below with probability p.

    >>> print(lamina.scipy.stats.gumbel_l.ppf(jnp.array([0.25, 0.5])).round(3))
    [-1.246 -0.367]
    """
    return loc + scale * jnp.log(-jnp.log1p(-p))
