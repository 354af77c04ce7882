"""Random bits, and the distributions nearest to them: uniform normal randint bernoulli."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import config, lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.lax.random_bits import threefry2x32, threefry_2x32
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    convert,
    requested_dtype,
)  # fmt: skip
from lamina.random.key_words import KeyWords
from lamina.random.keys import Key, counters, single_key, word_pair

_UINT32 = np.dtype(np.uint32)
_UNSIGNED = {bits: np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}


def float_dtype(name: str, dtype: DTypeLike | None, complex_too: bool = False) -> np.dtype:
    """The floating dtype that `dtype` asks for (None: the default one)."""
    to = requested_dtype(dtype, name, keep=dtypes.canonicalize(float))
    if not (dtypes.is_float(to) or (complex_too and to.kind == "c")):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {to.name}")
    return to


def sample_shape(name: str, shape: Any, *parameters: ArrayLike) -> tuple[int, ...]:
    """The shape of a sample: as given, if parameters broadcast to it; None: that of parameters."""
    shapes = [np.shape(p) if not hasattr(p, "shape") else tuple(p.shape) for p in parameters]
    if shape is None:
        return broadcast_shapes(*shapes)
    dims = as_shape(shape)
    for s in shapes:
        if broadcast_shapes(dims, s) != dims:
            raise ValueError(
                f"{name} requires parameters of shapes that broadcast to the sample's shape "
                f"{dims}, got {s}"
            )
    return dims


# ---- bits --------------------------------------------------------------------------------------
@takes_out_sharding
def bits(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Uniform random bits as unsigned integers.

    key           a key, used up.
    shape         of the result, a tuple of ints.
    dtype         an unsigned integer dtype; by default uint32, or uint64 with enable_x64.
    out_sharding  how the result is laid out over a mesh of devices; None: not laid out.

    Raises ValueError for another dtype.

    >>> lamina.random.bits(lamina.random.key(0), (3,), "uint8").dtype
    dtype('uint8')
    """
    words = single_key("bits", key)
    to = requested_dtype(dtype, "bits", keep=dtypes.canonicalize(np.uint64))
    if not dtypes.is_unsigned(to) or to not in _UNSIGNED.values():
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {to.name}")
    return _bits_program(words, width=to.itemsize * 8, shape=as_shape(shape),
                         partitionable=config.threefry_partitionable.value)  # fmt: skip


def random_bits(words: Any, width: int, shape: tuple[int, ...]) -> Array:
    """Random unsigned integers of 8, 16, 32 or 64 bits under the key with these words."""
    return _random_bits(words, width, shape, config.threefry_partitionable.value)


@compiled(static=("width", "shape", "partitionable"))
def _bits_program(words: Any, *, width: int, shape: tuple[int, ...], partitionable: bool) -> Array:
    return _random_bits(words, width, shape, partitionable)


def _random_bits(words: Any, width: int, shape: tuple[int, ...], partitionable: bool) -> Array:
    if isinstance(words, KeyWords):
        return words.bits(_UNSIGNED[width], shape)
    if not partitionable:
        return _random_bits_sequential(words, width, shape)
    high, low = threefry2x32(*word_pair(words), *counters(shape))
    dtype = _UNSIGNED[width]
    if width == 64:
        high, low = (lax.convert_element_type(w, dtype) for w in (high, low))
        return lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)
    mixed = lax.bitwise_xor(high, low)
    return mixed if width == 32 else lax.convert_element_type(mixed, dtype)


def _random_bits_sequential(words: Any, width: int, shape: tuple[int, ...]) -> Array:
    """The older scheme: counters run through the words that are needed, not through elements."""
    size, dtype = math.prod(shape), _UNSIGNED[width]
    needed = -(-width * size // 32)
    blocks = threefry_2x32(word_pair(words), lax.iota(_UINT32, needed))
    if width == 64:
        high, low = (
            lax.convert_element_type(lax.slice(blocks, (i * size,), ((i + 1) * size,)), dtype)
            for i in (0, 1)
        )
        return lax.reshape(lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low), shape)
    if width < 32:
        per_word = 32 // width
        shifts = lax.mul(np.uint32(width), lax.broadcasted_iota(_UINT32, (per_word, 1), 0))
        spread = broadcast_to_shape(lax.reshape(blocks, (1, needed)), (per_word, needed))
        parts = lax.shift_right_logical(spread, broadcast_to_shape(shifts, (per_word, needed)))
        blocks = lax.convert_element_type(
            lax.reshape(lax.transpose(parts, (1, 0)), (needed * per_word,)), dtype
        )
        blocks = lax.slice(blocks, (0,), (size,))
    return lax.reshape(blocks, shape)


