"""Keys: what pseudo-random numbers are made from, and how new ones are derived.

A key is two 32-bit words (one or four, for some of the generators in random.rbg and
random.counter_based). It is held either raw, as
uint32[..., 2] (PRNGKey), or in a KeyArray (key), which hides the words so that they are not computed
with by mistake. Every function here takes both. A KeyArray is an array of dtype key<fry>: a leaf of
pytrees, which all transformations take, and which is moved (indexed, stacked, selected) and
compared, but not computed with.
"""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

import numpy as np

from lamina import config, lax
from lamina import numpy as jnp
from lamina.array import ArrayImpl
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval, is_array_like
from lamina.key_array import KeyArray
from lamina.lax.random_bits import threefry2x32, threefry_2x32
from lamina.lax.random_keys import random_unwrap, random_wrap
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, user_depth
from lamina.random.counter_based import GENERATORS, CounterWords, seeded
from lamina.random.key_words import KeyWords, plain
from lamina.random.rbg import RbgWords

_UINT32 = np.dtype(np.uint32)


Key = KeyArray | ArrayLike


def is_key(x: Any) -> bool:
    """Whether x is an array of typed keys."""
    return is_array_like(x) and dtypes.is_key(get_aval(x).dtype)


def _wrapped(words: Any, dtype: dtypes.KeyDType) -> Any:
    words = plain(words)
    if type(words) is ArrayImpl:
        return KeyArray(words, dtype=dtype)
    return random_wrap(words, dtype)


def key_dtype(impl_spec: Any = None) -> dtypes.KeyDType:
    """The dtype of the keys of a generator.

    impl_spec  the name of the generator, or that dtype itself; None: the default generator.

    Raises ValueError for an unknown name, TypeError for what is no name.

    >>> lamina.random.key_dtype("threefry2x32") == lamina.random.key(0).dtype
    True
    """
    if impl_spec is None:
        impl_spec = config.default_prng_impl.value
    if isinstance(impl_spec, dtypes.KeyDType):
        return impl_spec
    if not isinstance(impl_spec, str):
        raise TypeError(f"unrecognized type {type(impl_spec)} for specifying PRNG implementation.")
    if impl_spec not in dtypes.KEYS:
        known = ", ".join(f'"{name}"' for name in dtypes.KEYS)
        raise ValueError(
            f'unrecognized PRNG implementation "{impl_spec}". Did you mean one of: {known}?'
        )
    return dtypes.KEYS[impl_spec]


# ---- making keys -------------------------------------------------------------------------------
def key(seed: int | ArrayLike, *, impl: str | None = None, dtype: Any = None) -> KeyArray:
    """A typed key from an integer.

    seed   an integer scalar.
    impl   the generator: "threefry2x32", "rbg", "unsafe_rbg", ...; by default as configured.
    dtype  the same as a dtype of keys, in place of impl.

    Raises TypeError for a seed that is no integer scalar, ValueError for an unknown generator.

    >>> lamina.random.key(42).shape
    ()
    """
    to = key_dtype(_one_of("key", impl, dtype))
    return _wrapped(_seed_words("key", seed, to), to)


def _one_of(name: str, impl: Any, dtype: Any) -> Any:
    if dtype is None:
        return impl
    if impl is not None:
        raise ValueError(
            f"Cannot specify both `impl` and `dtype` arguments to {library}.random.{name}"
        )
    return dtype


def PRNGKey(seed: int | ArrayLike, *, impl: str | None = None) -> Array:
    """A raw key, the words of `key` as uint32[2].

    seed  an integer scalar. Without x64 only its lower 32 bits count.
    impl  the generator: "threefry2x32", "rbg", "unsafe_rbg", ...; by default as configured.

    "rbg" and "unsafe_rbg" take these two words twice, the counter-based generators a hash of them.

    With the setting enable_custom_prng it is a typed one, as from `key`.

    Raises TypeError for a seed that is no integer scalar, OverflowError beyond 64 bits.

    >>> lamina.random.PRNGKey(42).tolist()
    [0, 42]
    """
    to = key_dtype(impl)
    words = _seed_words("PRNGKey", seed, to)
    return _wrapped(words, to) if config.enable_custom_prng.value else words


def _seed_words(function: str, seed: Any, to: dtypes.KeyDType) -> Array:
    hashed = to.impl in GENERATORS
    repeated = 1 if hashed else to.words // 2
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        value = int(seed)
        if not -(2**63) <= value < 2**63 and not isinstance(seed, np.uint64):
            raise OverflowError("Python int too large to convert to C long")
        bits = value % 2**64
        wide = config.enable_x64.value and np.asarray(seed).dtype.itemsize == 8
        high = bits >> 32 if wide else 0
        words = jnp.asarray(np.array([high, bits % 2**32] * repeated, np.uint32))
        return _hashed(words, impl=to.impl) if hashed else words
    if is_array_like(seed) and (get_aval(seed).shape or is_key(seed)):
        shown = "keys" if is_key(seed) else get_aval(seed).str_short()
        raise TypeError(
            f"{function} accepts a scalar seed, but was given {shown}. Use {library}.vmap for several seeds"
        )
    if not is_array_like(seed) or not dtypes.is_integer(get_aval(seed).dtype):
        shown = get_aval(seed).str_short() if is_array_like(seed) else repr(seed)
        raise TypeError(f"PRNG key seed must be an integer; got {shown}")
    pair = _seeded(seed)
    if hashed:
        return _hashed(pair, impl=to.impl)
    return pair if repeated == 1 else lax.concatenate([pair, pair], 0)


