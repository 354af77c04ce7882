"""Density estimation by Gaussian kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina import random
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy import linalg
from lamina.numpy.promotion import Array, ArrayLike, check_arraylike, promote_inexact
from lamina.scipy import special
from lamina.tree_registration import register_pytree_node_class


@register_pytree_node_class
class gaussian_kde:
    """The density that puts a Gaussian on each column of a sample.

    dataset    (n,), or (dimensions, n).
    bw_method  the kernels' width: "scott" (the default), "silverman", a number, or a function of
               this object.
    weights    of the n points, 1 / n by default.
    """

    def __init__(self, dataset: ArrayLike, bw_method: Any = None,
                 weights: ArrayLike | None = None) -> None:  # fmt: skip
        check_arraylike("gaussian_kde", dataset)
        points = jnp.atleast_2d(jnp.asarray(dataset))
        if dtypes.is_complex(get_aval(points).dtype):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if points.size <= 1:
            raise ValueError("`dataset` input should have multiple elements.")
        (points,) = promote_inexact(points)
        self.dataset = points
        if weights is None:
            self.weights = jnp.full(self.n, 1 / self.n, points.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            self.weights = jnp.atleast_1d(jnp.asarray(weights)).astype(points.dtype)
            if self.weights.shape != (self.n,):
                raise ValueError("`weights` input should be of length n")
            self.weights = self.weights / jnp.sum(self.weights)
        self.neff = 1 / jnp.sum(self.weights**2)
        factor = self._bandwidth("scott" if bw_method is None else bw_method)
        mean = points @ self.weights
        centred = points - mean[:, None]
        spread = (centred * self.weights) @ centred.T / (1 - jnp.sum(self.weights**2))
        self.covariance = spread * factor**2
        self.inv_cov = linalg.inv(spread) / factor**2

    def _bandwidth(self, method: Any) -> Any:
        if method == "scott":
            return self.neff ** (-1 / (self.d + 4))
        if method == "silverman":
            return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        if np.isscalar(method) and not isinstance(method, str):
            return method
        if callable(method):
            return method(self)
        raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")

    d = property(lambda self: self.dataset.shape[0], doc="The number of dimensions.")
    n = property(lambda self: self.dataset.shape[1], doc="The number of points.")

    def tree_flatten(self) -> tuple[Any, None]:
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> gaussian_kde:
        made = cls.__new__(cls)
        made.neff, made.dataset, made.weights, made.covariance, made.inv_cov = children
        return made

    def _columns(self, points: ArrayLike) -> Array:
        check_arraylike("gaussian_kde", points)
        points = jnp.atleast_2d(jnp.asarray(points))
        if points.shape[0] == self.d:
            return points
        if points.shape == (1, self.d):
            return points.T
        raise ValueError(f"points have dimension {points.shape[0]}, dataset has dimension {self.d}")

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at the columns of x."""
        points = self._columns(x)
        factor = linalg.cholesky(self.covariance)
        log_root = jnp.sum(jnp.log(jnp.diagonal(factor)))
        apart = points[:, :, None] - self.dataset[:, None, :]
        square = jnp.einsum("imn,ij,jmn->mn", apart, self.inv_cov, apart)
        norm = self.d / 2 * math.log(2 * math.pi) + log_root
        return special.logsumexp(-0.5 * square, axis=1, b=self.weights) - norm

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at the columns of points."""
        return jnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """The density at the columns of x."""
        return self.evaluate(x)

    def _overlap(self, points: Array, covariance: Array) -> Array:
        """For each column, the density of the weighted kernels of this covariance."""
        factor = linalg.cholesky(covariance)
        apart = self.dataset[:, None, :] - points[:, :, None]
        square = jnp.einsum("imn,ij,jmn->mn", apart, linalg.inv(covariance), apart)
        norm = jnp.prod(jnp.diagonal(factor)) * (2 * math.pi) ** (self.d / 2)
        return jnp.exp(-0.5 * square) @ self.weights / norm

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times that of a normal distribution."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return self._overlap(mean[:, None], self.covariance + cov)[0]

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of [low, high], in one dimension."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        scale = jnp.sqrt(self.covariance[0, 0])
        below, above = ((v - self.dataset[0]) / scale for v in (low, high))
        return jnp.sum(self.weights * (special.ndtr(above) - special.ndtr(below)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two such densities."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        both = self.covariance + other.covariance
        return jnp.sum(self._overlap(other.dataset, both) * other.weights)

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Points drawn from the density, along the axes after the first."""
        for_index, for_noise = random.split(key)
        index = random.choice(for_index, self.n, shape=shape, p=self.weights)
        noise = random.normal(for_noise, (*shape, self.d), self.dataset.dtype)
        noise = jnp.einsum("ij,...j->i...", linalg.cholesky(self.covariance), noise)
        return self.dataset[:, index] + noise

    def integrate_box(self, *_: Any, **__: Any) -> Any:
        """Not there: raises NotImplementedError."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, *_: Any, **__: Any) -> Any:
        """Not there, for the object does not change: raises NotImplementedError."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")
