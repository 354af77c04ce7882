"""softmax, log_softmax, logsumexp, log1mexp, standardize, one_hot."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.numpy._eager import compiled
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    Axis,
    DTypeLike,
    canonical_axes,
    literal,
    promote_args_inexact,
    requested_dtype,
)  # fmt: skip


def _prepared(name: str, x: ArrayLike, axis: Axis) -> tuple[Array, tuple[int, ...]]:
    x = jnp.asarray(promote_args_inexact(name, x)[0])
    return x, canonical_axes(axis, len(x.shape))


def _greatest(x: Array, axes: tuple[int, ...], where: Any) -> Array:
    """The maximum over axes, kept; -inf of nothing."""
    empty = any(x.shape[i] == 0 for i in axes)
    initial = -np.inf if where is not None or empty else None
    return lax.stop_gradient(jnp.max(x, axes, keepdims=True, initial=initial, where=where))


def _only(x: Array, where: Any) -> Array:
    """x with zeros for what is not included: what is computed of those has no derivative."""
    return x if where is None else jnp.where(where, x, 0)


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)) over axes; elements where `where` does not hold count as -inf.

    x      numbers of any shape; integers become floats.
    axis   an axis, several, or None for all.
    where  booleans that fit x: which elements count; where none does, the result is 0.

    >>> lamina.nn.softmax(jnp.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    x, axes = _prepared("softmax", x, axis)
    return _softmax(x, where, axes=axes)


@compiled(static=("axes",))
def _softmax(x: Any, where: Any, *, axes: tuple[int, ...]) -> Array:
    weights = jnp.exp(_only(x, where) - _greatest(x, axes, where))
    if where is not None:
        weights = jnp.where(where, weights, 0)
    total = jnp.sum(weights, axes, keepdims=True)
    if where is not None:  # a sum of nothing: the greatest that counts adds 1
        total = jnp.where(total == 0, 1, total)
    return weights / total


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)) without underflow on the way.

    x      numbers of any shape; integers become floats.
    axis   an axis, several, or None for all.
    where  booleans that fit x: which elements count.

    >>> print(lamina.nn.log_softmax(jnp.zeros(2)).round(3))
    [-0.693 -0.693]
    """
    x, axes = _prepared("log_softmax", x, axis)
    return _log_softmax(x, where, axes=axes)


@compiled(static=("axes",))
def _log_softmax(x: Any, where: Any, *, axes: tuple[int, ...]) -> Array:
    shifted = _only(x, where) - _greatest(x, axes, where)
    total = jnp.sum(jnp.exp(shifted), axes, keepdims=True, where=where)
    out = shifted - jnp.log(total)
    return out if where is None else jnp.where(where, out, -jnp.inf)


def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None) -> Any:  # fmt: skip
    """log(sum(b * exp(a))) over axes without overflow on the way; with return_sign also the sign of
    the sum, the logarithm then being of its absolute value (else NaN for a negative sum).

    a         numbers of any shape.
    axis      an axis, several, or None for all.
    b         factors that fit a.
    keepdims  keep those axes, with size 1.
    where     booleans that fit a: which elements count.

    >>> float(lamina.nn.logsumexp(jnp.array([1000.0, -jnp.inf])))
    1000.0
    """
    if b is not None:
        a, b = promote_args_inexact("logsumexp", a, b)
        shape = jnp.broadcast_shapes(np.shape(a), np.shape(b))
        a = jnp.broadcast_to(a, shape)
    x, axes = _prepared("logsumexp", a, axis)
    out, sign = _logsumexp(
        x, b, where, axes=axes, keepdims=bool(keepdims), signed=bool(return_sign)
    )
    return (out, sign) if return_sign else out


@compiled(static=("axes", "keepdims", "signed"))
def _logsumexp(a: Any, b: Any, where: Any, *, axes: tuple[int, ...], keepdims: bool, signed: bool
               ) -> tuple[Array, Array]:  # fmt: skip
    if b is not None:
        a = jnp.where(b != 0, a, -jnp.inf)
    real = a if a.dtype.kind != "c" else lax.real(a)
    greatest = _greatest(real, axes, where)
    greatest = lax.stop_gradient(jnp.where(jnp.isfinite(greatest), greatest, 0))
    terms = jnp.exp(_only(a, where) - greatest.astype(a.dtype))
    if b is not None:
        terms = b * terms
    total = jnp.sum(terms, axes, keepdims=keepdims, where=where)
    sign = lax.stop_gradient(jnp.sign(total))
    if signed or b is not None:
        size = jnp.abs(total)
        if not signed and a.dtype.kind != "c":
            size = jnp.where(sign < 0, jnp.nan, size)
        total = total if not signed and a.dtype.kind == "c" else size
    back = greatest if keepdims else lax.squeeze(greatest, axes)
    return jnp.log(total) + back.astype(total.dtype), sign


