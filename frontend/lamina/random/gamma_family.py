"""Gamma-distributed numbers, and the distributions made of them: beta dirichlet chisquare f t ...

The sampler is that of Marsaglia and Tsang, "A simple method for generating gamma variables" (2000),
with each element drawn under a key of its own. Derivatives by the shape parameter are those of the
quantile function (lax.random_gamma_grad).
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.api import vmap
from lamina.control_flow import custom_jvp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.nn.normalization import softmax
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    check_arraylike,
    convert,
    literal,
)  # fmt: skip
from lamina.random.distributions import random_exponential, random_rademacher
from lamina.random.drawing import Sampler, draw
from lamina.random.keys import Key, single_key
from lamina.random.rbg import RbgWords
from lamina.random.sampling import (
    float_dtype,
    is_approximate,
    random_normal,
    random_uniform,
    sample_shape,
    split_words,
    stacked_words,
)


# ---- the gamma distribution --------------------------------------------------------------------
@takes_out_sharding
def gamma(key: Key, a: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
          method: str = "exact") -> Array:  # fmt: skip
    """Numbers with density x**(a - 1) exp(-x) / gamma(a), x > 0.

    key     a key, used up.
    a       the shape parameter, positive: numbers or an array that fits `shape`.
    shape   of the result; by default that of a.
    dtype   of the result, a float dtype; by default float32, or float64 with enable_x64.
    method  "exact", by rejection; or "approximate", without a loop: faster, within 0.1 %.

    Raises ValueError for another dtype, shape or method.

    >>> lamina.random.gamma(lamina.random.key(0), jnp.array([0.5, 3.0])).shape
    (2,)
    """
    if is_approximate("gamma", method):
        from lamina.random import approximate

        return draw("gamma", approximate.random_gamma, key, shape, dtype, (a,), wide=True)
    return draw("gamma", random_gamma, key, shape, dtype, (a,))


@takes_out_sharding
def loggamma(key: Key, a: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
             method: str = "exact") -> Array:  # fmt: skip
    """Logarithms of gamma numbers, exact also where those underflow (small a).

    key     a key, used up.
    a       the shape parameter, positive: numbers or an array that fits `shape`.
    shape   of the result; by default that of a.
    dtype   a float dtype; by default float32, or float64 with enable_x64.
    method  "exact", by rejection; or "approximate", without a loop: faster, within 0.1 %.

    Raises ValueError for another dtype or method, and for a shape that the parameters don't fit.

    >>> bool(jnp.isfinite(lamina.random.loggamma(lamina.random.key(0), 1e-3)))
    True
    """
    if is_approximate("loggamma", method):
        return draw("loggamma", _approximate_loggamma, key, shape, dtype, (a,), wide=True)
    return draw("loggamma", random_loggamma, key, shape, dtype, (a,))


def _approximate_loggamma(words: Any, shape: tuple[int, ...], dtype: np.dtype, a: Any) -> Array:
    from lamina.random import approximate

    return approximate.random_loggamma(words, shape, dtype, a)


def random_gamma(words: Any, shape: tuple[int, ...], dtype: np.dtype, a: Any) -> Array:
    """gamma, within a program; a has the sample's shape and dtype."""
    return _gamma(words, a)


def random_loggamma(words: Any, shape: tuple[int, ...], dtype: np.dtype, a: Any) -> Array:
    """loggamma, within a program; a has the sample's shape and dtype."""
    return _loggamma(words, a)


@custom_jvp
def _gamma(words: Any, a: Any) -> Array:
    return _samples(words, a, False)


@_gamma.defjvp
def _gamma_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    words, a = primals
    sample = _gamma(words, a)
    return sample, lax.mul(tangents[1], lax.random_gamma_grad(a, sample))


@custom_jvp
def _loggamma(words: Any, a: Any) -> Array:
    return _samples(words, a, True)


