"""The normal distribution's functions: ndtr ndtri log_ndtr, and Owen's T."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.lax.checks import scalar_like
from lamina.lax.special.program import chebyshev, where
from lamina.numpy.promotion import Array, ArrayLike, check_arraylike, promote_args_inexact
from lamina.scipy.special import tables
from lamina.scipy.special.define import in_double
from lamina.scipy.special.error_functions import mills, square_and_error

_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1 / math.sqrt(2 * math.pi)
# of (r - 2) / (r + 2) on [1.4, 28] to [-1, 1]
_NDTRI_SCALE, _NDTRI_SHIFT = 1.9172932330827067, -0.6616541353383459


def _check_float(name: str, x: ArrayLike) -> None:
    check_arraylike(name, x)
    if not dtypes.is_float(get_aval(x).dtype):
        raise TypeError(f"x.dtype={get_aval(x).dtype.name} is not supported, see docstring: "
                        f"{name} takes floats")  # fmt: skip


def _lower_tail(t: Any) -> tuple[Any, Any]:
    """exp(t^2 / 2) ndtr(-t) and ndtr(-t) for t >= 0."""
    ratio = mills(t)
    square, error = square_and_error(t)
    density = lax.exp(-0.5 * square)
    return ratio, ratio * (density - 0.5 * error * density)


def _ndtr_program(x: Any) -> Any:
    # Beyond 40 it is 0 in any precision.
    _, tail = _lower_tail(lax.min(lax.abs(x), scalar_like(x, 40)))
    return where(x < 0.0, tail, 1.0 - tail)


_ndtr = in_double("ndtr", _ndtr_program, 1, [
    lambda g, ans, x: g * (_DENSITY * jnp.exp(-0.5 * x * x)),
], stable=True)  # fmt: skip


def ndtr(x: ArrayLike) -> Array:
    """The probability that a normal number is below x. Raises TypeError unless x is of floats.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.ndtr(jnp.array([0.25, 0.5])).round(3))
    [0.599 0.691]
    """
    _check_float("ndtr", x)
    return _ndtr(x)


def _log_ndtr_program(x: Any) -> Any:
    """log(1 - ndtr(-x)) to the right; to the left -x^2 / 2 plus a logarithm that, of a number far from
    1, may be that of a difference from 1, too."""
    far = 2 * float(np.finfo(x.dtype).eps) ** -0.5  # from here on the logarithm doesn't count
    ratio, tail = _lower_tail(lax.min(lax.abs(x), scalar_like(x, far)))
    left = x < 0.0
    return lax.log1p(where(left, ratio - 1.0, -tail)) - where(left, 0.5 * x * x, 0.0)


_log_ndtr = in_double("log_ndtr", _log_ndtr_program, 1, [
    lambda g, ans, x: g * (_DENSITY * jnp.exp(-0.5 * x * x - ans)),
], stable=True)  # fmt: skip


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), elementwise: of the probability that a standard normal number is below x,
    accurate on both sides.

    x             an array of floats.
    series_order  the number of terms that JAX takes far on the left; without effect, the error is
                  rounding's.

    Raises TypeError unless x is of floats and series_order an int, ValueError where that is
    negative or above 30.

    >>> print(lamina.scipy.special.log_ndtr(jnp.array([-50.0, 0.0])).round(3))
    [-1.254831e+03 -6.930000e-01]
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    _check_float("log_ndtr", x)
    return _log_ndtr(x)


def _ndtri_program(p: Any) -> Any:
    q = p - 0.5
    ratio = q * (1 / 0.375)
    middle = q * chebyshev(2.0 * ratio * ratio - 1.0, tables.NDTRI_CENTRE)
    tail = lax.min(p, 1.0 - p)
    r = lax.sqrt(-lax.log(lax.min(tail, scalar_like(p, 0.125))))
    # (r - 2) / (r + 2), scaled
    t = ((_NDTRI_SCALE + _NDTRI_SHIFT) * r - 2 * (_NDTRI_SCALE - _NDTRI_SHIFT)) / (r + 2.0)
    size = where(tail == 0.0, math.inf, r * chebyshev(t, tables.NDTRI_TAIL))
    result = where(lax.abs(q) <= 0.375, middle, where(q < 0.0, -size, size))
    return where(tail >= 0.0, result, math.nan)


_ndtri = in_double("ndtri", _ndtri_program, 1, [
    lambda g, ans, p: g * (jnp.exp(0.5 * ans * ans) / _DENSITY),
], stable=True)  # fmt: skip


def ndtri(p: ArrayLike) -> Array:
    """The inverse of ndtr on [0, 1]. Raises TypeError unless p is of floats.

    p  an array of floats, of any shape.

    >>> print(lamina.scipy.special.ndtri(jnp.array([0.25, 0.5])).round(3))
    [-0.674  0.   ]
    """
    _check_float("ndtri", p)
    return _ndtri(p)


def _erfcinv_program(y: Any) -> Any:
    far = y > 1.0
    z = _ndtri_program(0.5 * where(far, 2.0 - y, y)) * -_ROOT_HALF
    return where(far, -z, z)


_erfcinv = in_double("erfcinv", _erfcinv_program, 1, [
    lambda g, ans, y: g * (-0.5 * math.sqrt(math.pi) * jnp.exp(ans * ans)),
], stable=True)  # fmt: skip


def erfcinv(y: ArrayLike) -> Array:
    """The inverse of erfc on [0, 2], exact for small y too; NaN elsewhere.

    y  an array of floats, or of integers, which become floats.

    Raises ValueError for complex numbers.

    >>> round(float(lamina.scipy.special.erfcinv(0.5)), 4)
    0.4769
    """
    (y,) = promote_args_inexact("erfcinv", y)
    if dtypes.is_complex(get_aval(y).dtype):
        raise ValueError("erfcinv does not support complex-valued inputs.")
    return _erfcinv(y)


# ---- Owen's T ----------------------------------------------------------------------------------
_NODES, _WEIGHTS = (tuple(v.tolist()) for v in np.polynomial.legendre.leggauss(48))


def _owens_t_double(h: Any, a: Any) -> Any:
    """For |a| <= 1 by Gauss' rule; beyond that by T(h, a) = ... - T(a h, 1 / a) (Owen, 1956)."""
    size, slope = lax.abs(h), lax.abs(a)
    steep = slope > 1.0
    # Beyond a slope of 1 the roles are exchanged.
    height = where(steep, size * where(slope < math.inf, slope, 1.0), size)
    end = where(steep, 1.0 / slope, slope)
    clipped = lax.min(height, np.float64(1e3))
    # Past nine deviations there is nothing left to integrate.
    stop = lax.min(end, 9.0 / lax.max(clipped, np.float64(1e-3)))
    total: Any = 0.0
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        x = stop * (0.5 * (node + 1.0))
        square = x * x
        height_square = 0.5 * clipped * clipped
        total = total + weight * lax.exp(-height_square * (1.0 + square)) / (1.0 + square)
    part = total * stop * (0.25 / math.pi)
    scaled = where(slope < math.inf, size * slope, math.inf)
    scaled = where(size == 0.0, 0.0, scaled)
    left, right = 0.5 * lax.erfc(size * _ROOT_HALF), 0.5 * lax.erfc(scaled * _ROOT_HALF)
    mirrored = 0.5 * (left + right) - left * right - where(slope < math.inf, part, 0.0)
    at_zero = lax.atan(slope) * (0.5 / math.pi)
    value = where(size == 0.0, at_zero, where(steep, mirrored, part))
    value = where(size == math.inf, 0.0, value)
    value = where(a < 0.0, -value, value)
    return where((h == h) & (a == a), value, math.nan)


owens_t = in_double("owens_t", _owens_t_double, 2, [
    lambda g, ans, h, a: g * (
        -0.5 * _DENSITY * jnp.exp(-0.5 * h * h) * lax.erf(a * h * jnp.asarray(_ROOT_HALF, h.dtype))
    ),
    lambda g, ans, h, a: g * (
        jnp.exp(-0.5 * h * h * (1 + a * a)) / ((1 + a * a) * (2 * math.pi))
    ),
])  # fmt: skip
owens_t.__doc__ = """Owen's T function, elementwise: the probability of x > h and 0 < y < a x for
two independent standard normal numbers.

h  an array of real numbers.
a  slopes, which broadcast with h.

>>> print(lamina.scipy.special.owens_t(0.0, jnp.array([0.0, 1.0])))
[0.    0.125]
"""
