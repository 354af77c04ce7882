"""Distributions with parameters, made of uniform or normal numbers in closed form: truncated normal, Pareto,
Weibull, triangular, geometric, Wald ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    check_arraylike,
    common_type,
    convert,
    literal,
    requested_dtype,
)  # fmt: skip
from lamina.random.distributions import random_exponential, random_maxwell
from lamina.random.drawing import draw, number
from lamina.random.keys import Key, single_key
from lamina.random.sampling import (
    random_normal,
    random_uniform,
    sample_shape,
    split_words,
)


@takes_out_sharding
def truncated_normal(key: Key, lower: ArrayLike, upper: ArrayLike, shape: Any = None,
                     dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Normal numbers of mean 0 and variance 1, given that they lie between lower and upper.

    key    a key, used up.
    lower  the least: numbers or an array that fits `shape`.
    upper  the greatest, likewise.
    shape  of the result; by default what lower and upper broadcast to.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> x = lamina.random.truncated_normal(lamina.random.key(0), -1.0, 2.0, (100,))
    >>> bool(x.min() > -1), bool(x.max() < 2)
    (True, True)
    """
    return draw("truncated_normal", _random_truncated_normal, key, shape, dtype, (lower, upper))


def _random_truncated_normal(
    words: Any, shape: tuple[int, ...], dtype: np.dtype, lower: Any, upper: Any
) -> Array:
    root = number(dtype, np.sqrt(2))
    low, high = (lax.erf(lax.div(x, root)) for x in (lower, upper))
    out = lax.mul(root, lax.erf_inv(random_uniform(words, shape, dtype, low, high)))
    # Rounding may reach the bounds, which are not part of the interval.
    inside = [
        lax.nextafter(lax.stop_gradient(x), lax.full_like(x, to))
        for x, to in ((lower, np.inf), (upper, -np.inf))
    ]
    return lax.min(inside[1], lax.max(inside[0], out))


@takes_out_sharding
def lognormal(
    key: Key, sigma: ArrayLike = 1.0, shape: Any = None, dtype: DTypeLike | None = None
) -> Array:
    """exp(sigma x) of normal x.

    key    a key, used up.
    sigma  standard deviation of the logarithm: numbers or an array that fits `shape`.
    shape  of the result; by default that of sigma.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> lamina.random.lognormal(lamina.random.key(0), 0.5, (3,)).shape
    (3,)
    """
    return draw("lognormal", _random_lognormal, key, shape, dtype, (sigma,))


def _random_lognormal(words: Any, shape: tuple[int, ...], dtype: np.dtype, sigma: Any) -> Array:
    return lax.exp(lax.mul(random_normal(words, shape, dtype), sigma))