@_loggamma.defjvp
def _loggamma_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    words, a = primals
    log_sample = _loggamma(words, a)
    sample = lax.exp(log_sample)
    smallest = literal(sample, dtypes.finfo(sample.dtype).tiny)
    sample = jnp.where(lax.eq(sample, literal(sample, 0)), smallest, sample)
    grad = lax.div(lax.random_gamma_grad(a, sample), sample)
    return log_sample, lax.mul(tangents[1], grad)


def _samples(words: Any, a: Any, log_space: bool) -> Array:
    size = math.prod(np.shape(a))
    own = stacked_words(words, size)
    alphas = lax.reshape(a, (size,))
    if isinstance(words, RbgWords):  # one by one: a batch of such keys draws under the first alone
        flat = lax.map(lambda pair: _one_sample(pair[0], pair[1], log_space), (own, alphas))
    else:
        flat = vmap(lambda w, alpha: _one_sample(w, alpha, log_space))(own, alphas)
    return lax.reshape(flat, np.shape(a))


def _one_sample(words: Any, alpha: Any, log_space: bool) -> Array:
    dtype = get_aval(alpha).dtype

    def number(value: float) -> Any:
        return np.asarray(value).astype(dtype)[()]

    zero, one, third = number(0), number(1), number(1 / 3)
    # Below 1 a gamma number of shape alpha + 1 is scaled down by a power of a uniform one.
    large = lax.ge(alpha, one)
    d = lax.sub(lax.select(large, alpha, lax.add(alpha, one)), third)
    c = lax.div(third, lax.sqrt(d))

    def rejected(state: Any) -> Array:
        _, square, v, u = state
        squeeze = lax.sub(one, lax.mul(number(0.0331), lax.mul(square, square)))
        bound = lax.mul(d, lax.add(lax.sub(one, v), lax.log(v)))
        bound = lax.add(lax.mul(square, number(0.5)), bound)
        return lax.bitwise_and(lax.ge(u, squeeze), lax.ge(lax.log(u), bound))

    def propose(state: Any) -> Any:
        key, key_x, key_u = split_words(state[0], 3)

        def next_normal(inner: Any) -> Any:
            key, sub = split_words(inner[0], 2)
            x = random_normal(sub, (), dtype)
            return key, x, lax.add(one, lax.mul(x, c))

        start = (key_x, lax.full((), zero), lax.full((), number(-1)))
        _, x, v = lax.while_loop(lambda s: lax.le(s[2], zero), next_normal, start)
        cube = lax.mul(lax.mul(v, v), v)
        return key, lax.mul(x, x), cube, random_uniform(key_u, (), dtype)

    key, boost_key = split_words(words, 2)
    start = (key, lax.full((), zero), lax.full((), one), lax.full((), number(2)))
    v = lax.while_loop(rejected, propose, start)[2]
    inverse = lax.div(one, alpha)
    if log_space:
        log_u = lax.neg(random_exponential(boost_key, (), dtype))
        no_boost = lax.bitwise_or(large, lax.eq(log_u, zero))
        boost = lax.select(no_boost, lax.full((), zero), lax.mul(log_u, inverse))
        return lax.add(lax.add(lax.log(d), lax.log(v)), boost)
    uniform = lax.sub(one, random_uniform(boost_key, (), dtype))
    boost = lax.select(large, lax.full((), one), lax.pow(uniform, inverse))
    return lax.mul(lax.mul(d, v), boost)


# ---- made of gamma numbers ---------------------------------------------------------------------
@takes_out_sharding
def beta(key: Key, a: ArrayLike, b: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None,
         *, method: str = "exact") -> Array:  # fmt: skip
    """Numbers with density x**(a - 1) (1 - x)**(b - 1) / B(a, b), 0 < x < 1.

    key     a key, used up.
    a       the exponent at 0, positive: numbers or an array that fits `shape`.
    b       the exponent at 1, positive: numbers or an array that fits `shape`.
    shape   of the result; by default what a and b broadcast to.
    dtype   a float dtype; by default float32, or float64 with enable_x64.
    method  "exact", by rejection; or "approximate", without a loop: faster, within 0.1 %.

    Raises ValueError for another dtype or method, and for a shape that the parameters don't fit.

    >>> lamina.random.beta(lamina.random.key(0), 2.0, 3.0, (3,)).shape
    (3,)
    """
    approximate = is_approximate("beta", method)
    sampler = _approximate_beta if approximate else _random_beta
    return draw("beta", sampler, key, shape, dtype, (a, b))


