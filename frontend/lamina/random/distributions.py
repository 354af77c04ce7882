"""Distributions without parameters, made of uniform or normal numbers in closed form: exponential gumbel
laplace cauchy logistic maxwell rademacher."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    DTypeLike,
    literal,
    requested_dtype,
)  # fmt: skip
from lamina.random.drawing import draw, number
from lamina.random.keys import Key, single_key
from lamina.random.sampling import (
    random_normal,
    random_uniform,
)


@takes_out_sharding
def exponential(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers with density exp(-x), x >= 0.

    key    a key, used up.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> lamina.random.exponential(lamina.random.key(0), (3,)).shape
    (3,)
    """
    return draw("exponential", random_exponential, key, shape, dtype)


def random_exponential(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """exponential, within a program."""
    return lax.neg(lax.log1p(lax.neg(random_uniform(words, shape, dtype))))


@takes_out_sharding
def gumbel(
    key: Key, shape: Any = (), dtype: DTypeLike | None = None, mode: str | None = None
) -> Array:
    """Numbers with distribution function exp(-exp(-x)).

    key    a key, used up.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.
    mode   "low", or "high", which resolves large values more finely; None: as configured.

    Raises ValueError for another dtype or mode.

    >>> lamina.random.gumbel(lamina.random.key(0), (3,), mode="high").shape
    (3,)
    """
    if mode not in (None, "low", "high"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    sampler = _random_gumbel_high if mode == "high" else _random_gumbel_low
    return draw("gumbel", sampler, key, shape, dtype)


def random_gumbel(words: Any, shape: tuple[int, ...], dtype: np.dtype, high: bool = False) -> Array:
    """gumbel, within a program."""
    return (_random_gumbel_high if high else _random_gumbel_low)(words, shape, dtype)


def _random_gumbel_low(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    tiny = number(dtype, float(dtypes.finfo(dtype).tiny))
    drawn = random_uniform(words, shape, dtype, tiny, number(dtype, 1))
    return lax.neg(lax.log(lax.neg(lax.log(drawn))))


def _random_gumbel_high(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    info = dtypes.finfo(dtype)
    drawn = random_uniform(words, (2, *shape), dtype)
    coarse, fine = (lax.index_in_dim(drawn, i, 0, keepdims=False) for i in (0, 1))
    unit = number(dtype, 2.0**-info.nmant)
    finer = lax.add(lax.add(coarse, lax.mul(unit, fine)), number(dtype, float(info.tiny)))
    finer = jnp.where(lax.ge(coarse, number(dtype, 0.5)), coarse, finer)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(finer)))))


@takes_out_sharding
def laplace(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers with density exp(-|x|) / 2.

    key    a key, used up.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> lamina.random.laplace(lamina.random.key(0), (3,)).shape
    (3,)
    """
    return draw("laplace", _random_laplace, key, shape, dtype)


def _random_laplace(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    low = number(dtype, -1) + number(dtype, float(dtypes.finfo(dtype).epsneg))
    drawn = random_uniform(words, shape, dtype, low, number(dtype, 1))
    return lax.mul(lax.sign(drawn), lax.log1p(lax.neg(lax.abs(drawn))))


@takes_out_sharding
def cauchy(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers with density 1 / (pi (1 + x**2)).

    key    a key, used up.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> lamina.random.cauchy(lamina.random.key(0), (3,)).shape
    (3,)
    """
    return draw("cauchy", _random_cauchy, key, shape, dtype)


def _random_cauchy(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    eps = number(dtype, float(dtypes.finfo(dtype).eps))
    drawn = random_uniform(words, shape, dtype, eps, number(dtype, 1))
    return lax.tan(lax.mul(number(dtype, np.pi), lax.sub(drawn, number(dtype, 0.5))))


@takes_out_sharding
def logistic(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers with distribution function 1 / (1 + exp(-x)).

    key    a key, used up.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> lamina.random.logistic(lamina.random.key(0), (3,)).shape
    (3,)
    """
    return draw("logistic", _random_logistic, key, shape, dtype)


def _random_logistic(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    tiny = number(dtype, float(dtypes.finfo(dtype).tiny))
    drawn = random_uniform(words, shape, dtype, tiny, number(dtype, 1))
    return lax.sub(lax.log(drawn), lax.log1p(lax.neg(drawn)))


@takes_out_sharding
def maxwell(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Lengths of vectors of three normal numbers.

    key    a key, used up.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> bool((lamina.random.maxwell(lamina.random.key(0), (3,)) > 0).all())
    True
    """
    return draw("maxwell", random_maxwell, key, shape, dtype)


def random_maxwell(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    parts = random_normal(words, (*shape, 3), dtype)
    return lax.sqrt(lax.reduce_sum(lax.mul(parts, parts), (len(shape),)))


@takes_out_sharding
def rademacher(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """-1 or 1, each with probability 1/2.

    key    a key, used up.
    shape  of the result, a tuple of ints.
    dtype  of the result; by default the default int.

    >>> set(lamina.random.rademacher(lamina.random.key(0), (50,)).tolist()) == {-1, 1}
    True
    """
    words = single_key("rademacher", key)
    to = requested_dtype(dtype, "rademacher", keep=dtypes.canonicalize(int))
    return random_rademacher(words, shape=as_shape(shape), dtype=to)


@compiled(static=("shape", "dtype"))
def random_rademacher(words: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    drawn = random_uniform(words, shape, dtypes.canonicalize(float))
    sign = lax.convert_element_type(lax.lt(drawn, literal(drawn, 0.5)), dtype)
    return lax.sub(lax.mul(number(dtype, 2), sign), number(dtype, 1))