def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) over axes without overflow on the way.

    x         numbers of any shape; integers become floats.
    axis      an axis, several, or None for all.
    where     booleans that fit x: which elements count.
    keepdims  keep those axes, with size 1.

    >>> float(lamina.nn.logmeanexp(jnp.full(3, 1000.0)))
    1000.0
    """
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    count = jnp.sum(
        jnp.broadcast_to(1 if where is None else where, np.shape(x)), axis, keepdims=keepdims
    )
    return total - jnp.log(count.astype(total.dtype))


def standardize(x: ArrayLike, axis: Axis = -1, mean: ArrayLike | None = None,
                variance: ArrayLike | None = None, epsilon: ArrayLike = 1e-5,
                where: ArrayLike | None = None, *, algorithm: str = "fast") -> Array:  # fmt: skip
    """(x - mean) / sqrt(variance + epsilon) over axes, with x's own moments by default.

    algorithm  how the variance is found: "fast", mean(x^2) - mean(x)^2, or "stable", in two passes.

    x         numbers of any shape; integers become floats.
    axis      an axis, several, or None for all.
    mean      of x, where it is known.
    variance  of x, where it is known.
    epsilon   keeps the root from 0.
    where     booleans that fit x: which elements count.

    >>> lamina.nn.standardize(jnp.array([1.0, 3.0])).round(2).tolist()
    [-1.0, 1.0]
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f'algorithm must be "fast" or "stable", got {algorithm!r}')
    x, axes = _prepared("standardize", x, axis)
    return _standardize(x, mean, variance, epsilon, where, axes=axes, fast=algorithm == "fast")


@compiled(static=("axes", "fast"))
def _standardize(
    x: Any, mean: Any, variance: Any, epsilon: Any, where: Any, *, axes: tuple[int, ...], fast: bool
) -> Array:
    if mean is None:
        mean = jnp.mean(x, axes, keepdims=True, where=where)
    if variance is None and not fast:
        variance = jnp.mean(jnp.square(jnp.subtract(x, mean)), axes, keepdims=True, where=where)
    elif variance is None:
        # mean(x**2) - mean(x)**2 may be below 0 by rounding.
        squares = jnp.mean(jnp.square(x), axes, keepdims=True, where=where)
        variance = jnp.clip(squares - jnp.square(mean), 0)
    return jnp.subtract(x, mean) * lax.rsqrt(jnp.asarray(variance + epsilon))


@takes_out_sharding
def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1
) -> Array:
    """For each number a vector, along a new axis, that is 1 there and 0 elsewhere; all 0 for
    numbers out of range.

    x            integers, of any shape; an array or a list.
    num_classes  the size of the new axis.
    dtype        of the result; by default the default float dtype.
    axis         where the new axis is.

    >>> lamina.nn.one_hot(jnp.array([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    try:
        count = operator.index(num_classes)
    except TypeError as e:
        raise TypeError(f"one_hot: num_classes must be an integer, but {e}") from None
    to = requested_dtype(dtype, "one_hot", keep=dtypes.canonicalize(float))
    x = jnp.asarray(x)
    ndim = len(x.shape) + 1
    if not -ndim <= axis < ndim:
        raise ValueError(f"one_hot: axis {axis} is out of bounds for a result of {ndim} dimensions")
    return _one_hot(x, count=count, dtype=to, axis=axis % ndim)


@compiled(static=("count", "dtype", "axis"))
def _one_hot(x: Any, *, count: int, dtype: np.dtype, axis: int) -> Array:
    classes = lax.broadcasted_iota(
        x.dtype if dtypes.is_integer(x.dtype) else np.dtype(np.int32),
        tuple(count if i == axis else 1 for i in range(len(x.shape) + 1)), axis,
    )  # fmt: skip
    return lax.convert_element_type(jnp.equal(lax.expand_dims(x, (axis,)), classes), dtype)


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x >= 0, accurate near 0 and far from it; NaN below.

    x  numbers of any shape.

    >>> print(lamina.nn.log1mexp(jnp.log(2.0)).round(3))
    -0.693
    """
    return _log1mexp(*promote_args_inexact("log1mexp", x))


@compiled
def _log1mexp(x: Any) -> Array:
    # Maechler, "Accurately computing log(1 - exp(-|a|))" (2012): the ways meet at log 2.
    small = jnp.less(x, lax.full_like(x, literal(x, np.log(2))))
    one = lax.full_like(x, literal(x, 1))
    near = lax.log(lax.neg(lax.expm1(lax.neg(lax.select(small, x, one)))))
    far = lax.log1p(lax.neg(lax.exp(lax.neg(lax.select(small, one, x)))))
    return lax.select(small, near, far)