def _random_beta(words: Any, shape: tuple[int, ...], dtype: np.dtype, a: Any, b: Any,
                 loggamma: Sampler = random_loggamma) -> Array:  # fmt: skip
    halves = zip(split_words(words, 2), (a, b), strict=True)
    logs = [loggamma(w, shape, dtype, x) for w, x in halves]
    largest = lax.max(*logs)
    left, right = (lax.exp(lax.sub(x, largest)) for x in logs)
    return lax.div(left, lax.add(left, right))


def _approximate_beta(words: Any, shape: tuple[int, ...], dtype: np.dtype, a: Any, b: Any) -> Array:
    return _random_beta(words, shape, dtype, a, b, _approximate_loggamma)


@takes_out_sharding
def chisquare(key: Key, df: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
              method: str = "exact") -> Array:  # fmt: skip
    """Sums of the squares of df normal numbers.

    key     a key, used up.
    df      degrees of freedom, positive: numbers or an array that fits `shape`.
    shape   of the result; by default that of df.
    dtype   a float dtype; by default float32, or float64 with enable_x64.
    method  "exact", by rejection; or "approximate", without a loop: faster, within 0.1 %.

    Raises ValueError for another dtype or method, and for a shape that the parameters don't fit.

    >>> lamina.random.chisquare(lamina.random.key(0), 4.0, (3,)).shape
    (3,)
    """
    approximate = is_approximate("chisquare", method)
    sampler = _approximate_chisquare if approximate else _random_chisquare
    return draw("chisquare", sampler, key, shape, dtype, (df,))


def _random_chisquare(words: Any, shape: tuple[int, ...], dtype: np.dtype, df: Any,
                      loggamma: Sampler = random_loggamma) -> Array:  # fmt: skip
    two = literal(df, 2)
    return lax.mul(lax.exp(loggamma(words, shape, dtype, lax.div(df, two))), two)


def _approximate_chisquare(words: Any, shape: tuple[int, ...], dtype: np.dtype, df: Any) -> Array:
    return _random_chisquare(words, shape, dtype, df, _approximate_loggamma)


