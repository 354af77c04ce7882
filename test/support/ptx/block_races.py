"""Blocks that touch the same global memory, and which of them knows what another did.

One knows of another what that did before an atomic operation, or an access that is not weak, of a place where it does
such itself afterwards.
"""

from __future__ import annotations

import numpy as np

from support.ptx.errors import PtxError
from support.ptx.memory import Space

_MOST = 1 << 23  # memory: pieces of global memory that are noted


class BlockRaces:
    """The accesses of global memory by the blocks of a launch. A block's clock counts its atomic operations. Of those
    who read a place only the last is known."""

    def __init__(self, memory: Space, unit: int) -> None:
        self.unit = unit
        units = memory.data.size // unit
        self.writer, self.reader = np.full(units, -1), np.full(units, -1)
        self.written, self.read = np.zeros(units, np.int32), np.zeros(units, np.int32)
        self.clock: dict[int, int] = {}
        self.known: dict[int, dict[int, int]] = {}
        """By block, of others, up to when it knows what they did."""
        self.places: dict[int, dict[int, int]] = {}
        """The same by place: what is known by those who meet there."""

    @staticmethod
    def of(memory: Space, unit: int) -> BlockRaces | None:
        """None where memory is too large for it."""
        return BlockRaces(memory, unit) if memory.data.size // unit <= _MOST else None

    def meet(self, place: np.ndarray, blocks: np.ndarray) -> None:
        """Threads of these blocks do something to places by which blocks may wait for each other, in this order."""
        for at, block in zip(place.tolist(), blocks.tolist(), strict=True):
            there, mine = self.places.setdefault(at, {}), self.known.setdefault(block, {})
            there[block] = self.clock.get(block, 1)
            for other, time in there.items():
                mine[other] = max(mine.get(other, 0), time)
            there |= mine
        for block in {*blocks.tolist()}:
            self.clock[block] = self.clock.get(block, 1) + 1

    def check(
        self, memory: Space, place: np.ndarray, size: int, blocks: np.ndarray, data: np.ndarray | None, what: object
    ) -> None:  # fmt: skip
        """An access by threads of these blocks; `data`: the bytes that they write."""
        units = (place // self.unit)[:, None] + np.arange(size // self.unit)
        self._check(memory, place, size, blocks, data, what, self.writer[units], self.written[units], "wrote")
        times = np.array([self.clock.get(block, 1) for block in blocks.tolist()], np.int32)[:, None]
        if data is None:
            self.reader[units], self.read[units] = blocks[:, None], times
            return
        self._check(memory, place, size, blocks, data, what, self.reader[units], self.read[units], "read")
        self.writer[units], self.written[units] = blocks[:, None], times
        late = self.writer[units] != blocks[:, None]
        if late.any():
            self._check_together(memory, place, units, late, data, what)

    def _check_together(
        self, memory: Space, place: np.ndarray, units: np.ndarray, late: np.ndarray, data: np.ndarray, what: object
    ) -> None:  # fmt: skip
        """Whether those who write a place at once write the same."""
        parts = data.reshape(*units.shape, self.unit)
        last = {unit: (n, k) for (n, k), unit in np.ndenumerate(units)}
        for n, k in np.argwhere(late):
            if (parts[n, k] != parts[last[units[n, k]]]).any():
                at = self._address(memory, place[n], k)
                raise PtxError(f"{what}: race: several blocks write at {at}")

    def _check(
        self, memory: Space, place: np.ndarray, size: int, blocks: np.ndarray, data: np.ndarray | None, what: object,
        by: np.ndarray, when: np.ndarray, did: str,
    ) -> None:  # fmt: skip
        bad = (by >= 0) & (by != blocks[:, None])
        if not bad.any():
            return
        if data is not None:
            change = memory.data[place[:, None] + np.arange(size)] != data
            bad &= change.reshape(place.size, -1, self.unit).any(axis=2)
        for n, k in np.argwhere(bad):
            other = int(by[n, k])
            if self.known.get(int(blocks[n]), {}).get(other, 0) < int(when[n, k]):
                raise PtxError(f"{what}: race: block {int(blocks[n])} at {self._address(memory, place[n], k)}, "
                               f"which block {other} {did}")  # fmt: skip

    def _address(self, memory: Space, place: int, k: int) -> str:
        return f"{int(place) + int(k) * self.unit + memory.base:#x} of global memory"
