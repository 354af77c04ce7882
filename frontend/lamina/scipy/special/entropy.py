"""Functions of logarithms that are careful at 0: entr kl_div rel_entr xlogy logit boxcox ..."""

from __future__ import annotations

import math
from typing import Any

from lamina import lax
from lamina import numpy as jnp
from lamina.control_flow import custom_jvp
from lamina.lax.special.program import where
from lamina.nn.normalization import log_softmax as _log_softmax
from lamina.nn.normalization import logsumexp as _logsumexp
from lamina.nn.normalization import softmax as _softmax
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, literal, pick, promote_args_inexact
from lamina.scipy.special.define import in_double


def logsumexp(a: ArrayLike, axis: Any = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None) -> Any:  # fmt: skip
    """log(sum(b * exp(a))) over some axes, without overflow.

    a            an array of numbers.
    axis         an axis or a tuple of axes; None: all.
    b            weights, which broadcast with a; None: ones.
    keepdims     whether these axes stay, with size 1.
    return_sign  gives (the logarithm of the modulus, the sign) instead, for weighted sums that may
                 be negative; without it their logarithm is NaN.
    where        booleans, which broadcast with a: what counts.

    >>> print(lamina.scipy.special.logsumexp(jnp.array([1000.0, 1000.0])))
    1000.6932
    """
    return _logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign, where=where)


def softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """exp(x) / sum(exp(x)) over some axes, without overflow.

    x     an array of real numbers.
    axis  an axis or a tuple of axes; None: all.

    >>> print(lamina.scipy.special.softmax(jnp.array([0.0, 1.0, 1000.0])))
    [0. 0. 1.]
    """
    return _softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """log(softmax(x)) over some axes, accurate where softmax is near 0.

    x     an array of real numbers.
    axis  an axis or a tuple of axes; None: all.

    >>> print(lamina.scipy.special.log_softmax(jnp.array([0.0, 1.0, 1000.0])))
    [-1000.  -999.     0.]
    """
    return _log_softmax(x, axis=axis)


def expit(x: ArrayLike) -> Array:
    """The logistic function 1 / (1 + exp(-x)).

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.expit(jnp.array([0.25, 0.5])).round(3))
    [0.562 0.622]
    """
    return lax.logistic(*promote_args_inexact("expit", x))


@compiled
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of expit.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.logit(jnp.array([0.25, 0.5])).round(3))
    [-1.099  0.   ]
    """
    (x,) = promote_args_inexact("logit", x)
    return _logit(x)


@custom_jvp
def _logit(x: Any) -> Array:
    return lax.log(lax.div(x, lax.sub(literal(x, 1), x)))


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    return _logit(x), lax.div(dx, lax.mul(x, lax.sub(literal(x, 1), x)))


def _times_log(log: Any, slope: Any) -> Any:
    """(x, y) -> x log(y), with 0 where x is 0 and y no NaN."""

    @custom_jvp
    def times_log(x: Any, y: Any) -> Array:
        zero = literal(x, 0)
        product = lax.mul(x, log(y))
        nothing = lax.bitwise_and(
            lax.eq(x, lax.full_like(x, zero)), lax.bitwise_not(jnp.isnan(y))
        )
        return lax.select(nothing, lax.full_like(product, zero), product)

    @times_log.defjvp
    def times_log_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
        (x, y), (dx, dy) = primals, tangents
        by_y = lax.div(lax.mul(dy, x), slope(y))
        return times_log(x, y), lax.add(lax.mul(dx, log(y)), by_y)

    return times_log


_xlogy = _times_log(lax.log, lambda y: y)
_xlog1py = _times_log(lax.log1p, lambda y: lax.add(y, literal(y, 1)))


@compiled
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(y), elementwise, and 0 where x is 0, for all y but NaN.

    x, y  arrays of numbers, which broadcast.

    >>> print(lamina.scipy.special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0])))
    [0. 0.]
    """
    return _xlogy(*jnp.broadcast_arrays(*promote_args_inexact("xlogy", x, y)))