@compiled
def _seeded(seed: Any) -> Array:
    seed = jnp.asarray(seed)
    if seed.dtype.itemsize == 8:
        high = lax.shift_right_logical(seed, np.asarray(32, seed.dtype)[()])
    else:
        high = jnp.zeros((), _UINT32)
    words = [lax.convert_element_type(w, _UINT32) for w in (high, seed)]
    return lax.concatenate([lax.reshape(w, (1,)) for w in words], 0)


@compiled(static=("impl",))
def _hashed(pair: Any, *, impl: str) -> Array:
    return seeded(impl, pair)


def key_data(keys: Key) -> Array:
    """The words of keys, uint32[..., 2] (or 1, or 4).

    keys  typed or raw keys.

    Raises TypeError for what is no key.

    >>> lamina.random.key_data(lamina.random.key(42)).tolist()
    [0, 42]
    """
    if type(keys) is KeyArray:
        return keys.words
    return random_unwrap(keys) if is_key(keys) else _raw_words(keys, key_dtype())


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | None = None, dtype: Any = None
) -> KeyArray:
    """The typed keys with these words.

    key_bits_array  uint32[..., n], n words a key.
    impl            the generator: "threefry2x32", "rbg", "unsafe_rbg"; by default as configured.
    dtype           the same as a dtype of keys, in place of impl.

    Raises TypeError for words of another dtype or number.

    >>> lamina.random.wrap_key_data(jnp.zeros((5, 2), "uint32")).shape
    (5,)
    """
    to = key_dtype(_one_of("wrap_key_data", impl, dtype))
    return _wrapped(_checked_words(key_bits_array, to), to)


def key_impl(keys: Key) -> str:
    """The name of the generator that keys are for.

    keys  typed or raw keys.

    >>> lamina.random.key_impl(lamina.random.key(0, impl="rbg"))
    'rbg'
    """
    return _dtype_of(keys).impl


def _dtype_of(keys: Key) -> dtypes.KeyDType:
    if is_key(keys):
        return get_aval(keys).dtype  # type: ignore[return-value]
    dtype = key_dtype()
    _raw_words(keys, dtype)
    return dtype


def clone(key: Key) -> Key:
    """The same key, to be used once more on purpose.

    key  a key.

    >>> key = lamina.random.key(7)
    >>> bool(lamina.random.clone(key) == key)
    True
    """
    return key


def _raw_words(words: Any, dtype: dtypes.KeyDType) -> Array:
    """The words of raw keys, where the setting legacy_prng_key has them."""
    checked = _checked_words(words, dtype)
    if config.legacy_prng_key.value != "allow":
        message = (
            f"Legacy uint32 key array passed as key to {library}.random function. Please create keys "
            f"using {library}.random.key(). If use of a raw key array was intended, set "
            'legacy_prng_key="allow".'
        )
        if config.legacy_prng_key.value == "error":
            raise ValueError(message)
        warnings.warn(message, stacklevel=user_depth())
    return checked


def _checked_words(words: Any, dtype: dtypes.KeyDType) -> Array:
    if not is_array_like(words):
        raise TypeError(
            f"unexpected PRNG key type {type(words)}: the first argument is a key, as "
            f"{library}.random.key(seed) makes it"
        )
    aval = get_aval(words)
    if aval.dtype != _UINT32:
        raise TypeError(
            f"{library.name} encountered invalid PRNG key data: expected key_data.dtype to be uint32; "
            f"got dtype={aval.dtype.name}. {library}.random.key(seed) makes a key of a number."
        )
    if not aval.shape or aval.shape[-1] != dtype.words:
        raise TypeError(
            f"{library.name} encountered invalid PRNG key data: expected key_data.shape to end with "
            f"({dtype.words},); got shape={aval.shape} for impl={dtype.impl}"
        )
    return jnp.asarray(words)


def single_key(name: str, key: Any) -> Any:
    """The words of one key, for a function that takes no more than one: an array, or KeyWords."""
    words = key_data(key)
    if len(words.shape) != 1:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape "
                         f"{words.shape[:-1]} != (). Use {library}.vmap for batching.")  # fmt: skip
    impl = _dtype_of(key).impl
    if impl == "threefry2x32":
        return words
    return (CounterWords if impl in GENERATORS else RbgWords)(words, impl)


def like(key: Any, words: Any) -> Any:
    """Words as keys of the kind that `key` is of."""
    return _wrapped(words, get_aval(key).dtype) if is_key(key) else plain(words)  # type: ignore[arg-type]


