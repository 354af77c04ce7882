"""Distributions of counts: poisson binomial multinomial.

Small rates are drawn by counting (Knuth's products; gaps between successes), large ones by
Hoermann's rejection from a transformed table mountain hat: "The transformed rejection method for
generating Poisson random variables" and "The generation of binomial random variates" (1993).
"""

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
    convert,
    promote_inexact,
    requested_dtype,
)  # fmt: skip
from lamina.random.key_words import KeyWords
from lamina.random.keys import Key, key_impl, single_key
from lamina.random.sampling import (
    float_dtype,
    is_approximate,
    random_uniform,
    sample_shape,
    split_words,
    stacked_words,
)

_FLOAT32 = np.dtype(np.float32)


# ---- poisson -----------------------------------------------------------------------------------
@takes_out_sharding
def poisson(key: Key, lam: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
            method: str = "exact") -> Array:  # fmt: skip
    """Counts of events that come at the rate lam, as integers; -1 where lam is NaN.

    key     a key, used up.
    lam     the mean, not negative: numbers or an array that fits `shape`.
    shape   of the result; by default that of lam.
    dtype   of the result, an integer dtype; by default int32, or int64 with enable_x64.
    method  "exact", by rejection, under threefry2x32 keys; or "approximate", without a loop:
            faster, with a total variation distance below 1e-4.

    Raises ValueError for another dtype, shape or method, NotImplementedError for another key.

    >>> lamina.random.poisson(lamina.random.key(0), 4.0, (3,)).shape
    (3,)
    """
    words = single_key("poisson", key)
    approximate = is_approximate("poisson", method)
    if isinstance(words, KeyWords) and not approximate:
        raise NotImplementedError(
            "`poisson` with method='exact' is only implemented for the threefry2x32 RNG, not "
            f"{key_impl(key)}"
        )
    to = requested_dtype(dtype, "poisson", keep=dtypes.canonicalize(int))
    if not dtypes.is_integer(to):
        raise ValueError(f"dtype argument to `poisson` must be an integer dtype, got {to.name}")
    check_arraylike("poisson", lam)
    dims = sample_shape("poisson", None if shape is None else as_shape(shape), lam)
    if approximate:
        wide = to.itemsize > 4 or get_aval(lam).dtype == np.float64
        lam = convert(lam, np.dtype(np.float64) if wide else _FLOAT32)
        return _approximate_poisson(words, lam, shape=dims, dtype=to)
    return _poisson(words, convert(lam, _FLOAT32), shape=dims, dtype=to)


@compiled(static=("shape", "dtype"))
def _approximate_poisson(
    words: Any, lam: Any, *, shape: tuple[int, ...], dtype: np.dtype
) -> Array:
    from lamina.random import approximate

    return approximate.random_poisson(words, shape, dtype, lam)


@compiled(static=("shape", "dtype"))
def _poisson(words: Any, lam: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    lam = broadcast_to_shape(lam, shape)
    small = jnp.isnan(lam) | (lam < 10)
    few = _poisson_by_products(words, jnp.where(small, lam, 0.0), shape, dtype)
    many = _poisson_by_rejection(words, jnp.where(small, 1e5, lam), shape, dtype)
    drawn = jnp.where(small, few, many)
    return jnp.where(lam == 0, jnp.zeros_like(drawn), drawn)


def _poisson_by_products(words: Any, lam: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    def unfinished(state: Any) -> Array:
        return jnp.any(state[2] > -lam)

    def step(state: Any) -> Any:
        key, count, log_product = state
        key, sub = split_words(key, 2)
        count = jnp.where(log_product > -lam, count + 1, count)
        return key, count, log_product + jnp.log(random_uniform(sub, shape, _FLOAT32))

    start = (words, jnp.zeros(shape, dtype), jnp.zeros(shape, _FLOAT32))
    return lax.while_loop(unfinished, step, start)[1] - 1


def _poisson_by_rejection(words: Any, lam: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    log_lam = jnp.log(lam)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2)

    def step(state: Any) -> Any:
        key, count, accepted = state
        key, for_u, for_v = split_words(key, 3)
        u = random_uniform(for_u, shape, _FLOAT32) - 0.5
        v = random_uniform(for_v, shape, _FLOAT32)
        edge = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / edge + b) * u + lam + 0.43)
        height = jnp.log(v * inverse_alpha / (a / (edge * edge) + b))
        log_mass = -lam + k * log_lam - lax.lgamma(k + 1)
        out = (k < 0) | ((edge < 0.013) & (v > edge))
        accept = ((edge >= 0.07) & (v <= sure)) | (~out & (height <= log_mass))
        return key, jnp.where(accept, k, count), accepted | accept

    start = (words, jnp.full(shape, -1, _FLOAT32), jnp.zeros(shape, bool))
    count = lax.while_loop(lambda state: ~jnp.all(state[2]), step, start)[1]
    return lax.convert_element_type(count, dtype)