@compiled
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), elementwise and accurate for small y, and 0 where x is 0, for all y but NaN.

    x, y  arrays of numbers, which broadcast.

    >>> print(lamina.scipy.special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 1e-6])))
    [0.000000e+00 1.999999e-06]
    """
    return _xlog1py(*jnp.broadcast_arrays(*promote_args_inexact("xlog1py", x, y)))


@custom_jvp
def _xlogx(x: Any) -> Array:
    return _xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    return _xlogx(x), lax.mul(dx, lax.add(lax.log(x), literal(x, 1)))


@compiled
def entr(x: ArrayLike) -> Array:
    """-x log(x): 0 at 0, -inf below.

    x  an array of floats, of any shape.

    >>> print(lamina.scipy.special.entr(jnp.array([0.25, 0.5])).round(3))
    [0.347 0.347]
    """
    (x,) = promote_args_inexact("entr", x)
    negative = lax.lt(x, lax.full_like(x, 0))
    return pick(negative, literal(x, -math.inf), lax.neg(_xlogx(x)))


@compiled
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q), elementwise: the terms of relative entropy. 0 where p is 0 and q >= 0, inf
    where either is out of range.

    p, q  arrays of real numbers, not negative, which broadcast.

    >>> print(lamina.scipy.special.rel_entr(jnp.array([0.0, 0.5, -1.0]), 0.5))
    [ 0.  0. inf]
    """
    p, q = jnp.broadcast_arrays(*promote_args_inexact("rel_entr", p, q))
    zero, one = literal(p, 0), literal(p, 1)
    both = (p > zero) & (q > zero)
    nothing = (p == zero) & (q >= zero)
    p1, q1 = (pick(both, x, one) for x in (p, q))
    value = lax.sub(_xlogx(p1), _xlogy(p1, q1))
    missing = jnp.isnan(p) | jnp.isnan(q)
    outside = pick(missing, literal(p, math.nan), literal(p, math.inf))
    return pick(both, value, pick(nothing, zero, outside))


@compiled
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q, elementwise: the terms of the Kullback-Leibler divergence, which are
    not negative. q where p is 0, inf where either is out of range.

    p, q  arrays of real numbers, not negative, which broadcast.

    >>> print(lamina.scipy.special.kl_div(jnp.array([0.0, 0.5, -1.0]), 0.5))
    [0.5 0.  inf]
    """
    p, q = promote_args_inexact("kl_div", p, q)
    return rel_entr(p, q) - p + q


def _boxcox(x: Any, lmbda: Any) -> Any:
    return _power_of_exp(lax.log(x), lmbda)


def _boxcox1p(x: Any, lmbda: Any) -> Any:
    return _power_of_exp(lax.log1p(x), lmbda)


def _power_of_exp(log: Any, lmbda: Any) -> Any:
    """(exp(lmbda log) - 1) / lmbda, log at lmbda = 0."""
    at_zero = lmbda == 0.0
    nonzero = where(at_zero, 1.0, lmbda)
    return where(at_zero, log, lax.expm1(nonzero * log) / nonzero)


def _boxcox_by_lmbda(log: Any) -> Any:
    def derivative(g: Any, ans: Any, x: Any, lmbda: Any) -> Array:
        # d/dl (e^(l u) - 1) / l = (u e^(l u) - ans) / l, and u^2 / 2 at 0
        u = log(x)
        slope = (u * jnp.exp(lmbda * u) - ans) / jnp.where(lmbda == 0, 1, lmbda)
        return g * jnp.where(lmbda == 0, u * u / 2, slope)

    return derivative


boxcox = in_double("boxcox", _boxcox, 2, [
    lambda g, ans, x, lmbda: g * x ** (lmbda - 1),
    _boxcox_by_lmbda(jnp.log),
], weak=True)  # fmt: skip
boxcox.__doc__ = """The Box-Cox transform, elementwise: (x ** lmbda - 1) / lmbda, and log(x) for
lmbda = 0.

x      an array of real numbers, not negative; else NaN.
lmbda  the exponents, which broadcast with x.

>>> print(lamina.scipy.special.boxcox(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 2.0])))
[0. 1. 4.]
"""
boxcox1p = in_double("boxcox1p", _boxcox1p, 2, [
    lambda g, ans, x, lmbda: g * jnp.exp((lmbda - 1) * jnp.log1p(x)),
    _boxcox_by_lmbda(jnp.log1p),
], weak=True)  # fmt: skip
boxcox1p.__doc__ = """The Box-Cox transform of 1 + x, elementwise, accurate for small x: ((1 + x) **
lmbda - 1) / lmbda, and log(1 + x) for lmbda = 0.

x      an array of real numbers from -1 on; else NaN.
lmbda  the exponents, which broadcast with x.

>>> print(lamina.scipy.special.boxcox1p(jnp.array([1e-6, 1.0]), jnp.array([0.0, 2.0])))
[9.999995e-07 1.500000e+00]
"""
