"""The Dirichlet distribution, of positive numbers that add up to 1.

alpha  its shapes, positive, a vector.
"""

from __future__ import annotations

import math

from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, promote_inexact
from lamina.scipy import special
from lamina.scipy.stats.define import density

__all__ = ["logpdf", "pdf"]


@compiled
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the probability density at the points along x's first axis; -inf off the
    simplex.

    x      positive numbers that add up to 1, of shape (n, ...); the last of them may be left out.
    alpha  the distribution's shapes, a vector of n positive numbers.

    Raises ValueError where shapes do not fit.

    >>> of = lamina.scipy.stats.dirichlet.logpdf
    >>> print(of(jnp.array([0.25, 0.75]), jnp.array([2.0, 1.0])).round(3))
    -0.693
    """
    x, alpha = (jnp.asarray(v) for v in promote_inexact(x, alpha))
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    size = alpha.shape[0]
    if x.shape[0] not in (size, size - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; got "
            f"x.shape={x.shape}, alpha.shape={alpha.shape}"
        )
    if x.shape[0] == size - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)])
    powers = alpha.reshape(alpha.shape + (1,) * (x.ndim - 1)) - 1
    norm = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    value = jnp.sum(special.xlogy(powers, x), 0) - norm
    on_simplex = jnp.all(x >= 0, 0) & (jnp.abs(jnp.sum(x, 0) - 1) < 1e-6)
    return jnp.where(on_simplex, value, -math.inf)


pdf = density(logpdf)
