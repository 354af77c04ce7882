"""Von Mises' distribution of angles.

kappa  its concentration, not negative.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density, outside

__all__ = ["logpdf", "pdf"]


@compiled_on_floats
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.vonmises.logpdf(jnp.array([0.0, 1.0]), 1.0).round(3))
    [-1.074 -1.533]
    """
    # log i0e grows slowly where i0 overflows.
    log = kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(kappa))
    return outside(kappa < 0, log, math.nan)


pdf = density(logpdf)