# ---- binomial ----------------------------------------------------------------------------------
def binomial(key: Key, n: ArrayLike, p: ArrayLike, shape: Any = None,
             dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Counts of successes in n trials, as floats; NaN where n < 0, p < 0 or one of them is NaN.

    key    a key, used up.
    n      number of trials: numbers or an array that fits `shape`.
    p      probability of a success, likewise.
    shape  of the result; by default what n and p broadcast to.
    dtype  a float dtype; by default float32, or float64 with enable_x64.

    Raises ValueError for another dtype, and for a shape that the parameters don't fit.

    >>> x = lamina.random.binomial(lamina.random.key(0), 10, 0.5, (100,))
    >>> bool(x.min() >= 0), bool(x.max() <= 10)
    (True, True)
    """
    words = single_key("binomial", key)
    check_arraylike("binomial", n, p)
    to = float_dtype("binomial", dtype)
    (p,) = promote_inexact(p)
    dims = sample_shape("binomial", None if shape is None else as_shape(shape), n, p)
    return _binomial(words, convert(n, get_aval(p).dtype), p, shape=dims, dtype=to)


@compiled(static=("shape", "dtype"))
def _binomial(words: Any, n: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    work = get_aval(p).dtype
    n, p = (lax.convert_element_type(broadcast_to_shape(x, shape), work) for x in (n, p))
    rarer = p < 0.5
    q = jnp.where(rarer, p, 1.0 - p)
    bad_count, bad_probability = jnp.isnan(n) | (n < 0.0), jnp.isnan(q) | (q < 0.0)
    unbounded = jnp.isinf(n)
    q = jnp.where(bad_probability, jnp.asarray(0.01, work), q)
    small = bad_count | (n * q <= 10.0)
    n = jnp.floor(n)
    few = _binomial_by_gaps(words, jnp.where(small, n, 0.0), q, shape)
    many = _binomial_by_rejection(words, jnp.where(small, 1e4, n), jnp.where(small, 0.5, q), shape)
    drawn = lax.convert_element_type(jnp.where(small, few, many), dtype)
    invalid = bad_count | bad_probability
    drawn = jnp.where(invalid, jnp.asarray(np.nan, dtype), drawn)
    drawn = jnp.where(unbounded & ~invalid, jnp.asarray(np.inf, dtype), drawn)
    as_is = rarer | bad_count | jnp.isnan(p) | unbounded
    return jnp.where(as_is, drawn, lax.convert_element_type(n, dtype) - drawn)


def _binomial_by_gaps(words: Any, n: Any, p: Any, shape: tuple[int, ...]) -> Array:
    work = get_aval(p).dtype
    log_failure = jnp.log1p(-p)

    def step(state: Any) -> Any:
        key, count, trials = state
        sub, key = split_words(key, 2)
        count = jnp.where(trials <= n, count + 1, count)
        gap = jnp.ceil(jnp.log(random_uniform(sub, shape, work)) / log_failure)
        return key, count, trials + gap

    start = (words, jnp.zeros(shape, work), jnp.zeros(shape, work))
    return lax.while_loop(lambda state: jnp.any(state[2] <= n), step, start)[1] - 1


def _binomial_by_rejection(words: Any, n: Any, p: Any, shape: tuple[int, ...]) -> Array:
    work = get_aval(p).dtype
    spread = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = n * p + 0.5
    sure = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    mode = jnp.floor((n + 1) * p)

    def step(state: Any) -> Any:
        key, count, accepted = state
        key, for_u, for_v = split_words(key, 3)
        u = random_uniform(for_u, shape, work) - 0.5
        v = random_uniform(for_v, shape, work)
        edge = 0.5 - jnp.abs(u)
        at_once = (edge >= 0.07) & (v <= sure)
        k = jnp.floor((2 * a / edge + b) * u + centre)
        outside = (k < 0) | (k > n)
        height = jnp.log(v * alpha / (a / (edge * edge) + b))
        bound = (
            (mode + 0.5) * jnp.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * jnp.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * jnp.log(odds * (n - k + 1) / (k + 1))
            + _stirling_error(mode)
            + _stirling_error(n - mode)
            - _stirling_error(k)
            - _stirling_error(n - k)
        )
        accept = at_once | (~outside & (height <= bound))
        return key, jnp.where(accept, k, count), accepted | accept

    start = (words, jnp.full(shape, -1, work), jnp.zeros(shape, bool))
    return lax.while_loop(lambda state: ~jnp.all(state[2]), step, start)[1]


# log k! - (k + 1/2) log(k + 1) + k + 1 - log(2 pi) / 2 for k = 0, 1, ..., 9
_STIRLING_ERRORS = (
    0.08106146679532726, 0.0413406959554093, 0.027677925684998338, 0.02079067210376509,
    0.016644691189821193, 0.013876128823070748, 0.011896709945891771, 0.010411265261972096,
    0.009255462182712734, 0.008330563433362871,
)  # fmt: skip


def _stirling_error(k: Any) -> Array:
    """How far Stirling's formula for log k! is off: from the table, or its next three terms."""
    table = jnp.asarray(np.array(_STIRLING_ERRORS), k.dtype)
    low = jnp.clip(k, 0.0, 9.0)
    square = (low + 1) * (low + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (low + 1)
    at = lax.convert_element_type(jnp.floor(low), np.int32)
    return jnp.where(k <= 9, table[at], series)


# ---- multinomial -------------------------------------------------------------------------------
def multinomial(key: Key, n: ArrayLike, p: ArrayLike, *, shape: Any = None,
                dtype: DTypeLike | None = None, unroll: int | bool = 1) -> Array:  # fmt: skip
    """Counts of each outcome in n trials, as floats.

    key     a key, used up.
    n       number of trials, of the shape of p without its last axis.
    p       probabilities of the outcomes, along the last axis.
    shape   of the result without its last axis, which is of the outcomes; by default as in p.
    dtype   a float dtype; by default float32, or float64 with enable_x64.
    unroll  how many steps of the loop over outcomes to write out; True: all.

    Raises ValueError for another dtype and for shapes that don't fit.

    >>> float(lamina.random.multinomial(lamina.random.key(0), 10, jnp.array([0.2, 0.3, 0.5])).sum())
    10.0
    """
    words = single_key("multinomial", key)
    check_arraylike("multinomial", n, p)
    n, p = promote_inexact(n, p)
    dims = np.shape(p) if shape is None else (*as_shape(shape), np.shape(p)[-1])
    to = float_dtype("multinomial", dtype)
    return _multinomial(words, n, p, shape=dims, dtype=to, unroll=unroll)


@compiled(static=("shape", "dtype", "unroll"))
def _multinomial(words: Any, n: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype,
                 unroll: int | bool) -> Array:  # fmt: skip
    n, p = broadcast_to_shape(n, shape[:-1]), broadcast_to_shape(p, shape)
    p = jnp.moveaxis(p, -1, 0)
    remaining = lax.cumsum(p, 0, reverse=True)
    ratios = p / jnp.where(remaining == 0, 1, remaining)

    def step(left: Any, given: Any) -> Any:
        ratio, key = given
        count = _binomial(key, left, jnp.clip(ratio, 0, 1), shape=shape[:-1], dtype=left.dtype)
        return left - count, count

    keys = stacked_words(words, ratios.shape[0])
    counts = lax.scan(step, n, (ratios, keys), unroll=unroll)[1]
    return lax.convert_element_type(jnp.moveaxis(counts, 0, -1), dtype)
