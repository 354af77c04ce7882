"""Distributions that stand on factorisations: multivariate normal vectors, orthogonal matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core.trace import get_aval
from lamina.numpy import linalg
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_shapes,
    check_arraylike,
)
from lamina.random.keys import Key, single_key
from lamina.random.sampling import float_dtype, random_normal


@takes_out_sharding
def multivariate_normal(
    key: Key, mean: ArrayLike, cov: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:  # fmt: skip
    """Normal vectors, along the last axis.

    key     a key, used up.
    mean    (..., n)
    cov     covariance, (..., n, n).
    shape   of the batch; by default what those of mean and cov broadcast to.
    dtype   a float dtype; by default float32, or float64 with enable_x64.
    method  how cov is factored: "cholesky" (the fastest; cov is positive definite), "eigh",
            "svd".

    Raises ValueError for another method and for shapes that do not fit.

    >>> key = lamina.random.key(0)
    >>> lamina.random.multivariate_normal(key, jnp.zeros(2), jnp.eye(2), (5,)).shape
    (5, 2)
    """
    words = single_key("multivariate_normal", key)
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError("method argument must be one of {'svd', 'eigh', 'cholesky'}")
    to = float_dtype("multivariate_normal", dtype)
    check_arraylike("multivariate_normal", mean, cov)
    mean_shape, cov_shape = get_aval(mean).shape, get_aval(cov).shape
    for name, have, least in (("mean", mean_shape, 1), ("cov", cov_shape, 2)):
        if len(have) < least:
            raise ValueError(
                f"multivariate_normal requires {name}.ndim >= {least}, got {name}.ndim == {len(have)}"
            )
    n = mean_shape[-1]
    if cov_shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got "
            f"cov.shape == {cov_shape}."
        )
    least_batch = broadcast_shapes(mean_shape[:-1], cov_shape[:-2])
    batch = least_batch if shape is None else as_shape(shape)
    if broadcast_shapes(batch, least_batch) != batch:
        raise ValueError(
            f"multivariate_normal got incompatible shapes: requested {batch}, but the batches of "
            f"mean and cov need {least_batch}"
        )
    return _multivariate_normal(words, jnp.asarray(mean).astype(to), jnp.asarray(cov).astype(to),
                                shape=batch, dtype=to, method=method)  # fmt: skip


@compiled(static=("shape", "dtype", "method"))
def _multivariate_normal(
    words: Any, mean: Any, cov: Any, *, shape: tuple[int, ...], dtype: np.dtype, method: str
) -> Array:
    if method == "cholesky":
        factor = linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = linalg.eigh(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    else:
        left, values, _ = linalg.svd(cov)
        factor = left * jnp.sqrt(values[..., None, :])
    drawn = random_normal(words, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", factor, drawn)


@takes_out_sharding
def orthogonal(key: Key, n: int, shape: Any = (), dtype: DTypeLike | None = None,
               m: int | None = None) -> Array:  # fmt: skip
    """Matrices (*shape, n, m) of orthonormal columns (rows, where n < m), uniform by Haar measure.

    key    a key, used up.
    n      number of rows.
    shape  of the batch.
    dtype  a float or complex dtype; by default float32, or float64 with enable_x64.
    m      number of columns, n by default.

    From the QR decomposition of a normal matrix, with the signs of R's diagonal
    (Mezzadri, "How to generate random matrices from the classical compact groups", 2007).

    Raises ValueError for another dtype, TypeError for negative sizes.

    >>> q = lamina.random.orthogonal(lamina.random.key(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
    True
    """
    words = single_key("orthogonal", key)
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    to = float_dtype("orthogonal", dtype, complex_too=True)
    return _orthogonal(words, shape=as_shape(shape), rows=rows, columns=columns, dtype=to)


@compiled(static=("shape", "rows", "columns", "dtype"))
def _orthogonal(
    words: Any, *, shape: tuple[int, ...], rows: int, columns: int, dtype: np.dtype
) -> Array:
    tall = (*shape, max(rows, columns), min(rows, columns))
    q, r = linalg.qr(random_normal(words, tall, dtype))
    signs = jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    out = lax.mul(q, jnp.broadcast_to(signs[..., None, :], tall))
    return jnp.matrix_transpose(out) if rows < columns else out
