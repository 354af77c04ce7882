"""Random order and random choice: permutation choice categorical."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.library import library
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    convert,
)  # fmt: skip
from lamina.random.distributions import random_gumbel
from lamina.random.keys import Key, single_key
from lamina.random.sampling import random_bits, random_integers, random_uniform, split_words


@takes_out_sharding
def permutation(key: Key, x: int | ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """x with its slices along an axis in random order.

    key          a key, used up.
    x            an array, or an int for arange(x).
    axis         along which x is taken apart.
    independent  each vector along the axis in an order of its own.

    Raises TypeError for a scalar that is no integer, ValueError for an axis that x does not have.

    >>> sorted(lamina.random.permutation(lamina.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    words = single_key("permutation", key)
    check_arraylike("permutation", x)
    if not np.shape(x):
        if not dtypes.is_integer(jnp.asarray(x).dtype):
            raise TypeError("x must be an integer or at least 1-dimensional")
        count = operator.index(concrete_or_error(x, "argument x of permutation must be known")[()])
        canonical_axis(axis, 1)
        return _shuffled(words, jnp.arange(count), axis=0)
    at = canonical_axis(axis, np.ndim(x))
    if independent or np.ndim(x) == 1:
        return _shuffled(words, x, axis=at)
    return _permuted(words, x, axis=at)


@compiled(static=("axis",))
def _permuted(words: Any, x: Any, *, axis: int) -> Array:
    order = random_order(words, jnp.arange(x.shape[axis]), 0)
    return jnp.take(x, order, axis, unique_indices=True)


@compiled(static=("axis",))
def _shuffled(words: Any, x: Any, *, axis: int) -> Array:
    return random_order(words, jnp.asarray(x), axis)


def random_order(words: Any, x: Array, axis: int) -> Array:
    """x sorted by random keys, often enough that equal keys hardly matter."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(np.iinfo(np.uint32).max))
    for _ in range(rounds):
        words, sub = split_words(words, 2)
        x = lax.sort_key_val(random_bits(sub, 32, x.shape), x, axis)[1]
    return x


def choice(
    key: Key,
    a: int | ArrayLike,
    shape: Any = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random slices of a along an axis.

    key      a key, used up.
    a        an array, or an int for arange(a).
    shape    of the sample; it takes the place of the axis in the shape of a.
    replace  the same slice may come more than once.
    p        probabilities of the slices, a vector; by default all alike.
    axis     along which a is taken apart.
    mode     precision of the draws with p, "low" or "high"; None: as configured.

    Raises ValueError for more slices than there are without `replace`, and for a p of another size.

    >>> x = lamina.random.choice(lamina.random.key(0), 5, (3,), replace=False)
    >>> len(set(x.tolist()))
    3
    """
    words = single_key("choice", key)
    check_arraylike("choice", a)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of {library}.random.choice must be a sequence, got {shape}")
    dims = as_shape(shape)
    if np.ndim(a) == 0:
        count = int(concrete_or_error(a, f"The error occurred in {library}.random.choice()")[()])
        population, at, full = None, 0, dims
    else:
        population = jnp.asarray(a)
        sizes = population.shape
        at = canonical_axis(axis, len(sizes))
        count, full = sizes[at], (*sizes[:at], *dims, *sizes[at + 1 :])
    draws = math.prod(dims)
    if draws == 0:
        return jnp.zeros(full, dtypes.canonicalize(int) if population is None else population.dtype)
    if count <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > count:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {count}) when "
            "'replace=False'"
        )
    if p is not None:
        check_arraylike("choice", p)
        if tuple(np.shape(p)) != (count,):
            raise ValueError(
                f"p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                f"{tuple(np.shape(p))} and a.shape[axis] is {count}."
            )
        p = convert(p, dtypes.inexact_dtype(jnp.asarray(p).dtype))
    out = _choice(
        words, population, p, count=count, shape=dims, replace=bool(replace), axis=at, high=mode == "high"
    )
    return lax.reshape(out, full)


