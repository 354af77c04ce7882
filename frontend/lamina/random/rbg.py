"""The generators "rbg" and "unsafe_rbg": keys of four words, bits by lax.rng_bit_generator.

They are for targets whose own generator is fast. Keys of "rbg" are split and folded as two of
threefry2x32 side by side; those of "unsafe_rbg" by the generator itself, whose tenth numbers serve
for a hash. Under vmap, numbers are drawn for a whole batch under its first key: what each element of
the batch is given differs from a call of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import tree
from lamina.vmap import vmap

_UINT32 = np.dtype(np.uint32)
_ROUNDS = 10


class RbgWords:
    """The words of a key, uint32[4], or along leading axes of several; safe means "rbg"."""

    __slots__ = ("safe", "words")

    def __init__(self, words: Any, safe: bool) -> None:
        self.words, self.safe = words, safe

    def unstack(self) -> list[RbgWords]:
        """The keys along the first axis."""
        return [RbgWords(w, self.safe) for w in lax.unstack(self.words)]

    def bits(self, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
        """Random unsigned integers under one key."""
        return lax.rng_bit_generator(self.words, shape, dtype)[1]

    def split(self, shape: tuple[int, ...], partitionable: bool) -> RbgWords:
        """New keys from one."""
        if self.safe:
            from lamina.random.keys import split_threefry

            halves = vmap(lambda pair: split_threefry(pair, shape, partitionable), out_axes=-2)
            return self._joined(halves(self._pairs()), shape)
        count = math.prod(shape)
        _, drawn = lax.rng_bit_generator(self.words, (_ROUNDS * count, 4), _UINT32)
        return self._joined(lax.slice_in_dim(drawn, 0, None, _ROUNDS), shape)

    def fold_in(self, data: Any) -> RbgWords:
        """A new key from one and an integer."""
        from lamina.random.keys import _seeded, fold_in_threefry

        if self.safe:
            halves = vmap(lambda pair: fold_in_threefry(pair, data))(self._pairs())
            return self._joined(halves, ())
        seed = _seeded(data)
        mixed = RbgWords(lax.concatenate([seed, seed], 0), False)
        drawn = mixed.bits(_UINT32, (_ROUNDS, 4))
        last = lax.index_in_dim(drawn, _ROUNDS - 1, 0, keepdims=False)
        return RbgWords(lax.bitwise_xor(self.words, last), False)

    def _pairs(self) -> Any:
        return lax.reshape(self.words, (2, 2))

    def _joined(self, words: Any, shape: tuple[int, ...]) -> RbgWords:
        return RbgWords(lax.reshape(words, (*shape, 4)), self.safe)


tree.register_node(
    RbgWords, lambda w: ((w.words,), w.safe), lambda safe, children: RbgWords(children[0], safe)
)


def plain(words: Any) -> Any:
    """The array of words."""
    return words.words if isinstance(words, RbgWords) else words
