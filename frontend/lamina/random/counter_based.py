"""The generators "threefry4x32", "philox2x32" and "philox4x32": all numbers are hashes of a counter.

Numbers are hashed from the positions of elements in the first words of the counter, keys from theirs
in the last ones. Under vmap each element of a batch is given what a call of its own would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import tree
from lamina.lax.random_bits import philox2x32, philox4x32, threefry4x32
from lamina.random.key_words import KeyWords

_UINT32 = np.dtype(np.uint32)
_ZERO = np.uint32(0)
GENERATORS = ("threefry4x32", "philox2x32", "philox4x32")


class CounterWords(KeyWords):
    """A key of as many words as its generator has."""

    __slots__ = ()

    def bits(self, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
        from lamina.random.keys import counters

        out = _hash(self.impl, self._parts(), counters(shape), first=True)
        if dtype.itemsize == 8:
            high, low = out[:2] if self.impl != "threefry4x32" else _folded(out)
            high, low = (lax.convert_element_type(w, dtype) for w in (high, low))
            return lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)
        mixed = out[0]
        for w in out[1:]:
            mixed = lax.bitwise_xor(mixed, w)
        return lax.convert_element_type(mixed, dtype)

    def split(self, shape: tuple[int, ...], partitionable: bool) -> CounterWords:
        from lamina.random.keys import counters

        return self._made(_hash(self.impl, self._parts(), counters(shape), first=False))

    def fold_in(self, data: Any) -> CounterWords:
        data = lax.convert_element_type(data, _UINT32)
        return self._made(_hash(self.impl, self._parts(), (_ZERO, data), first=False))

    def _parts(self) -> list[Any]:
        return [lax.index_in_dim(self.words, i, -1, keepdims=False) for i in range(self._count)]

    @property
    def _count(self) -> int:
        return self.words.shape[-1]

    def _made(self, out: Sequence[Any]) -> CounterWords:
        return CounterWords(_stacked(out[: self._count]), self.impl)


tree.register_node(
    CounterWords,
    lambda w: ((w.words,), w.impl),
    lambda impl, children: CounterWords(children[0], impl),
)


def seeded(impl: str, pair: Any) -> Any:
    """The words of a key from those of a seed, the high one first."""
    high, low = (lax.index_in_dim(pair, i, -1, keepdims=False) for i in (0, 1))
    if impl == "threefry4x32":
        return _stacked(_hash(impl, (high, low, _ZERO, _ZERO), (_ZERO, _ZERO), first=True))
    count = 1 if impl == "philox2x32" else 2
    return _stacked(_hash(impl, [_ZERO] * count, (high, low), first=True)[:count])


def _hash(impl: str, key: Sequence[Any], pair: Sequence[Any], first: bool) -> list[Any]:
    """The random words for a counter with a pair of words, which are its first or its last ones."""
    if impl == "philox2x32":
        return philox2x32(key[0], pair)
    generator = threefry4x32 if impl == "threefry4x32" else philox4x32
    return generator(key, (*pair, _ZERO, _ZERO) if first else (_ZERO, _ZERO, *pair))


def _folded(out: Sequence[Any]) -> tuple[Any, Any]:
    return lax.bitwise_xor(out[0], out[2]), lax.bitwise_xor(out[1], out[3])


def _stacked(words: Sequence[Any]) -> Any:
    rank = len(words[0].shape)
    return lax.concatenate([lax.expand_dims(w, (rank,)) for w in words], rank)
