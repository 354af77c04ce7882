"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.numpy import linalg
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, promote_inexact

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the probability density at the points along x's last axis.

    x               real numbers of shape (..., n).
    mean            the mean, of shape (..., n), or a scalar.
    cov             the covariance, positive definite, of shape (..., n, n); a scalar stands for a
                    multiple of the identity.
    allow_singular  None.

    Raises ValueError where shapes do not fit; NotImplementedError for allow_singular.

    >>> normal = lamina.scipy.stats.multivariate_normal
    >>> print(normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(3))
    -1.838
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    return _logpdf(*promote_inexact(x, mean, cov))


@compiled
def _logpdf(x: Any, mean: Any, cov: Any) -> Array:
    x, mean, cov = (jnp.asarray(v) for v in (x, mean, cov))
    if not np.shape(mean):
        return -0.5 * jnp.square(x - mean) / cov - 0.5 * (math.log(2 * math.pi) + jnp.log(cov))
    size = mean.shape[-1]
    if not np.shape(cov):
        distance = x - mean
        square = jnp.einsum("...i,...i->...", distance, distance) / cov
        return -0.5 * square - size / 2 * (math.log(2 * math.pi) + jnp.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (size, size):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes")
    factor = linalg.cholesky(cov)
    distance = (x - mean)[..., None]
    batch = np.broadcast_shapes(distance.shape[:-2], cov.shape[:-2])
    whitened = lax.linalg.triangular_solve(
        jnp.broadcast_to(factor, (*batch, size, size)),
        jnp.broadcast_to(distance, (*batch, size, 1)), left_side=True, lower=True,
    )[..., 0]  # fmt: skip
    square = jnp.einsum("...i,...i->...", whitened, whitened)
    log_root = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    return -0.5 * square - size / 2 * math.log(2 * math.pi) - log_root


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The probability density at the points along x's last axis.

    x     real numbers of shape (..., n).
    mean  the mean, of shape (..., n), or a scalar.
    cov   the covariance, positive definite, of shape (..., n, n); a scalar stands for a multiple of
          the identity.

    Raises ValueError where shapes do not fit.

    >>> normal = lamina.scipy.stats.multivariate_normal
    >>> print(normal.pdf(jnp.zeros(2), jnp.zeros(2), 0.5 * jnp.eye(2)).round(3))
    0.318
    """
    return lax.exp(logpdf(x, mean, cov))
