"""Spherical harmonics."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    check_arraylike,
    concrete_or_error,
    promote_args_inexact,
)  # fmt: skip


def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike,
               diff_n: int | None = None, n_max: int | None = None) -> Array:  # fmt: skip
    """The spherical harmonic of degree n and order m, elementwise; complex.

    n       degrees, integers.
    m       orders, integers from -n to n.
    theta   colatitudes in [0, pi]. All four broadcast.
    phi     longitudes in [0, 2 pi].
    diff_n  None: SciPy's derivatives are not there, grad is.
    n_max   an upper bound of n, a Python int; it must be given where n is traced.

    Raises NotImplementedError for a diff_n.

    >>> degrees, orders = jnp.array([0, 1]), jnp.array([0, 0])
    >>> print(lamina.scipy.special.sph_harm_y(degrees, orders, 0.0, 0.0).real.round(4))
    [0.2821 0.4886]
    """
    check_arraylike("sph_harm_y", n, m, theta, phi)
    if diff_n is not None:
        raise NotImplementedError("The 'diff_n' argument to sph_harm_y is not supported.")
    if n_max is None:
        found = concrete_or_error(n, "The argument `n_max` of sph_harm_y must be given.")
        n_max = int(np.max(found)) if found.size else 0
    theta, phi = promote_args_inexact("sph_harm_y", theta, phi)
    return _sph_harm_y(n, m, theta, phi, bound=operator.index(n_max))


@compiled(static=("bound",))
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, bound: int) -> Array:
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    dtype = get_aval(theta).dtype
    size = jnp.abs(m)
    cosine, sine = jnp.cos(theta), jnp.sin(theta)
    sine = jnp.where(sine < 0, -sine, sine)  # the root of 1 - cosine**2, whose derivative is known at 0

    # Fully normalized functions: from degree m = |m| upwards by degree (DLMF 14.10.3).
    def step(state: Any, degree: Any) -> Any:
        before, here, result = state
        at, order = degree.astype(dtype), size.astype(dtype)
        diagonal = here * (-jnp.sqrt((2 * at + 1) / (2 * at))) * sine
        safe = jnp.where(degree > size, (at - order) * (at + order), 1)
        up = jnp.sqrt((2 * at + 1) * (2 * at - 1) / safe)
        last = jnp.maximum((at - 1) ** 2 - order**2, 0) / jnp.abs((2 * at - 3) * (2 * at - 1))
        climbed = up * (cosine * here - jnp.sqrt(jnp.where(last > 0, last, 1)) * (last > 0) * before)
        new = jnp.where(degree <= size, diagonal, climbed)
        before = jnp.where(degree <= size, jnp.zeros_like(here), here)
        return (before, new, jnp.where(degree == n, new, result)), None

    start = jnp.full_like(theta, math.sqrt(0.25 / math.pi))
    first = jnp.where(n == 0, start, jnp.zeros_like(start))
    degrees = jnp.arange(1, bound + 1)
    (_, _, legendre), _ = lax.scan(step, (jnp.zeros_like(start), start, first), degrees)
    legendre = jnp.where(size <= n, legendre, jnp.zeros_like(legendre))
    flipped = (m < 0) & (m % 2 != 0)
    legendre = jnp.where(flipped, -legendre, legendre)
    angle = m.astype(dtype) * phi
    parts = legendre * jnp.cos(angle), legendre * jnp.sin(angle)
    return lax.complex(*(p.astype(dtypes.real_dtype(dtypes.complex_dtype(dtype))) for p in parts))
