"""The beta distribution."""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside


@compiled_on_floats
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
           loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The logarithm of the probability density at x."""
    z = (x - loc) / scale
    log = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    return outside((z < 0) | (z > 1), log - jnp.log(scale))


pdf = density(logpdf)


@compiled_on_floats
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
        loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The probability of at most x."""
    return special.betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


@compiled_on_floats
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
           loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The logarithm of cdf."""
    return jnp.log(cdf(x, a, b, loc, scale))


@compiled_on_floats
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return special.betainc(b, a, 1 - jnp.clip((x - loc) / scale, 0, 1))


@compiled_on_floats
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike,
          loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:  # fmt: skip
    """The logarithm of sf."""
    return jnp.log(sf(x, a, b, loc, scale))