# ---- uniform and normal ------------------------------------------------------------------------
@takes_out_sharding
def uniform(key: Key, shape: Any = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0,
            maxval: ArrayLike = 1.0) -> Array:  # fmt: skip
    """Floats uniform in [minval, maxval).

    key           a key, used up.
    shape         of the result, a tuple of ints.
    dtype         a float dtype; by default float32, or float64 with enable_x64.
    minval        the least: numbers or an array that fits `shape`.
    maxval        the bound above, likewise.
    out_sharding  how the result is laid out over a mesh of devices; None: not laid out.

    Raises ValueError for another dtype.

    >>> x = lamina.random.uniform(lamina.random.key(0), (100,), minval=2.0, maxval=3.0)
    >>> bool(x.min() >= 2), bool(x.max() < 3)
    (True, True)
    """
    words = single_key("uniform", key)
    to = float_dtype("uniform", dtype)
    check_arraylike("uniform", minval, maxval)
    dims = sample_shape("uniform", as_shape(shape), minval, maxval)
    return _uniform(words, minval, maxval, shape=dims, dtype=to)


def random_uniform(words: Any, shape: tuple[int, ...], dtype: np.dtype, minval: Any = 0.0,
                   maxval: Any = 1.0) -> Array:  # fmt: skip
    """uniform, within a program."""
    info = dtypes.finfo(dtype)
    width, mantissa = info.bits, info.nmant
    drawn = 8 if mantissa < 8 else width
    unsigned = _UNSIGNED[width]
    random = random_bits(words, drawn, shape)
    if drawn != width:
        random = lax.convert_element_type(random, unsigned)
    # Random mantissas under the exponent of 1.0 are uniform in [1, 2).
    one = np.ones((), dtype)
    mantissas = lax.shift_right_logical(random, np.asarray(drawn - mantissa, unsigned)[()])
    floats = lax.bitcast_convert_type(lax.bitwise_or(mantissas, one.view(unsigned)[()]), dtype)
    floats = lax.sub(floats, one[()])
    low, high = convert(minval, dtype), convert(maxval, dtype)
    if isinstance(low, np.generic) and isinstance(high, np.generic) and low == 0 and high == 1:
        return floats
    low, high = (x if not np.shape(x) else broadcast_to_shape(x, shape) for x in (low, high))
    scale = (
        np.subtract(high, low)
        if isinstance(low, np.generic) and isinstance(high, np.generic)
        else (lax.sub(high, low))
    )
    return lax.max(low, lax.add(lax.mul(floats, scale), low))


@compiled(static=("shape", "dtype"))
def _uniform(
    words: Any, minval: Any, maxval: Any, *, shape: tuple[int, ...], dtype: np.dtype
) -> Array:
    return random_uniform(words, shape, dtype, minval, maxval)


@takes_out_sharding
def normal(key: Key, shape: Any = (), dtype: DTypeLike | None = None) -> Array:
    """Normal numbers of mean 0 and variance 1 (complex ones: of both parts together).

    key           a key, used up.
    shape         of the result, a tuple of ints.
    dtype         a float or complex dtype; by default float32, or float64 with enable_x64.
    out_sharding  how the result is laid out over a mesh of devices; None: not laid out.

    Raises ValueError for another dtype.

    >>> lamina.random.normal(lamina.random.key(0), (2, 3)).shape
    (2, 3)
    """
    words = single_key("normal", key)
    return _normal(
        words, shape=as_shape(shape), dtype=float_dtype("normal", dtype, complex_too=True)
    )


def at_least_f32(dtype: np.dtype) -> np.dtype:
    """What approximate samplers compute in: a float dtype, or float32 where that is narrower."""
    return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)


def is_approximate(name: str, method: str) -> bool:
    """The `method` argument of a sampler. Raises ValueError where it is none."""
    if method not in ("exact", "approximate"):
        raise ValueError(
            f"method argument to `{name}` must be one of {{'exact', 'approximate'}}, got {method!r}"
        )
    return method == "approximate"


