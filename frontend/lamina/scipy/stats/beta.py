"""The beta distribution on [0, 1].

a, b  its two shapes, positive.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@compiled_on_floats
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
           loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.beta.logpdf(jnp.array([0.25, 0.5]), 2.0, 3.0).round(3))
    [0.523 0.405]
    """
    z = (x - loc) / scale
    log = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    density = outside((z < 0) | (z > 1), log - jnp.log(scale))
    return outside((a <= 0) | (b <= 0) | (scale <= 0), density, math.nan)


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
        loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The probability of at most x.

    >>> print(lamina.scipy.stats.beta.cdf(jnp.array([0.25, 0.5]), 2.0, 3.0).round(3))
    [0.262 0.688]
    """
    return special.betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


@compiled_on_floats
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
           loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.beta.logcdf(jnp.array([0.25, 0.5]), 2.0, 3.0).round(3))
    [-1.34  -0.375]
    """
    return jnp.log(cdf(x, a, b, loc, scale))


@compiled_on_floats
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x.

    >>> print(lamina.scipy.stats.beta.sf(jnp.array([0.25, 0.5]), 2.0, 3.0).round(3))
    [0.738 0.312]
    """
    return special.betainc(b, a, 1 - jnp.clip((x - loc) / scale, 0, 1))


@compiled_on_floats
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
          loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.beta.logsf(jnp.array([0.25, 0.5]), 2.0, 3.0).round(3))
    [-0.303 -1.163]
    """
    return jnp.log(sf(x, a, b, loc, scale))
