"""The normal distribution cut off at both sides.

a, b  where, before loc and scale.
"""

from __future__ import annotations

import math
from typing import Any

from lamina import numpy as jnp
from lamina.nn.normalization import log1mexp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, exponential_of

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def _log_difference(x: Any, y: Any) -> Array:
    """log(exp(x) - exp(y)) for x >= y."""
    return jnp.where(x > y, x + log1mexp(jnp.where(x > y, x - y, 1)), -math.inf)


def _log_mass(a: Any, b: Any) -> Array:
    """The logarithm of a normal number's probability to lie in [a, b], in the tail that is nearer."""
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    middle = (low <= 0) & (high > 0)
    tail = _log_difference(special.log_ndtr(high), special.log_ndtr(low))
    centre = jnp.log1p(-special.ndtr(low) - special.ndtr(-high))
    return jnp.where(middle, centre, tail)


@compiled_on_floats
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
           ) -> Array:  # fmt: skip
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.truncnorm.logpdf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(3))
    [-0.537 -0.662]
    """
    z = (x - loc) / scale
    value = -0.5 * z * z - _LOG_ROOT - jnp.log(scale) - _log_mass(a, b)
    value = jnp.where((z < a) | (z > b), -math.inf, value)
    return jnp.where(a >= b, math.nan, value)


pdf = density(logpdf)


@compiled_on_floats
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
           ) -> Array:  # fmt: skip
    """The logarithm of cdf.

    >>> print(lamina.scipy.stats.truncnorm.logcdf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(3))
    [-0.693 -0.248]
    """
    return _log_below((x - loc) / scale, a, b)


def _log_below(z: Any, a: Any, b: Any) -> Array:
    within = (z > a) & (z < b)
    middle = jnp.where(within, z, (a + b) / 2)
    left = _log_mass(a, middle) - _log_mass(a, b)
    right = _log_mass(middle, b) - _log_mass(a, b)
    # Near 1 the other side's probability says more.
    likely = left > -0.1
    value = jnp.where(likely, jnp.log1p(-jnp.exp(jnp.where(likely, right, -1))), left)
    value = jnp.where(z <= a, -math.inf, jnp.where(z >= b, 0.0, value))
    return jnp.where((a >= b) | jnp.isnan(z), math.nan, value)


@compiled_on_floats
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
          ) -> Array:  # fmt: skip
    """The logarithm of sf.

    >>> print(lamina.scipy.stats.truncnorm.logsf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(3))
    [-0.693 -1.516]
    """
    return _log_below((loc - x) / scale, -b, -a)


cdf = exponential_of(logcdf, "cdf", "The probability of at most x.")
sf = exponential_of(logsf, "sf", "The probability of more than x.")
