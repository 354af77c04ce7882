"""Several blocks of a launch in step: their registers, where their threads are, who waits for whom."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from support.ptx import costs
from support.ptx.block_races import BlockRaces
from support.ptx.errors import PtxError
from support.ptx.memory import Space
from support.ptx.races import Places, Races

SECTORS, CONFLICTS, WARPS = "global sectors", "bank conflicts", "instructions of warps"
"""What is counted beside instructions."""
RUNS, PARKED, WAITS, DONE = 0, 1, 2, 3
"""A thread goes on; stands before an instruction of its warp until the others come; waits at a barrier; has ended."""

SHARED_BASE, LOCAL_BASE, PARAM_BASE = 1 << 48, 1 << 49, 1 << 50
GLOBAL_BASE = 1 << 40
POISON = {
    1: np.uint8(1),
    2: np.uint16(0xABAB),
    4: np.uint32(0xABABABAB),
    8: np.uint64(0xABABABABABABABAB),
}
PATIENCE = 4000  # backward branches before other blocks have their turn
WAITING = 400  # the same where nobody has changed memory since the last turn


class Group:
    """The threads that do an instruction."""

    __slots__ = ("all", "index", "mask")

    def __init__(self, mask: np.ndarray) -> None:
        self.mask, self.index = mask, np.flatnonzero(mask)
        self.all = self.index.size == mask.size


@dataclass
class Step:
    """An instruction, decoded. `kind` says what becomes of the threads after it."""

    do: Callable[[Any, Group], Any]
    text: str
    kind: str = "plain"  # branch, exit, wait
    guard: Callable[[Any], np.ndarray] | None = None
    target: int = -1
    leader: bool = False
    members: Callable[[Any], np.ndarray] | None = None
    """Of an instruction of a warp: for each thread the mask of lanes that must come to it."""


@dataclass
class Code:
    """A kernel, decoded."""

    steps: list[Step] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Of the registers, in bytes."""
    shared: list[tuple[int, int]] = field(default_factory=list)
    shared_size: int = 0
    local: list[tuple[int, int]] = field(default_factory=list)
    local_size: int = 0
    unit: int = 16
    """The least number of bytes that an access takes."""
    proxies: bool = False
    """Whether copies or products go to shared memory by another way than threads do."""


