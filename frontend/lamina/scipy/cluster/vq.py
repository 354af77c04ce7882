"""Vector quantisation."""

from __future__ import annotations

from typing import Any

from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import check_arraylike, promote_inexact


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """For each observation (a row, or a number) the index of the nearest code, and its distance.

    check_finite is accepted for SciPy's sake: a NaN is at distance NaN.
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
