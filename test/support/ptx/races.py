"""Who touched shared memory, and who of the others knows: clocks of warps, which barriers hand on.

A warp's clock counts the times that its lanes waited for each other or for others. Of what a warp did at some of its
times another knows once a chain of barriers led from there to it. Two threads touch a place with one writing: then the
later must know of the earlier, or it is a race. To write what is there already is none.

Blocks touch the same global memory likewise: one knows of another what that did before an atomic operation, or an
access that is not weak, of a place where it does such itself afterwards.
"""

from __future__ import annotations

import numpy as np

from support.ptx.errors import PtxError
from support.ptx.memory import Space

_MOST = 1 << 25  # entries for readers
_MOST_GLOBAL = 1 << 23  # pieces of global memory, for blocks


class Races:
    """The accesses of shared memory in a wave."""

    def __init__(self, shared: Space, blocks: int, warps: int, unit: int) -> None:
        """`warps`: of a block; `unit`: how many bytes no access divides."""
        self.warps, self.unit = warps, unit
        self.known = np.zeros((blocks * warps, warps), np.int32)
        self.mine = np.arange(blocks * warps), np.arange(blocks * warps) % warps
        self.known[self.mine] = 1
        units = shared.data.size // unit
        self.writer, self.written = np.full(units, -1), np.zeros(units, np.int32)
        many = units * warps > _MOST
        self.read = None if many else np.zeros((units, warps), np.int32)
        self.reader = None if many else np.full((units, warps), -1)

    # ---- barriers --------------------------------------------------------------------------------
    def warps_meet(self, warps: np.ndarray) -> None:
        """Lanes of these warps waited for each other."""
        self.known[warps, warps % self.warps] += 1

    def blocks_meet(self) -> None:
        """All warps waited for those of their block."""
        of_blocks = self.known.reshape(-1, self.warps, self.warps)
        of_blocks[:] = of_blocks.max(axis=1, keepdims=True)
        self.known[self.mine] += 1

    def hand_in(self, warps: np.ndarray) -> np.ndarray:
        """What these warps of one block know together, at a barrier."""
        found = self.known[warps].max(axis=0)
        self.warps_meet(warps)
        return found

    def take(self, warps: np.ndarray, knowledge: np.ndarray) -> None:
        """Warps went on after a barrier."""
        self.known[warps] = np.maximum(self.known[warps], knowledge)

    def time(self, lane: int) -> int:
        """Of a thread's warp."""
        warp = lane // 32
        return int(self.known[warp, warp % self.warps])

    def know(self, lanes: np.ndarray, lane: int, time: int) -> np.ndarray:
        """Which threads know what a thread did at a time of its warp."""
        seen = self._seen(lanes // 32)[:, lane // 32 % self.warps]
        return (lanes == lane) | (seen >= time)

    # ---- accesses --------------------------------------------------------------------------------
    def _units(self, place: np.ndarray, size: int) -> np.ndarray:
        return (place // self.unit)[:, None] + np.arange(size // self.unit)

    def _seen(self, warp: np.ndarray) -> np.ndarray:
        """The latest times of the block's warps that a warp knows all of; of its own the ones before."""
        seen = self.known[warp]
        seen[np.arange(warp.size), warp % self.warps] -= 1
        return seen

    def check(
        self, shared: Space, place: np.ndarray, size: int, lanes: np.ndarray, writes: bool, data: np.ndarray | None,
        what: object,
    ) -> None:  # fmt: skip
        """An access of some lanes; `data`: the bytes that they write."""
        units, warp = self._units(place, size), lanes // 32
        seen = self._seen(warp)
        by = self.writer[units]
        other = (by >= 0) & (by != lanes[:, None])
        bad = other & (
            self.written[units] > np.take_along_axis(seen, by // 32 % self.warps, axis=1)
        )
        if bad.any():
            bad = self._differs(shared, place, size, bad, data)
            if bad.any():
                self._say(what, place, by, bad, "wrote")
        if self.read is not None and self.reader is not None:
            if writes:
                before = self.read[units] > seen[:, None, :]
                own = np.zeros_like(before)
                own[np.arange(warp.size), :, warp % self.warps] = True
                before &= ~(own & (self.reader[units] == lanes[:, None, None]))
                bad = before.any(axis=2)
                if bad.any() and (bad := self._differs(shared, place, size, bad, data)).any():
                    self._say(what, place, self.reader[units].max(axis=2), bad, "read")
            else:
                local = (warp % self.warps)[:, None]
                self.read[units, local] = self.known[warp, warp % self.warps][:, None]
                self.reader[units, local] = lanes[:, None]
        if writes:
            self.writer[units] = lanes[:, None]
            self.written[units] = self.known[warp, warp % self.warps][:, None]

    def _differs(
        self, shared: Space, place: np.ndarray, size: int, bad: np.ndarray, data: np.ndarray | None
    ) -> np.ndarray:
        """Of writes, only those that change what is there."""
        if data is None:
            return bad
        change = shared.data[place[:, None] + np.arange(size)] != data
        return bad & change.reshape(place.size, -1, self.unit).any(axis=2)

    def _say(
        self, what: object, place: np.ndarray, by: np.ndarray, bad: np.ndarray, did: str
    ) -> None:
        n, k = np.argwhere(bad)[0]
        raise PtxError(f"{what}: race: at {int(place[n]) + k * self.unit:#x} of shared memory, which thread "
                       f"{int(by[n, k])} {did}, with no barrier between")  # fmt: skip

    def forget(self, place: np.ndarray) -> None:
        """A copy that barriers order wrote there."""
        units = np.unique(place // self.unit)
        self.writer[units] = -1
        if self.read is not None:
            self.read[units] = 0


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
        return BlockRaces(memory, unit) if memory.data.size // unit <= _MOST_GLOBAL else None

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