@compiled(static=("count", "shape", "replace", "axis", "high"))
def _choice(
    words: Any,
    a: Any,
    p: Any,
    *,
    count: int,
    shape: tuple[int, ...],
    replace: bool,
    axis: int,
    high: bool,
) -> Array:
    to = dtypes.canonicalize(int)
    draws = math.prod(shape)
    if p is None:
        if not replace:
            if a is None:
                order = random_order(words, jnp.arange(count), 0)
            elif len(a.shape) == 1:
                return lax.slice_in_dim(random_order(words, a, 0), 0, draws)
            else:
                order = random_order(words, jnp.arange(count), 0)
            index = lax.slice_in_dim(order, 0, draws)
        else:
            index = random_integers(words, shape, 0, count, to)
    elif replace:
        sums = jnp.cumsum(p)
        target = lax.sub(np.ones((), sums.dtype)[()], random_uniform(words, shape, sums.dtype))
        index = jnp.searchsorted(
            sums, lax.mul(lax.index_in_dim(sums, count - 1, 0, keepdims=False), target)
        )
    else:
        scores = lax.add(random_gumbel(words, (count,), p.dtype, high), lax.log(p))
        index = lax.convert_element_type(lax.top_k(scores, draws)[1], to)
    if a is None:
        return index
    return jnp.take(a, index, axis)


@takes_out_sharding
def categorical(
    key: Key,
    logits: ArrayLike,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Indices along an axis, each with probability softmax(logits), as integers.

    key      a key, used up.
    logits   logarithms of the probabilities, up to a constant.
    axis     along which they lie.
    shape    of the result; it ends with what the shape of logits without the axis broadcasts to, by
             default it is that. What stands before is drawn anew.
    replace  False: what is drawn anew differs from what was drawn.
    mode     precision of the draws, "low" or "high"; None: as configured.

    Raises ValueError for a shape that logits don't fit and for more indices than there are.

    >>> logits = jnp.array([0.0, -jnp.inf, -jnp.inf])
    >>> lamina.random.categorical(lamina.random.key(0), logits, shape=(3,)).tolist()
    [0, 0, 0]
    """
    words = single_key("categorical", key)
    check_arraylike("categorical", logits)
    logits = jnp.asarray(logits)
    at = canonical_axis(axis, len(logits.shape))
    batch = (*logits.shape[:at], *logits.shape[at + 1 :])
    dims = batch if shape is None else as_shape(shape)
    new = len(dims) - len(batch)
    prefix, own = dims[: max(new, 0)], dims[max(new, 0) :]
    if new < 0 or any(n not in (1, m) for n, m in zip(batch, own, strict=True)):
        raise ValueError(
            f"categorical requires shape to end with {batch}, the shape of logits without the axis, or what "
            f"it broadcasts to; got {dims}"
        )
    logits = jnp.broadcast_to(logits, (*own[:at], logits.shape[at], *own[at:]))
    if not replace and math.prod(prefix) > logits.shape[at]:
        raise ValueError(
            f"Number of samples without replacement ({math.prod(prefix)}) cannot exceed number of "
            f"categories ({logits.shape[at]})."
        )
    return _categorical(
        words, logits, axis=at, prefix=prefix, replace=bool(replace), high=mode == "high"
    )


@compiled(static=("axis", "prefix", "replace", "high"))
def _categorical(
    words: Any, logits: Any, *, axis: int, prefix: tuple[int, ...], replace: bool, high: bool
) -> Array:
    logits = convert(logits, dtypes.inexact_dtype(logits.dtype))
    if replace:
        noise = random_gumbel(words, (*prefix, *logits.shape), logits.dtype, high)
        scores = lax.add(noise, lax.expand_dims(logits, tuple(range(len(prefix)))))
        return jnp.argmax(scores, axis + len(prefix))
    scores = lax.add(logits, random_gumbel(words, logits.shape, logits.dtype, high))
    last = jnp.moveaxis(scores, axis, -1)
    index = lax.top_k(last, math.prod(prefix))[1]
    index = jnp.moveaxis(lax.convert_element_type(index, dtypes.canonicalize(int)), -1, 0)
    return lax.reshape(index, (*prefix, *index.shape[1:]))
