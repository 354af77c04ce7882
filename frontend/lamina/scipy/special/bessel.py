"""Bessel functions: i0 i0e i1 i1e, and bessel_jn of integer orders."""

from __future__ import annotations

import operator
from typing import Any

from lamina import lax
from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.bessel_functions import bessel_i0, bessel_i1
from lamina.numpy.promotion import Array, ArrayLike, promote_args_inexact


def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) i0(x).

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.i0e(jnp.array([0.25, 0.5])).round(3))
    [0.791 0.645]
    """
    return lax.bessel_i0e(*promote_args_inexact("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) i1(x).

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.i1e(jnp.array([0.25, 0.5])).round(3))
    [0.098 0.156]
    """
    return lax.bessel_i1e(*promote_args_inexact("i1e", x))


@compiled
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.i0(jnp.array([0.25, 0.5])).round(3))
    [1.016 1.063]
    """
    (x,) = promote_args_inexact("i0", x)
    return bessel_i0(x)


@compiled
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.i1(jnp.array([0.25, 0.5])).round(3))
    [0.126 0.258]
    """
    (x,) = promote_args_inexact("i1", x)
    return bessel_i1(x)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind of orders 0, ..., v at z, along a first axis: by Miller's
    backward recurrence.

    z       an array of floats.
    v       the highest order, a Python int.
    n_iter  the order at which the recurrence starts, which must be well above v and |z|.

    Raises ValueError for a negative order. Counterpart: jax.scipy.special.bessel_jn.

    >>> print(lamina.scipy.special.bessel_jn(jnp.array([1.0]), v=2)[:, 0].round(4))
    [0.7652 0.4401 0.1149]
    """
    (z,) = promote_args_inexact("bessel_jn", z)
    order, start = operator.index(v), operator.index(n_iter)
    if order < 0:
        raise ValueError(f"bessel_jn: the order v must not be negative, got {v}")
    return _bessel_jn(z, order=order, start=max(start, order + 1))


@compiled(static=("order", "start"))
def _bessel_jn(z: Any, *, order: int, start: int) -> Array:
    at_zero = z == 0
    inverse = 2 / jnp.where(at_zero, 1, z)

    def step(state: Any, k: Any) -> Any:
        above, here, total = state
        below = k * inverse * here - above
        # 1 = J0 + 2 J2 + 2 J4 + ...: the orders that are even, but 0
        total = total + jnp.where((k % 2 == 1) & (k > 1), 2 * below, 0)
        # Kept small on the way: only ratios count.
        large = jnp.abs(below) > 1e10
        scale = jnp.where(large, jnp.asarray(1e-10, z.dtype), jnp.asarray(1, z.dtype))
        return (here * scale, below * scale, total * scale), (below, scale)

    first = jnp.full_like(z, 1e-16)
    orders = jnp.arange(start, 0, -1, dtype=z.dtype)
    (_, last, total), (found, scales) = lax.scan(step, (jnp.zeros_like(z), first, first * 0), orders)
    # found[i] is of order start - 1 - i, before all later scalings
    later = lax.cumprod(scales, 0, reverse=True)
    found = (found * later)[::-1][: order + 1]
    values = found / (last + total)
    one = jnp.zeros_like(values).at[0].set(1)
    return jnp.where(at_zero, one, values)
