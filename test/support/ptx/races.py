"""Threads of a block that touch the same memory, and who of the others knows: clocks of warps, which barriers hand on.

A warp's clock counts the times that its lanes waited for each other or for others. Of what a warp did at some of its
times another knows once a chain of barriers led from there to it. Two threads touch a place with one writing: then the
later must know of the earlier, or it is a race. To write what is there already is none, nor are two atomic operations.

What a bulk copy brought, those know who waited for its barrier, and whom they told: a barrier in memory has a clock,
too, which counts its phases. A product reads for all warps of its warpgroup, until they have waited for it.
"""

from __future__ import annotations

import numpy as np

from support.ptx.errors import PtxError
from support.ptx.memory import Space

_MOST = 1 << 25  # memory: entries for readers
_PRODUCT = -2
"""The reader of a place that is a whole warp, by a product."""


class Places:
    """Of each piece of a space of memory, which thread of its block wrote it last, and of each warp which thread read
    it last, with the times of their warps. Pieces of global memory are a block's that touched them last: what blocks
    do to each other is noted elsewhere."""

    def __init__(self, memory: Space, warps: int, unit: int) -> None:
        """`warps`: of a block; `unit`: how many bytes no access divides."""
        self.unit = unit
        units = memory.data.size // unit
        self.writer, self.written = np.full(units, -1), np.zeros(units, np.int32)
        self.atomic = np.zeros(units, bool)
        self.read = np.zeros((units, warps), np.int32)
        self.reader = np.full((units, warps), -1)
        self.block = np.full(units, -1) if memory.name == "global" else None

    @staticmethod
    def of(memory: Space, warps: int, unit: int) -> Places | None:
        """None where memory is too large for it."""
        return Places(memory, warps, unit) if memory.data.size // unit * warps <= _MOST else None

    def units(self, place: np.ndarray, size: int) -> np.ndarray:
        return (place // self.unit)[:, None] + np.arange(size // self.unit)

    def belong_to(self, units: np.ndarray, blocks: np.ndarray) -> None:
        """These blocks touch pieces: what others did there is forgotten."""
        if self.block is not None and (other := self.block[units] != blocks[:, None]).any():
            mine = units[other]
            self.writer[mine], self.atomic[mine], self.read[mine] = -1, False, 0
            self.block[units] = blocks[:, None]


class Races:
    """Clocks of the warps of a wave, and what its blocks touched of shared memory."""

    def __init__(self, blocks: int, warps: int) -> None:
        """`warps`: of a block."""
        self.warps = warps
        self.known = np.zeros((blocks * warps, warps), np.int32)
        self.mine = np.arange(blocks * warps), np.arange(blocks * warps) % warps
        self.known[self.mine] = 1
        self.columns: dict[tuple[int, int], int] = {}
        """Of `known`, for barriers in memory, by address and how many were made there before."""
        self.shared: Places | None = None

    # ---- barriers --------------------------------------------------------------------------------
    def warps_meet(self, warps: np.ndarray) -> None:
        """Lanes of these warps waited for each other."""
        self.known[warps, warps % self.warps] += 1

    def blocks_meet(self) -> None:
        """All warps waited for those of their block."""
        of_blocks = self.known.reshape(-1, self.warps, self.known.shape[1])
        of_blocks[:] = of_blocks.max(axis=1, keepdims=True)
        self.known[self.mine] += 1

    def hand_in(self, warps: np.ndarray) -> np.ndarray:
        """What these warps of one block know together, at a barrier."""
        found = self.known[warps].max(axis=0)
        self.warps_meet(warps)
        return found

    def take(self, warps: np.ndarray, knowledge: np.ndarray) -> None:
        """Warps went on after a barrier."""
        width = knowledge.shape[-1] if knowledge.ndim else self.known.shape[1]
        self.known[warps, :width] = np.maximum(self.known[warps, :width], knowledge)

    def time(self, lane: int) -> int:
        """Of a thread's warp."""
        warp = lane // 32
        return int(self.known[warp, warp % self.warps])

    def know(self, lanes: np.ndarray, lane: int, time: int) -> np.ndarray:
        """Which threads know what a thread did at a time of its warp."""
        seen = self._seen(lanes // 32)[:, lane // 32 % self.warps]
        return (lanes == lane) | (seen >= time)

    def column(self, address: int, before: int) -> int:
        """The clock of a barrier in memory, at whose address so many were made before."""
        key = address, before
        if key not in self.columns:
            self.columns[key] = self.known.shape[1]
            self.known = np.pad(self.known, ((0, 0), (0, 1)))
        return self.columns[key]

    # ---- accesses --------------------------------------------------------------------------------
    def _seen(self, warp: np.ndarray) -> np.ndarray:
        """The latest times of the block's warps that a warp knows all of; of its own the ones before."""
        seen = self.known[warp]
        seen[np.arange(warp.size), warp % self.warps] -= 1
        return seen

    def _now(self, warp: np.ndarray) -> np.ndarray:
        return self.known[warp, warp % self.warps][:, None]

    def check(
        self, places: Places, memory: Space, place: np.ndarray, size: int, lanes: np.ndarray, writes: bool,
        data: np.ndarray | None, what: object, atomic: bool = False, blocks: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """An access of some lanes; `data`: the bytes that they write, where that is known. `blocks`: of lanes that
        touch global memory."""
        units, warp, thread = places.units(place, size), lanes // 32, lanes % (32 * self.warps)
        if blocks is not None:
            places.belong_to(units, blocks)
        seen = self._seen(warp)
        bad = self._unknown(places, units, thread, seen)
        if atomic:
            bad &= ~places.atomic[units]
        if bad.any() and (bad := _differs(places, memory, place, size, bad, data)).any():
            _say(what, places, memory, place, places.writer[units], bad, "wrote")
        local = warp % self.warps
        if writes:
            before = places.read[units] > seen[:, None, : self.warps]
            if before.any():
                own = np.zeros_like(before)
                own[np.arange(warp.size), :, local] = True
                reader = places.reader[units]
                before &= ~(own & ((reader == thread[:, None, None]) | (reader == _PRODUCT)))
                bad = before.any(axis=2)
                if bad.any() and (bad := _differs(places, memory, place, size, bad, data)).any():
                    who = np.take_along_axis(reader, before.argmax(axis=2)[..., None], axis=2)[..., 0]
                    _say(what, places, memory, place, who, bad, "read")
            places.writer[units], places.written[units] = thread[:, None], self._now(warp)
            places.atomic[units] = atomic
        else:
            places.read[units, local[:, None]] = self._now(warp)
            places.reader[units, local[:, None]] = thread[:, None]

    def check_product(self, shared: Space, place: np.ndarray, lanes: np.ndarray, what: object) -> None:
        """Products read 16 bytes from each place on, each for a lane's warp, until they are waited for."""
        if self.shared is not None:
            units = self.shared.units(place, 16)
            bad = self._unknown(self.shared, units, lanes % (32 * self.warps), self._seen(lanes // 32))
            if bad.any():
                _say(what, self.shared, shared, place, self.shared.writer[units], bad, "wrote")

    def _unknown(self, places: Places, units: np.ndarray, thread: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Whether others wrote there of whom threads don't know."""
        by = places.writer[units]
        other = (by != -1) & (by != thread[:, None])
        if not other.any():
            return other
        clock = np.where(by >= 0, by // 32, -2 - by)
        clock[by == -1] = 0
        return other & (places.written[units] > np.take_along_axis(seen, clock, axis=1))

    def wrote(self, place: np.ndarray, size: int, lanes: np.ndarray) -> None:
        """Copies of these threads to shared memory have come in; that they may write there was checked before."""
        if self.shared is not None:
            units = self.shared.units(place, size)
            self.shared.writer[units] = (lanes % (32 * self.warps))[:, None]
            self.shared.written[units] = self._now(lanes // 32)

    def brought(self, place: np.ndarray, column: int, phase: int) -> None:
        """A bulk copy has come in; who waits for so many phases of its barrier knows."""
        if self.shared is not None:
            units = np.unique(place // self.shared.unit)
            self.shared.writer[units], self.shared.written[units] = -2 - column, phase
            self.shared.read[units] = 0

    def products_read(self, place: np.ndarray, warps: np.ndarray) -> None:
        """Products of these warps, which waited for them, have read 16 bytes from each place on."""
        if self.shared is not None:
            units, local = self.shared.units(place, 16).reshape(-1)[:, None], warps % self.warps
            self.shared.read[units, local] = self.known[warps, local]
            self.shared.reader[units, local] = _PRODUCT


def _differs(
    places: Places, memory: Space, place: np.ndarray, size: int, bad: np.ndarray, data: np.ndarray | None
) -> np.ndarray:
    """Of writes, only those that change what is there."""
    if data is None:
        return bad
    change = memory.data[place[:, None] + np.arange(size)] != data
    return bad & change.reshape(place.size, -1, places.unit).any(axis=2)


def _say(
    what: object, places: Places, memory: Space, place: np.ndarray, by: np.ndarray, bad: np.ndarray, did: str
) -> None:
    n, k = np.argwhere(bad)[0]
    at, who = int(place[n]) + int(k) * places.unit, int(by[n, k])
    if did == "wrote" and who < 0:
        why = "where a copy went whose barrier was not waited for"
    else:
        why = f"which {f'thread {who}' if who >= 0 else 'a product'} {did}, with no barrier between"
    raise PtxError(f"{what}: race: at {at % memory.row + memory.base:#x} of {memory.name} memory, {why}")
