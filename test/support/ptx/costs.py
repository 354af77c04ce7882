"""What accesses cost: sectors of global memory, and how often lanes meet in a bank of shared memory."""

from __future__ import annotations

import numpy as np

_SECTOR, _BANKS, _BANK = 32, 32, 4


def sectors(place: np.ndarray, warp: np.ndarray) -> int:
    """How many pieces of 32 bytes the warps touch, each at a time."""
    return int(np.unique(np.stack([warp, place // _SECTOR]), axis=1).shape[1])


def conflicts(place: np.ndarray, size: int, warp: np.ndarray, lane: np.ndarray) -> int:
    """How many times more than once the lanes that are served together, for 128 bytes at most, meet in a bank with
    different words."""
    words = max(1, size // _BANK)
    part = lane // (_BANKS // words)
    word = (place // _BANK)[:, None] + np.arange(words)
    turn = np.broadcast_to((warp * _BANKS + part)[:, None], word.shape)
    turns, words_in = np.unique(np.stack([turn.reshape(-1), word.reshape(-1)]), axis=1)
    banks, count = np.unique(turns * _BANKS + words_in % _BANKS, return_counts=True)
    served = banks // _BANKS
    _, first = np.unique(served, return_index=True)
    most = np.maximum.reduceat(count, first)
    return int((most - 1).sum())