@takes_out_sharding
def f(key: Key, dfnum: ArrayLike, dfden: ArrayLike, shape: Any = None,
      dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Quotients of the means of dfnum and of dfden squared normal numbers.

    key    a key, used up.
    dfnum  degrees of freedom above, positive: numbers or an array that fits `shape`.
    dfden  degrees of freedom below, positive: numbers or an array that fits `shape`.
    shape  of the result; by default what dfnum and dfden broadcast to.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> lamina.random.f(lamina.random.key(0), 3.0, 5.0, (3,)).shape
    (3,)
    """
    return draw("f", _random_f, key, shape, dtype, (dfnum, dfden))


def _random_f(words: Any, shape: tuple[int, ...], dtype: np.dtype, dfnum: Any, dfden: Any) -> Array:
    below, above = split_words(words, 2)
    top = lax.div(_random_chisquare(above, shape, dtype, dfnum), dfnum)
    return lax.div(top, lax.div(_random_chisquare(below, shape, dtype, dfden), dfden))


@takes_out_sharding
def t(key: Key, df: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Student's t: normal numbers over the root of the mean of df squared ones.

    key    a key, used up.
    df     degrees of freedom, positive: numbers or an array that fits `shape`.
    shape  of the result; by default that of df.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> lamina.random.t(lamina.random.key(0), 5.0, (3,)).shape
    (3,)
    """
    return draw("t", _random_t, key, shape, dtype, (df,))


def _random_t(words: Any, shape: tuple[int, ...], dtype: np.dtype, df: Any) -> Array:
    for_normal, for_gamma = split_words(words, 2)
    normal = random_normal(for_normal, shape, dtype)
    half = lax.div(df, literal(df, 2))
    return lax.mul(normal, lax.sqrt(lax.div(half, _gamma(for_gamma, half))))


@takes_out_sharding
def dirichlet(key: Key, alpha: ArrayLike, shape: Any = None,
              dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Points of the simplex with density proportional to the product of x_i**(alpha_i - 1).

    key    a key, used up.
    alpha  positive, (..., n).
    shape  of the batch, before the axis n; by default that of alpha.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for a scalar alpha, another dtype and a shape that alpha doesn't fit.

    >>> x = lamina.random.dirichlet(lamina.random.key(0), jnp.array([1.0, 2.0, 3.0]), (4,))
    >>> x.shape, bool(jnp.allclose(x.sum(-1), 1))
    ((4, 3), True)
    """
    words = single_key("dirichlet", key)
    to = float_dtype("dirichlet", dtype)
    check_arraylike("dirichlet", alpha)
    if not np.ndim(alpha):
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    batch = np.empty(np.shape(alpha)[:-1], bool)
    dims = sample_shape("dirichlet", None if shape is None else as_shape(shape), batch)
    return _dirichlet(words, convert(alpha, to), shape=(*dims, np.shape(alpha)[-1]))


@compiled(static=("shape",))
def _dirichlet(words: Any, alpha: Any, *, shape: tuple[int, ...]) -> Array:
    return softmax(_loggamma(words, jnp.broadcast_to(alpha, shape)), -1)


@takes_out_sharding
def generalized_normal(key: Key, p: float, shape: Any = (),
                       dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Numbers with density proportional to exp(-|x|**p).

    key    a key, used up.
    p      the exponent, a positive number.
    shape  of the result, a tuple of ints.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype.

    >>> lamina.random.generalized_normal(lamina.random.key(0), 1.5, (3,)).shape
    (3,)
    """
    words = single_key("generalized_normal", key)
    to = float_dtype("generalized_normal", dtype)
    return _generalized_normal(words, p, shape=as_shape(shape), dtype=to)


@compiled(static=("shape", "dtype"))
def _generalized_normal(words: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    for_size, for_sign = split_words(words, 2)
    inverse = jnp.asarray(1 / p, dtype)
    size = _gamma(for_size, jnp.broadcast_to(inverse, shape))
    return lax.mul(random_rademacher(for_sign, shape=shape, dtype=dtype), size ** (1 / p))


@takes_out_sharding
def ball(key: Key, d: int, p: float = 2, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Points uniform in the unit ball of the p-norm, with d coordinates along a last axis.

    key    a key, used up.
    d      number of coordinates.
    p      the norm, a positive number.
    shape  of the batch, before the axis d.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    After Barthe, Guedon, Mendelson and Naor, "A probabilistic approach to the geometry of the
    l_p^n-ball" (2005).

    Raises ValueError for another dtype.

    >>> x = lamina.random.ball(lamina.random.key(0), 3, shape=(10,))
    >>> x.shape, bool((jnp.linalg.norm(x, axis=-1) <= 1).all())
    ((10, 3), True)
    """
    words = single_key("ball", key)
    to = float_dtype("ball", dtype)
    return _ball(words, p, d=operator.index(d), shape=as_shape(shape), dtype=to)


@compiled(static=("d", "shape", "dtype"))
def _ball(words: Any, p: Any, *, d: int, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    for_points, for_radius = split_words(words, 2)
    points = _generalized_normal(for_points, p, shape=(*shape, d), dtype=dtype)
    rest = random_exponential(for_radius, shape, dtype)
    norm = (jnp.sum(jnp.abs(points) ** p, -1) + rest) ** (1 / p)
    return points / norm[..., None]