class Wave:
    """Some blocks of a launch, a lane for each thread, warps filled up with lanes that never run."""

    def __init__(
        self, code: Code, grid: Sequence[int], block: Sequence[int], blocks: np.ndarray,
        spaces: dict[str, Space], dynamic: int, random: np.random.Generator, strict: bool = True,
    ) -> None:  # fmt: skip
        self.code, self.grid, self.block_size, self.blocks = code, tuple(grid), tuple(block), blocks
        self.random = random
        threads = math.prod(block)
        self.threads = threads
        self.padded = -(-threads // 32) * 32
        lanes = self.padded * blocks.size
        self.lanes = lanes
        self.row = np.repeat(np.arange(blocks.size), self.padded)
        self.thread = np.tile(np.arange(self.padded), blocks.size)
        self.lane = self.thread % 32
        self.warp = np.arange(lanes) // 32
        self.everyone = np.arange(lanes)
        self.regs = [np.full(lanes, POISON[size]) for size in code.sizes]
        self.pc = np.zeros(lanes, np.int64)
        self.status = np.where(self.thread < threads, RUNS, DONE).astype(np.int8)
        self.carry, self.naps = np.zeros(lanes, bool), np.zeros(lanes, bool)
        self.spaces = dict(spaces)
        shared_size = code.shared_size + dynamic
        self.spaces["shared"] = Space("shared", 0, max(shared_size, 16), blocks.size, strict)
        for at, size in code.shared:
            self.spaces["shared"].declare(at, size)
        if dynamic:
            self.spaces["shared"].declare(code.shared_size, dynamic)
        self.dynamic, self.shared_size = dynamic, shared_size
        size = max(code.local_size, 16)
        self.spaces["local"] = Space("local", 0, size, lanes if code.local_size else 1, strict)
        for at, size in code.local:
            self.spaces["local"].declare(at, size)
        self.special = self._special()
        self.races = Races(blocks.size, self.padded // 32)
        if shared_size:
            self.races.shared = Places.of(self.spaces["shared"], self.padded // 32, code.unit)
        self.in_global: Places | None = None
        self.between: BlockRaces | None = None
        self.barriers: dict[tuple[int, int], Barrier] = {}
        self.counts: Counter[str] = Counter()
        self.turns = self.patience = 0
        self.measures = False
        self.extra: dict[str, Any] = {}
        self.writer: np.ndarray | None = (
            None  # by 16 bytes of shared memory, who wrote them unfenced
        )

    def _special(self) -> dict[str, np.ndarray]:
        u32 = np.uint32
        found: dict[str, np.ndarray] = {
            "%laneid": self.lane.astype(u32), "%warpid": (self.thread // 32).astype(u32),
            "%nwarpid": np.full(self.lanes, self.padded // 32, u32), "%smid": np.zeros(self.lanes, u32),
            "%nsmid": np.full(self.lanes, 132, u32), "%gridid": np.zeros(self.lanes, np.uint64),
            "%dynamic_smem_size": np.full(self.lanes, self.dynamic, u32),
            "%total_smem_size": np.full(self.lanes, self.shared_size, u32),
        }  # fmt: skip
        bit = u32(1) << self.lane.astype(u32)
        found |= {"%lanemask_eq": bit, "%lanemask_lt": bit - u32(1), "%lanemask_le": bit | (bit - u32(1)),
                  "%lanemask_gt": ~(bit | (bit - u32(1))), "%lanemask_ge": ~(bit - u32(1))}  # fmt: skip
        block = self.blocks[self.row]
        for axis, name in enumerate("xyz"):
            size, grid = ((*of, 1, 1, 1)[axis] for of in (self.block_size, self.grid))
            inner, outer = (math.prod(of[:axis]) for of in (self.block_size, self.grid))
            found[f"%tid.{name}"] = (self.thread // inner % size).astype(u32)
            found[f"%ntid.{name}"] = np.full(self.lanes, size, u32)
            found[f"%ctaid.{name}"] = (block // outer % grid).astype(u32)
            found[f"%nctaid.{name}"] = np.full(self.lanes, grid, u32)
            found[f"%clusterid.{name}"] = found[f"%ctaid.{name}"]
            found[f"%nclusterid.{name}"] = found[f"%nctaid.{name}"]
            found[f"%cluster_ctaid.{name}"] = np.zeros(self.lanes, u32)
            found[f"%cluster_nctaid.{name}"] = np.ones(self.lanes, u32)
        found["%cluster_ctarank"] = np.zeros(self.lanes, u32)
        found["%cluster_nctarank"] = np.ones(self.lanes, u32)
        return found

    # ---- running ---------------------------------------------------------------------------------
    @property
    def done(self) -> bool:
        return bool((self.status == DONE).all())

    def run(self, patience: int = PATIENCE) -> None:
        """Goes on until all threads have ended, or others should have their turn."""
        self.patience = patience
        with np.errstate(all="ignore"):
            while self.patience > 0 and not self.done:
                self._go()

    def _go(self) -> None:
        runs = self.status == RUNS
        if self.naps.any():
            if (awake := runs & ~self.naps).any():
                runs = awake
            else:
                self.wake()
                self.patience -= 50
        places = self.pc[runs]
        if not places.size:
            raise PtxError("deadlock: " + self._where())
        at = int(places.min())
        if places.max() != at:  # those behind first, so that threads meet again
            self.turns += 1
            if self.turns % 64 == 0:
                at = int(self.random.choice(np.unique(places)))
        here = self.pc == at
        come = here & (self.status == RUNS)
        mask = here & (self.status <= PARKED) & self._of_warps(come)  # with those who wait for them there
        self.status[mask] = RUNS
        self.naps[mask] = False
        group = Group(mask)
        self._follow(at, group, group.index.size == int(np.count_nonzero(self.status == RUNS)))

    def _of_warps(self, lanes: np.ndarray) -> np.ndarray:
        """All lanes of the warps of these."""
        return np.repeat(lanes.reshape(-1, 32).any(axis=1), 32)

    def state(self) -> int:
        """A number that is another one when threads got on, in registers or elsewhere."""
        found = zlib.crc32(self.pc.tobytes(), zlib.crc32(self.status.tobytes()))
        for values in self.regs:
            found = zlib.crc32(np.ascontiguousarray(values), found)
        return found

    def nap(self, g: Group) -> None:
        """These wait for something: others first."""
        self.naps |= g.mask

    def wake(self) -> None:
        """What somebody waits for may have come."""
        self.naps[:] = False

    def _where(self) -> str:
        places = {(int(s), int(p)) for s, p in zip(self.status, self.pc) if s != DONE}
        names = {PARKED: "not all of a warp come to", WAITS: "a barrier before"}
        return "; ".join(
            f"{names[s]} {self.code.steps[min(p, len(self.code.steps) - 1)].text}"
            for s, p in sorted(places)[:6]
        )

    def _follow(self, at: int, group: Group, alone: bool) -> None:
        start, steps = at, self.code.steps
        while True:
            if at >= len(steps):
                raise PtxError("a thread runs past the end of its kernel")
            step = steps[at]
            if step.leader and not alone and at != start:
                break
            sub = group
            if step.guard is not None:
                wanted = step.guard(self) & group.mask
                sub = Group(wanted)
                if not sub.index.size:
                    at += 1
                    continue
            if step.members is not None and not sub.all and not self._meet(step, sub, at):
                self.pc[group.index] = at + 1
                self.pc[sub.index] = at
                return
            self.counts[step.text] += 1
            if self.measures:
                self.counts[WARPS] += np.unique(self.warp[sub.index]).size
            if step.kind == "plain":
                step.do(self, sub)
                at += 1
            elif step.kind == "branch":
                if sub.index.size < group.index.size:
                    self.pc[group.index] = at + 1
                    self.pc[sub.index] = step.target
                    self.patience -= step.target <= at
                    return
                if step.target <= at:
                    self.patience -= 1
                    if not alone or self.patience <= 0:
                        at = step.target
                        break
                at = step.target
            elif step.kind == "exit":
                step.do(self, sub)
                self.pc[group.index] = at + 1
                self.status[sub.index] = DONE
                self._someone_left()
                return
            else:
                self.pc[group.index] = at + 1
                step.do(self, sub)
                return
        self.pc[group.index] = at

    def _meet(self, step: Step, sub: Group, at: int) -> bool:
        """Whether all lanes are here that an instruction of a warp needs; else they are waited for."""
        assert step.members is not None
        live = self.status != DONE
        here = sub.mask | ((self.pc == at) & (self.status == PARKED) & self._of_warps(sub.mask))
        wanted = step.members(self)
        bits = np.uint32(1) << self.lane.astype(np.uint32)
        present = np.bitwise_or.reduceat(
            np.where(here, bits, np.uint32(0)), np.arange(0, self.lanes, 32)
        )
        alive = np.bitwise_or.reduceat(
            np.where(live, bits, np.uint32(0)), np.arange(0, self.lanes, 32)
        )
        missing = wanted & ~present[self.warp]
        if not missing[sub.index].any():
            self.status[here] = RUNS
            return int(np.count_nonzero(here)) == sub.index.size
        if (missing & ~alive[self.warp])[sub.index].any():
            raise PtxError(f"{step.text}: a lane that must take part has ended")
        if (wanted & bits == 0)[sub.index].any():
            raise PtxError(f"{step.text}: a thread that is not in its own mask of lanes")
        self.status[sub.mask & (missing != 0)] = PARKED
        return False

    # ---- who saw what ----------------------------------------------------------------------------
    def watch(
        self, of: Space, place: np.ndarray, size: int, lanes: np.ndarray, data: np.ndarray | None, what: object,
        weak: bool = True,
    ) -> None:  # fmt: skip
        """An access of memory; of a write the bytes."""
        if self.measures and of.name == "global":
            self.counts[SECTORS] += costs.sectors(place, self.warp[lanes])
        elif self.measures and of.name == "shared":
            warp, lane = self.warp[lanes], self.lane[lanes]
            found = costs.conflicts(place, size, warp, lane)
            self.counts[CONFLICTS] += found
            self.counts[f"{CONFLICTS} of {str(what).split(': ', 1)[-1]}"] += found
        if of.name == "global" and not weak:
            self.blocks_may_meet(of, place, lanes)
        elif of.name == "global" and place.size:
            blocks = self.blocks[self.row[lanes]]
            if self.between is not None:
                self.between.check(of, place, size, blocks, data, what)
            if self.in_global is not None:
                self.races.check(self.in_global, of, place, size, lanes, data is not None, data, what, blocks=blocks)
        if of.name != "shared" or not place.size:
            return
        if self.races.shared is not None:
            self.races.check(self.races.shared, of, place, size, lanes, data is not None, data, what)
        if data is not None and self.code.proxies:
            self.wrote(place, size, lanes)
            if self.is_read(place):
                raise PtxError(f"{what}: race: a product still reads what is overwritten")

    def blocks_may_meet(self, of: Space, place: np.ndarray, lanes: np.ndarray) -> None:
        """An atomic operation, or another access by which blocks wait for each other."""
        if of.name == "global" and self.between is not None:
            self.between.meet(place, self.blocks[self.row[lanes]])

    def watch_atomic(self, of: Space, place: np.ndarray, size: int, lanes: np.ndarray, what: object) -> None:
        """Atomic operations at places, in this order."""
        self.blocks_may_meet(of, place, lanes)
        places = self.races.shared if of.name == "shared" else self.in_global if of.name == "global" else None
        if places is not None and place.size:
            blocks = self.blocks[self.row[lanes]] if of.name == "global" else None
            self.races.check(places, of, place, size, lanes, True, None, what, True, blocks)

    def warps_meet(self, g: Group) -> None:
        """Lanes of warps have waited for each other."""
        self.races.warps_meet(np.unique(self.warp[g.index]))

    def blocks_meet(self, g: Group) -> None:
        """All threads have waited for those of their block."""
        self.races.blocks_meet()

    def hand_in(self, lanes: np.ndarray) -> np.ndarray:
        """Threads of a block have come to a barrier: what they know."""
        return self.races.hand_in(np.unique(self.warp[lanes]))

    def take(self, lanes: np.ndarray, knowledge: np.ndarray | int) -> None:
        """Threads go on after a barrier."""
        self.races.take(np.unique(self.warp[lanes]), np.asarray(knowledge))

    def fence(self, g: Group) -> None:
        """A fence between threads."""

    # Between ordinary accesses and those of copies and products, which go another way to shared memory.
    def proxy_fence(self, g: Group) -> None:
        """What these threads wrote, copies and products may read."""
        if self.writer is not None:
            mine = np.append(g.mask, False)[self.writer]
            self.writer[mine] = -1

    def wrote(self, place: np.ndarray, size: int, lanes: np.ndarray) -> None:
        """Threads wrote shared memory."""
        if self.writer is None:
            self.writer = np.full(self.spaces["shared"].data.size // 16, -1)
        pieces = place // 16
        self.writer[pieces] = lanes
        if size > 16:
            self.writer[pieces + 1] = lanes

    def brought(self, place: np.ndarray, column: int, phase: int) -> None:
        """A bulk copy has come in, in a phase of a barrier with a clock."""
        if self.writer is not None:
            self.writer[place // 16] = -1
        self.races.brought(place, column, phase)

    def must_be_fenced(self, place: np.ndarray, what: object) -> None:
        """Copies and products may not read what threads wrote and did not fence."""
        if self.writer is not None and (self.writer[place // 16] >= 0).any():
            raise PtxError(
                f"{what}: race: reads what a thread wrote, with no fence.proxy.async between"
            )

    def is_read(self, place: np.ndarray) -> bool:
        """Whether a product that nobody waited for reads there."""
        products = self.extra.get("products")
        if products is None or not products.reading:
            return False
        return any(np.isin(place // 16, pieces).any() for pieces, _, _ in products.reading)

    # ---- barriers --------------------------------------------------------------------------------
    def _someone_left(self) -> None:
        for key in list(self.barriers):
            self.release(key)

    def release(self, key: tuple[int, int]) -> None:
        """Lets the threads at a barrier go on if all have come."""
        barrier = self.barriers[key]
        need = barrier.count
        if need == 0:  # everyone who has not ended
            mine = self.row == key[0]
            need = int(np.count_nonzero(mine & (self.status != DONE)))
        if barrier.arrived < need:
            return
        if barrier.arrived > need:
            raise PtxError(f"{barrier.text}: {barrier.arrived} threads at a barrier of {need}")
        del self.barriers[key]
        waiting = barrier.waiting
        if waiting.size:
            self.take(waiting, barrier.knowledge)
            self.status[waiting] = RUNS
            if barrier.finish is not None:
                barrier.finish(self, waiting)


@dataclass
class Barrier:
    """A barrier that some threads have come to."""

    text: str
    count: int
    arrived: int = 0
    knowledge: np.ndarray | int = 0
    waiting: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    finish: Callable[[Wave, np.ndarray], None] | None = None
