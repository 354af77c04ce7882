"""Student's t distribution.

df  its degrees of freedom, positive.
"""

from __future__ import annotations

from lamina import numpy as jnp
from lamina.numpy.promotion import Array
from lamina.scipy import special
from lamina.scipy.stats.define import ArrayLike, compiled_on_floats, density

__all__ = ["logpdf", "pdf"]


@compiled_on_floats
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability density at x.

    >>> print(lamina.scipy.stats.t.logpdf(jnp.array([0.0, 1.0]), 3.0).round(3))
    [-1.001 -1.576]
    """
    z = (x - loc) / scale
    half = df / 2
    norm = special.betaln(half, jnp.full_like(half, 0.5)) + jnp.log(df) / 2 + jnp.log(scale)
    return -norm - (half + 0.5) * jnp.log1p(z * z / df)


pdf = density(logpdf)
