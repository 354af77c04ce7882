"""Window functions of M samples: bartlett blackman hamming hanning kaiser."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, concrete_or_error, convert, literal


def _size(name: str, M: int) -> int:
    n = int(concrete_or_error(M, f"M argument of {library}.numpy.{name}"))  # a float's fraction is cut off
    if n < 0:
        raise ValueError(f"{name}: the number of samples must be non-negative, got {n}")
    return n


@compiled(static=("n", "coefficients"))
def _cosines(n: int, coefficients: Sequence[float]) -> Array:
    """The sum of c_k cos(2 pi k i / (n - 1))."""
    to = dtypes.canonicalize(float)
    i = lax.iota(to, n)
    out = lax.full((n,), coefficients[0], to)
    for k, c in enumerate(coefficients[1:], 1):
        angle = lax.mul(i, literal(i, 2 * np.pi * k / (n - 1)))
        out = lax.add(out, lax.mul(literal(i, c), lax.cos(angle)))
    return out


def _cosine_window(name: str, M: int, *coefficients: float) -> Array:
    n = _size(name, M)
    if n <= 1:
        return lax.full((n,), 1, dtypes.canonicalize(float))
    return _cosines(n=n, coefficients=coefficients)


def blackman(M: int) -> Array:
    """The Blackman window: 0.42 - 0.5 cos + 0.08 cos of twice the angle.

    M  how many samples, a static int

    >>> print(jnp.blackman(5).round(2)[1:4])
    [0.34 1.   0.34]
    """
    return _cosine_window("blackman", M, 0.42, -0.5, 0.08)


def hamming(M: int) -> Array:
    """The Hamming window: 0.54 - 0.46 cos.

    M  how many samples, a static int

    >>> print(jnp.hamming(5).round(2))
    [0.08 0.54 1.   0.54 0.08]
    """
    return _cosine_window("hamming", M, 0.54, -0.46)


def hanning(M: int) -> Array:
    """The Hann window: 0.5 - 0.5 cos.

    M  how many samples, a static int

    >>> print(jnp.hanning(5).round(2))
    [0.  0.5 1.  0.5 0. ]
    """
    return _cosine_window("hanning", M, 0.5, -0.5)


def bartlett(M: int) -> Array:
    """The triangular window, 0 at both ends.

    M  how many samples, a static int

    >>> print(jnp.bartlett(5).round(2))
    [0.  0.5 1.  0.5 0. ]
    """
    n = _size("bartlett", M)
    to = dtypes.canonicalize(float)
    return lax.full((n,), 1, to) if n <= 1 else _bartlett(n=n)


@compiled(static=("n",))
def _bartlett(n: int) -> Array:
    i = lax.iota(dtypes.canonicalize(float), n)
    distance = lax.abs(lax.sub(lax.mul(literal(i, 2), i), literal(i, n - 1)))
    return lax.sub(literal(i, 1), lax.div(distance, literal(i, n - 1)))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window: i0(beta sqrt(1 - t^2)) / i0(beta) for t from -1 to 1.

    M     how many samples, a static int
    beta  how narrow it is

    >>> print(jnp.kaiser(5, 2.0).round(2))
    [0.44 0.83 1.   0.83 0.44]
    """
    n = _size("kaiser", M)
    to = dtypes.canonicalize(float)
    return lax.full((n,), 1, to) if n <= 1 else _kaiser(convert(beta, to), n=n)


@compiled(static=("n",))
def _kaiser(beta: ArrayLike, *, n: int) -> Array:
    from lamina.numpy.exponents import i0

    i = lax.iota(dtypes.canonicalize(float), n)
    half = literal(i, 0.5 * (n - 1))
    t = lax.div(lax.sub(i, half), half)
    inside = lax.max(lax.sub(literal(i, 1), lax.square(t)), literal(i, 0))
    return lax.div(i0(lax.mul(beta, lax.sqrt(inside))), i0(beta))