@takes_out_sharding
def pareto(key: Key, b: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers with density b / x**(b + 1), x >= 1.

    key    a key, used up.
    b      the exponent, positive: numbers or an array that fits `shape`.
    shape  of the result; by default that of b.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> bool((lamina.random.pareto(lamina.random.key(0), 2.0, (3,)) >= 1).all())
    True
    """
    return draw("pareto", _random_pareto, key, shape, dtype, (b,))


def _random_pareto(words: Any, shape: tuple[int, ...], dtype: np.dtype, b: Any) -> Array:
    return lax.exp(lax.div(random_exponential(words, shape, dtype), b))


@takes_out_sharding
def rayleigh(
    key: Key, scale: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None
) -> Array:
    """Lengths of vectors of two normal numbers of standard deviation scale.

    key    a key, used up.
    scale  positive: numbers or an array that fits `shape`.
    shape  of the result; by default that of scale.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> lamina.random.rayleigh(lamina.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return draw("rayleigh", _random_rayleigh, key, shape, dtype, (scale,))


def _random_rayleigh(words: Any, shape: tuple[int, ...], dtype: np.dtype, scale: Any) -> Array:
    logs = lax.log(random_uniform(words, shape, dtype))
    return lax.mul(scale, lax.sqrt(lax.mul(logs, number(dtype, -2))))


def weibull_min(key: Key, scale: ArrayLike, concentration: ArrayLike, shape: Any = (),
                dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Numbers with distribution function 1 - exp(-(x / scale)**concentration), x >= 0.

    key            a key, used up.
    scale          positive: numbers or an array that fits `shape`.
    concentration  the exponent, likewise.
    shape          of the result, a tuple of ints.
    dtype          a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> lamina.random.weibull_min(lamina.random.key(0), 1.0, 2.0, (3,)).shape
    (3,)
    """
    return draw("weibull_min", _random_weibull_min, key, shape, dtype, (scale, concentration))


def _random_weibull_min(
    words: Any, shape: tuple[int, ...], dtype: np.dtype, scale: Any, concentration: Any
) -> Array:
    power = lax.div(number(dtype, 1), concentration)
    return lax.mul(lax.pow(random_exponential(words, shape, dtype), power), scale)


@takes_out_sharding
def triangular(key: Key, left: ArrayLike, mode: ArrayLike, right: ArrayLike, shape: Any = None,
               dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Numbers whose density is a triangle from left over its peak at mode to right.

    key    a key, used up.
    left   the least: numbers or an array that fits `shape`.
    mode   the likeliest, left <= mode <= right.
    right  the greatest.
    shape  of the result; by default what left, mode and right broadcast to.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> x = lamina.random.triangular(lamina.random.key(0), 0.0, 1.0, 3.0, (100,))
    >>> bool(x.min() >= 0), bool(x.max() <= 3)
    (True, True)
    """
    return draw("triangular", _random_triangular, key, shape, dtype, (left, mode, right))


def _random_triangular(
    words: Any, shape: tuple[int, ...], dtype: np.dtype, left: Any, mode: Any, right: Any
) -> Array:
    width, up, down = lax.sub(right, left), lax.sub(mode, left), lax.sub(right, mode)
    drawn = random_uniform(words, shape, dtype)
    rising = lax.add(left, lax.sqrt(lax.mul(lax.mul(drawn, width), up)))
    rest = lax.sub(number(dtype, 1), drawn)
    falling = lax.sub(right, lax.sqrt(lax.mul(lax.mul(rest, width), down)))
    return lax.select(lax.lt(drawn, lax.div(up, width)), rising, falling)


def double_sided_maxwell(key: Key, loc: ArrayLike, scale: ArrayLike, shape: Any = (),
                         dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """loc plus or minus scale times a Maxwell number.

    key    a key, used up.
    loc    the centre: numbers or an array that fits `shape`.
    scale  positive, likewise.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> lamina.random.double_sided_maxwell(lamina.random.key(0), 0.0, 1.0, (3,)).shape
    (3,)
    """
    return draw(
        "double_sided_maxwell", _random_double_sided_maxwell, key, shape, dtype, (loc, scale)
    )


def _random_double_sided_maxwell(
    words: Any, shape: tuple[int, ...], dtype: np.dtype, loc: Any, scale: Any
) -> Array:
    first, second = split_words(words, 2)
    size = random_maxwell(first, shape, dtype)
    drawn = random_uniform(second, shape, dtypes.canonicalize(float))
    positive = lax.convert_element_type(lax.lt(drawn, literal(drawn, 0.5)), dtype)
    sign = lax.sub(lax.mul(number(dtype, 2), positive), number(dtype, 1))
    return lax.add(lax.mul(lax.mul(sign, size), scale), loc)


@takes_out_sharding
def geometric(key: Key, p: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None) -> Array:
    """The number of trials up to the first success, each of probability p.

    key    a key, used up.
    p      0 < p <= 1: numbers or an array that fits `shape`.
    shape  of the result; by default that of p.
    dtype  an integer dtype; by default int32, or int64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> bool((lamina.random.geometric(lamina.random.key(0), 0.3, (20,)) >= 1).all())
    True
    """
    words = single_key("geometric", key)
    to = requested_dtype(dtype, "geometric", keep=dtypes.canonicalize(int))
    if not dtypes.is_integer(to):
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {to.name}")
    check_arraylike("geometric", p)
    work = dtypes.inexact_dtype(common_type(p)[0])
    dims = sample_shape("geometric", None if shape is None else as_shape(shape), p)
    return _geometric(words, convert(p, work), shape=dims, dtype=to)


@compiled(static=("shape", "dtype"))
def _geometric(words: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    work = get_aval(p).dtype
    drawn = random_uniform(words, shape, work)
    drawn = jnp.where(lax.eq(drawn, number(work, 0)), number(work, 1), drawn)
    steps = lax.floor(lax.div(lax.log(drawn), broadcast_to_shape(lax.log1p(lax.neg(p)), shape)))
    return lax.convert_element_type(lax.add(steps, number(work, 1)), dtype)


@takes_out_sharding
def wald(key: Key, mean: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Inverse Gaussian numbers of this mean and of scale 1.

    key    a key, used up.
    mean   positive: numbers or an array that fits `shape`.
    shape  of the result; by default that of mean.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    After Michael, Schucany and Haas, "Generating random variates using transformations with
    multiple roots" (1976).

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> lamina.random.wald(lamina.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return draw("wald", _random_wald, key, shape, dtype, (mean,))


def _random_wald(words: Any, shape: tuple[int, ...], dtype: np.dtype, mean: Any) -> Array:
    for_normal, for_choice = split_words(words, 2)
    y = lax.square(random_normal(for_normal, shape, dtype))
    choice = random_uniform(for_choice, shape, dtype)
    half, square = lax.mul(mean, number(dtype, 0.5)), lax.square(mean)
    under_root = lax.add(
        lax.mul(lax.mul(number(dtype, 4), mean), y), lax.mul(square, lax.square(y))
    )
    x = lax.add(mean, lax.mul(lax.mul(square, y), number(dtype, 0.5)))
    x = lax.sub(x, lax.mul(half, lax.sqrt(under_root)))
    first = lax.le(choice, lax.div(mean, lax.add(mean, x)))
    return lax.select(first, x, lax.div(square, x))
