"""The words of a key of another generator than threefry2x32, and what is done with them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from lamina import lax


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class KeyWords:
    """The words of a key, uint32[n], or along leading axes those of several; the generator's name."""

    words: Any
    impl: str

    def unstack(self) -> list[KeyWords]:
        """The keys along the first axis."""
        return [type(self)(w, self.impl) for w in lax.unstack(self.words)]

    def bits(self, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
        """Random unsigned integers under one key."""
        raise NotImplementedError

    def split(self, shape: tuple[int, ...], partitionable: bool) -> KeyWords:
        """New keys from one."""
        raise NotImplementedError

    def fold_in(self, data: Any) -> KeyWords:
        """A new key from one and an integer."""
        raise NotImplementedError


def plain(words: Any) -> Any:
    """The array of words."""
    return words.words if isinstance(words, KeyWords) else words