# ---- deriving keys -----------------------------------------------------------------------------
def split(key: Key, num: int | tuple[int, ...] = 2) -> Array:
    """New keys from one.

    key  a key, used up.
    num  how many, or the shape of the array of them.

    Raises TypeError for what is no key or a negative size, ValueError for an array of keys.

    >>> key, sub = lamina.random.split(lamina.random.key(0))
    >>> lamina.random.split(key, (2, 3)).shape
    (2, 3)
    """
    words = single_key("split", key)
    shape = (
        tuple(operator.index(n) for n in num)
        if isinstance(num, (tuple, list))
        else (operator.index(num),)
    )
    return like(key, _split(words, shape=shape, partitionable=config.threefry_partitionable.value))


@compiled(static=("shape", "partitionable"))
def _split(words: Any, *, shape: tuple[int, ...], partitionable: bool) -> Any:
    if isinstance(words, KeyWords):
        return words.split(shape, partitionable)
    return split_threefry(words, shape, partitionable)


def split_threefry(words: Any, shape: tuple[int, ...], partitionable: bool) -> Array:
    """New keys of threefry2x32 from one, within a program: their words."""
    first, second = word_pair(words)
    if not partitionable:
        count = lax.iota(_UINT32, 2 * math.prod(shape))
        return lax.reshape(threefry_2x32((first, second), count), (*shape, 2))
    parts = threefry2x32(first, second, *counters(shape))
    return lax.concatenate([lax.expand_dims(p, (len(shape),)) for p in parts], len(shape))


def word_pair(words: Any) -> tuple[Array, Array]:
    """The two words of a key as scalars."""
    first, second = (lax.index_in_dim(words, i, 0, keepdims=False) for i in (0, 1))
    return first, second


def counters(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The position of each element in a shape as two 32-bit words, the high one first."""
    size = math.prod(shape)
    if size < 2**32:
        low = lax.reshape(lax.iota(_UINT32, size), shape)
        return lax.full(shape, 0, _UINT32), low
    high, low = lax.full(shape, 0, _UINT32), lax.full(shape, 0, _UINT32)
    stride = 1
    for axis in reversed(range(len(shape))):
        # position += index * stride, in 64 bits held as two words
        index = lax.broadcasted_iota(_UINT32, shape, axis)
        part_high, part_low = _wide_product(index, stride)
        total = lax.add(low, part_low)
        carry = lax.convert_element_type(lax.lt(total, low), _UINT32)
        high, low = lax.add(lax.add(high, part_high), carry), total
        stride *= shape[axis]
    return high, low


def _wide_product(x: Array, factor: int) -> tuple[Array, Array]:
    """The high and low words of uint32 x times an integer below 2**64."""
    mask = np.uint32(0xFFFF)
    half = np.uint32(16)
    f_low, f_high = factor % 2**32, factor >> 32 & 0xFFFFFFFF
    a, b = lax.bitwise_and(x, mask), lax.shift_right_logical(x, half)
    c, d = np.uint32(f_low & 0xFFFF), np.uint32(f_low >> 16)
    low = lax.mul(a, c)
    middle1, middle2 = lax.mul(a, d), lax.mul(b, c)
    middle = lax.add(lax.shift_right_logical(low, half), lax.bitwise_and(middle1, mask))
    middle = lax.add(middle, lax.bitwise_and(middle2, mask))
    high = lax.add(lax.mul(b, d), lax.shift_right_logical(middle1, half))
    high = lax.add(high, lax.shift_right_logical(middle2, half))
    high = lax.add(high, lax.shift_right_logical(middle, half))
    high = lax.add(high, lax.mul(x, np.uint32(f_high)))
    return high, lax.mul(x, np.uint32(f_low))


def fold_in(key: Key, data: int | ArrayLike) -> Array:
    """A new key from a key and an integer: another for each.

    key   a key, which may be folded with other integers too.
    data  an integer scalar, 0 <= data < 2**32.

    Raises OverflowError for an integer out of bounds, where it is known.

    >>> step_key = lamina.random.fold_in(lamina.random.key(0), 3)
    >>> lamina.random.uniform(step_key).shape
    ()
    """
    words = single_key("fold_in", key)
    if isinstance(data, (int, np.integer)):
        data = np.uint32(data) if isinstance(data, np.integer) else np.asarray(data, np.uint32)[()]
    elif not is_array_like(data) or get_aval(data).shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != (). "
            f"Use {library}.vmap for batching."
        )
    return like(key, _fold_in(words, data))


@compiled
def _fold_in(words: Any, data: Any) -> Any:
    if isinstance(words, KeyWords):
        return words.fold_in(data)
    return fold_in_threefry(words, data)


def fold_in_threefry(words: Any, data: Any) -> Array:
    """A new key of threefry2x32, within a program: its words."""
    count = lax.convert_element_type(data, _UINT32)
    count = lax.reshape(jnp.asarray(count), (1,))
    return threefry_2x32(word_pair(words), lax.concatenate([lax.full((1,), 0, _UINT32), count], 0))