def random_normal(words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """normal, within a program."""
    if dtype.kind == "c":
        real = dtypes.real_dtype(dtype)
        parts = [random_normal(w, shape, real) for w in split_words(words, 2)]
        root = np.asarray(np.sqrt(2)).astype(real)[()]
        return lax.complex(*(lax.div(p, root) for p in parts))
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    drawn = random_uniform(words, shape, dtype, low[()], np.ones((), dtype)[()])
    return lax.mul(np.asarray(np.sqrt(2)).astype(dtype)[()], lax.erf_inv(drawn))


def split_words(words: Any, count: int) -> list[Any]:
    """New keys from one, as words, within a program."""
    found = stacked_words(words, count)
    if isinstance(found, KeyWords):
        return found.unstack()
    return [lax.index_in_dim(found, i, 0, keepdims=False) for i in range(count)]


def stacked_words(words: Any, count: int) -> Any:
    """The same keys, along the first axis of one array of words (or KeyWords)."""
    from lamina.random.keys import _split

    return _split(words, shape=(count,), partitionable=config.threefry_partitionable.value)


@compiled(static=("shape", "dtype"))
def _normal(words: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    return random_normal(words, shape, dtype)


# ---- integers and booleans ---------------------------------------------------------------------
@takes_out_sharding
def randint(
    key: Key, shape: Any, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None
) -> Array:
    """Integers uniform in [minval, maxval); minval where maxval is not greater.

    key           a key, used up.
    shape         of the result, a tuple of ints.
    minval        the least: integers or an array of them that fits `shape`; of floats the whole part.
    maxval        the bound above, likewise.
    dtype         an integer dtype; by default int32, or int64 with enable_x64.
    out_sharding  how the result is laid out over a mesh of devices; None: not laid out.

    Raises TypeError for another dtype.

    >>> x = lamina.random.randint(lamina.random.key(0), (100,), 0, 10)
    >>> bool(x.min() >= 0), bool(x.max() < 10)
    (True, True)
    """
    words = single_key("randint", key)
    to = requested_dtype(dtype, "randint", keep=dtypes.canonicalize(int))
    if not dtypes.is_integer(to):
        raise TypeError(f"randint only accepts integer dtypes, got {to.name}")
    check_arraylike("randint", minval, maxval)
    minval, maxval = (
        x if dtypes.is_integer(get_aval(x).dtype) else lax.convert_element_type(x, dtypes.canonicalize(int))
        for x in (minval, maxval)
    )
    dims = sample_shape("randint", as_shape(shape), minval, maxval)
    return _randint(words, minval, maxval, shape=dims, dtype=to)


@compiled(static=("shape", "dtype"))
def _randint(
    words: Any, minval: Any, maxval: Any, *, shape: tuple[int, ...], dtype: np.dtype
) -> Array:
    return random_integers(words, shape, minval, maxval, dtype)


def random_integers(
    words: Any, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: np.dtype
) -> Array:
    """randint, within a program."""
    info = dtypes.iinfo(dtype)
    if dtype.itemsize < 4:  # drawn as int32, whose range holds the end of theirs
        bounds = (_clipped(minval, info.min, info.max), _clipped(maxval, info.min, info.max + 1))
        drawn = random_integers(words, shape, *bounds, np.dtype(np.int32))
        return lax.convert_element_type(drawn, dtype)
    width, unsigned = dtype.itemsize * 8, _UNSIGNED[dtype.itemsize * 8]
    beyond = dtypes.iinfo(get_aval(maxval).dtype).max > info.max
    low, high = (
        broadcast_to_shape(convert(_clipped(x, info.min, info.max), dtype), shape)
        for x in (minval, maxval)
    )
    more, less = (random_bits(w, width, shape) for w in split_words(words, 2))
    one = np.ones((), unsigned)[()]
    span = lax.convert_element_type(lax.sub(high, low), unsigned)
    span = jnp.where(jnp.less_equal(high, low), one, span)
    if beyond:  # the greatest value is to be drawn too
        widened = jnp.logical_and(jnp.greater(maxval, info.max), jnp.greater(high, low))
        span = jnp.where(widened, lax.add(span, one), span)
    # The remainder of a number of twice the width: (2**width % span) * more + less, modulo span.
    half = np.asarray(2 ** (width // 2), unsigned)[()]
    factor = lax.rem(broadcast_to_shape(half, shape), span)
    factor = lax.rem(lax.mul(factor, factor), span)
    offset = lax.add(lax.mul(lax.rem(more, span), factor), lax.rem(less, span))
    return lax.add(low, lax.convert_element_type(lax.rem(offset, span), dtype))


def _clipped(x: Any, low: int, high: int) -> Any:
    """An integer kept between two bounds, as far as its own dtype reaches them."""
    have = get_aval(x).dtype
    own = dtypes.iinfo(have)
    if type(x) is int:
        return min(max(x, low), high)
    return jnp.clip(x, have.type(max(low, own.min)), have.type(min(high, own.max)))


@takes_out_sharding
def bernoulli(key: Key, p: ArrayLike = 0.5, shape: Any = None, mode: str = "low") -> Array:
    """Booleans, True with probability p.

    key           a key, used up.
    p             numbers or an array of floats that fits `shape`.
    shape         of the result; by default that of p.
    mode          "low"; or "high", which resolves small p more finely.
    out_sharding  how the result is laid out over a mesh of devices; None: not laid out.

    Raises TypeError for a p that is not of floats, ValueError for another mode.

    >>> lamina.random.bernoulli(lamina.random.key(0), 1.0, (3,)).tolist()
    [True, True, True]
    """
    words = single_key("bernoulli", key)
    check_arraylike("bernoulli", p)
    if mode not in ("low", "high"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    to = get_aval(p).dtype
    if not dtypes.is_float(to):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {to.name}.")
    dims = sample_shape("bernoulli", None if shape is None else as_shape(shape), p)
    return _bernoulli(words, convert(p, to), shape=dims, high=mode == "high")


@compiled(static=("shape", "high"))
def _bernoulli(words: Any, p: Any, *, shape: tuple[int, ...], high: bool) -> Array:
    dtype = get_aval(p).dtype
    p = broadcast_to_shape(p, shape)
    if not high:
        return lax.lt(random_uniform(words, shape, dtype), p)
    coarse, fine = (
        lax.index_in_dim(random_uniform(words, (2, *shape), dtype), i, 0, keepdims=False)
        for i in (0, 1)
    )
    unit = np.asarray(2.0 ** -dtypes.finfo(dtype).nmant).astype(dtype)[()]
    return lax.lt(lax.mul(fine, unit), lax.sub(p, coarse))
