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
from lamina.random.key_words import KeyWords
from lamina.vmap import vmap

_UINT32 = np.dtype(np.uint32)
_ROUNDS = 10


class RbgWords(KeyWords):
    """A key of four words, of "rbg" or "unsafe_rbg"."""

    __slots__ = ()

    def bits(self, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
        return lax.rng_bit_generator(self.words, shape, dtype)[1]

    def split(self, shape: tuple[int, ...], partitionable: bool) -> RbgWords:
        if self.impl == "rbg":
            from lamina.random.keys import split_threefry

            halves = vmap(lambda pair: split_threefry(pair, shape, partitionable), out_axes=-2)
            return self._joined(halves(self._pairs()), shape)
        count = math.prod(shape)
        _, drawn = lax.rng_bit_generator(self.words, (_ROUNDS * count, 4), _UINT32)
        return self._joined(lax.slice_in_dim(drawn, 0, None, _ROUNDS), shape)

    def fold_in(self, data: Any) -> RbgWords:
        from lamina.random.keys import _seeded, fold_in_threefry

        if self.impl == "rbg":
            halves = vmap(lambda pair: fold_in_threefry(pair, data))(self._pairs())
            return self._joined(halves, ())
        seed = _seeded(data)
        mixed = RbgWords(lax.concatenate([seed, seed], 0), "unsafe_rbg")
        drawn = mixed.bits(_UINT32, (_ROUNDS, 4))
        last = lax.index_in_dim(drawn, _ROUNDS - 1, 0, keepdims=False)
        return RbgWords(lax.bitwise_xor(self.words, last), "unsafe_rbg")

    def _pairs(self) -> Any:
        return lax.reshape(self.words, (2, 2))

    def _joined(self, words: Any, shape: tuple[int, ...]) -> RbgWords:
        return RbgWords(lax.reshape(words, (*shape, 4)), self.impl)


tree.register_node(
    RbgWords, lambda w: ((w.words,), w.impl), lambda impl, children: RbgWords(children[0], impl)
)
