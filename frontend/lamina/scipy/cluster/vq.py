"""Vector quantisation."""

from __future__ import annotations

from typing import Any

from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import check_arraylike, promote_inexact

__all__ = ["vq"]


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """For each observation the index of the nearest code, and its distance: a step of k-means.

    obs           observations: rows of a matrix of floats, or the numbers of a vector.
    code_book     codes, of obs's rank and row length.
    check_finite  without effect: a NaN is at distance NaN.

    Gives (int32 indices, distances), vectors. Raises ValueError for other ranks.

    >>> places, book = jnp.array([0.1, 4.0]), jnp.array([0.0, 5.0])
    >>> codes, distances = lamina.scipy.cluster.vq.vq(places, book)
    >>> print(codes, distances)
    [0 1] [0.1 1. ]
    """
    check_arraylike("vq", obs, code_book)
    x, codes = (jnp.asarray(a) for a in promote_inexact(obs, code_book))
    if len(x.shape) != len(codes.shape):
        raise ValueError("Observation and code_book should have the same rank")
    if len(x.shape) == 1:
        x, codes = x[:, None], codes[:, None]
    if len(x.shape) != 2:
        raise ValueError("ndim different than 1 or 2 are not supported")
    return _vq(x, codes)


@compiled
def _vq(x: Any, codes: Any) -> tuple[Any, Any]:
    distance = jnp.sqrt(jnp.sum(jnp.abs(x[:, None, :] - codes[None, :, :]) ** 2, axis=-1))
    return jnp.argmin(distance, axis=-1), jnp.min(distance, axis=-1)
