"""Counter-based generators, bit for bit as JAX defines them: threefry2x32, which is behind
lamina.random, and threefry4x32, philox2x32, philox4x32.

Threefry with 20 rounds and Philox with 10 turn a key and a counter of two or four words into as many
random words (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_DIFFERENTIABLE, NOT_LINEAR, Primitive, ShapedArray
from lamina.lax import hlo
from lamina.lax.checks import Accepted, check_accepted
from lamina.lax.elementwise_rules import (
    broadcast_shapes,
    elementwise_batching,
    spread_values,
)  # fmt: skip

_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_WORDS = Accepted(frozenset([_UINT32]), "uint32")
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_ROTATIONS_OF_FOUR = (
    (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20),
)  # fmt: skip
_PARITY = 0x1BD11BDA
_PHILOX_OF_TWO, _PHILOX_OF_FOUR = 0xD256D193, (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def threefry2x32(key1: Any, key2: Any, x1: Any, x2: Any) -> list[Any]:
    """The two random words for each counter (x1, x2) under a key: Threefry-2x32 in 20 rounds
    (Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3").

    key1, key2  the key, uint32, scalars or arrays.
    x1, x2      counters, uint32; all four broadcast.

    Gives a list of two uint32 arrays. Raises TypeError for other dtypes.

    >>> zero = jnp.uint32(0)
    >>> [hex(word) for word in lax.threefry2x32(zero, zero, zero, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    return threefry2x32_p.bind(key1, key2, x1, x2)


def threefry_2x32(keypair: tuple[Any, Any], count: Any) -> Any:
    """Random uint32 words by threefry2x32, as many as there are counters.

    keypair  the key: two uint32 scalars.
    count    counters, a uint32 array of any shape, which the result has too: its first half makes
             pairs with the second (and a 0, if the size is odd).

    Raises TypeError where counters are not uint32.

    >>> key = (jnp.uint32(0), jnp.uint32(0))
    >>> [hex(word) for word in lax.threefry_2x32(key, jnp.zeros(2, 'uint32'))]
    ['0x6b200159', '0x99ba4efe']
    """
    shape = np.shape(count)
    size = math.prod(shape)
    flat = lax.reshape(count, (size,))
    if size % 2:
        flat = lax.pad(flat, np.uint32(0), [(0, 1, 0)])
    half = (size + 1) // 2
    halves = [lax.slice(flat, (i * half,), ((i + 1) * half,)) for i in range(2)]
    out = lax.concatenate(threefry2x32(*keypair, *halves), 0)
    return lax.reshape(lax.slice(out, (0,), (size,)), shape)


def threefry4x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """Four random words for each counter of four, under a key of four words, elementwise."""
    return threefry4x32_p.bind(*key, *counter)


def philox2x32(key: Any, counter: Sequence[Any]) -> list[Any]:
    """Two random words for each counter of two, under a key of one word, elementwise."""
    return philox2x32_p.bind(key, *counter)


def philox4x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """Four random words for each counter of four, under a key of two words, elementwise."""
    return philox4x32_p.bind(*key, *counter)


Word = Callable[[int], Any]  # a constant of the result's shape


def _threefry2x32_rounds(word: Word, key1: Any, key2: Any, x1: Any, x2: Any) -> list[Any]:
    keys = [key1, key2, hlo.xor(hlo.xor(key1, key2), word(_PARITY))]
    x1, x2 = hlo.add(x1, keys[0]), hlo.add(x2, keys[1])
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x1, x2 = _mix(word, x1, x2, r)
        x1 = hlo.add(x1, keys[(group + 1) % 3])
        x2 = hlo.add(hlo.add(x2, keys[(group + 2) % 3]), word(group + 1))
    return [x1, x2]


def _mix(word: Word, a: Any, b: Any, rotation: int) -> tuple[Any, Any]:
    a = hlo.add(a, b)
    high = hlo.shift_left(b, word(rotation))
    low = hlo.shift_right_logical(b, word(32 - rotation))
    return a, hlo.xor(hlo.or_(high, low), a)


def _threefry4x32_rounds(word: Word, *operands: Any) -> list[Any]:
    keys, x = list(operands[:4]), list(operands[4:])
    parity = word(_PARITY)
    for key in keys:
        parity = hlo.xor(parity, key)
    keys.append(parity)
    x = [hlo.add(v, k) for v, k in zip(x, keys)]
    for round_ in range(20):
        for first, r in zip((0, 2), _ROTATIONS_OF_FOUR[round_ % 8]):
            second = first + 1 if round_ % 2 == 0 else 3 - first
            x[first], x[second] = _mix(word, x[first], x[second], r)
        if round_ % 4 == 3:
            group = round_ // 4 + 1
            x = [hlo.add(v, keys[(group + i) % 5]) for i, v in enumerate(x)]
            x[3] = hlo.add(x[3], word(group))
    return x


def _philox2x32_rounds(word: Word, key: Any, x1: Any, x2: Any) -> list[Any]:
    for round_ in range(10):
        if round_:
            key = hlo.add(key, word(_WEYL[0]))
        high, low = _product(x1, word(_PHILOX_OF_TWO))
        x1, x2 = hlo.xor(hlo.xor(high, x2), key), low
    return [x1, x2]


def _philox4x32_rounds(word: Word, key1: Any, key2: Any, *counter: Any) -> list[Any]:
    x = list(counter)
    for round_ in range(10):
        if round_:
            key1, key2 = hlo.add(key1, word(_WEYL[0])), hlo.add(key2, word(_WEYL[1]))
        (high0, low0), (high1, low1) = (
            _product(v, word(m)) for v, m in zip((x[0], x[2]), _PHILOX_OF_FOUR)
        )
        x = [hlo.xor(hlo.xor(high1, x[1]), key1), low1, hlo.xor(hlo.xor(high0, x[3]), key2), low0]
    return x


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """The upper and the lower word of a product of words."""
    wide = hlo.multiply(*(hlo.convert(v, _UINT64) for v in (x, y)))
    upper = hlo.shift_right_logical(wide, hlo.full(32, wide.type.shape, _UINT64))
    return hlo.convert(upper, _UINT32), hlo.multiply(x, y)


def _generator(name: str, words: int, rounds: Callable[..., list[Any]]) -> Primitive:
    """Elementwise on words, giving `words` of them by `rounds`."""

    def abstract_eval(*operands: ShapedArray) -> list[ShapedArray]:
        for i, x in enumerate(operands):
            check_accepted(name, _WORDS, x, i)
        return [ShapedArray(broadcast_shapes(name, operands), _UINT32)] * words

    def lowering(ctx: Any, *operands: Any) -> list[Any]:
        shape = ctx.avals_out[0].shape

        def word(value: int) -> Any:
            return hlo.full(value, shape, _UINT32)

        return rounds(word, *spread_values(ctx, operands))

    def batching(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[int]]:
        out, d = elementwise_batching(lambda: primitive)(args, dims)
        return out, [d] * words

    primitive: Primitive = Primitive(
        name,
        abstract_eval=abstract_eval,
        lowering=lowering,
        jvp=NOT_DIFFERENTIABLE,
        transpose=NOT_LINEAR,
        batching=batching,
        multiple_results=True,
    )
    return primitive


threefry2x32_p = _generator("threefry2x32", 2, _threefry2x32_rounds)
threefry4x32_p = _generator("threefry4x32", 4, _threefry4x32_rounds)
philox2x32_p = _generator("philox2x32", 2, _philox2x32_rounds)
philox4x32_p = _generator("philox4x32", 4, _philox4x32_rounds)
