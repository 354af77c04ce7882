"""What is under way in a launch of the emulator on sm_90a: barriers, products, who knows of what.

Addresses are swizzled as the hardware's are, and shared memory begins at 1024, not 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from support.simt import emulator as simt
from support.simt.turns import Turns

BASE = 1024
"""Where shared memory begins that the launch asks for."""
WARPGROUP = 128


@dataclass
class Barrier:
    count: np.ndarray  # for each block
    left: np.ndarray
    bytes: np.ndarray
    phase: np.ndarray
    arrived: np.ndarray  # for each block and warp, when it did last
    fenced: bool = False
    copies: list[tuple[Any, ...]] = field(default_factory=list)
    written: list[np.ndarray] = field(default_factory=list)
    """What those who arrived had written and fenced."""

    def __post_init__(self) -> None:
        self.complete = self.arrived.copy()  # the same of complete phases

    def advance(self) -> None:
        if (self.left < 0).any():
            raise simt.SimtError("a barrier that more arrive at than are expected")
        done = (self.left == 0) & (self.bytes == 0)
        self.complete[done] = self.arrived[done]
        self.phase[done] += 1
        self.left[done] = self.count[done]


@dataclass
class Group:
    """Products that are waited for together, and what they read."""

    reads: list[tuple[int, np.ndarray, np.ndarray]] = field(default_factory=list)
    """Of a warpgroup, where, in which block."""
    done: bool = False


class Sums:
    """The sums of a warpgroup's threads, each with a row of them, and the group that makes them."""

    def __init__(self, values: np.ndarray, group: Group | None = None) -> None:
        self.values, self.group = values, group

    def where(self, mask: np.ndarray, old: Sums) -> Sums:
        return Sums(np.where(mask[:, None], self.values, old.values), self.group)


class Pending:
    """One of the sums of a group that nobody waited for: only products and waits may take it."""

    def __init__(self, op: Any, sums: Sums, place: int) -> None:
        self.op, self.sums, self.place = op, sums, place

    def __array__(self, *_: Any) -> np.ndarray:
        raise simt.SimtError(f"race: {self.op} of sums that nobody waited for")

    @property
    def values(self) -> np.ndarray:
        return self.sums.values[:, self.place]

    def waited(self) -> Any:
        """The sum, if somebody did."""
        assert self.sums.group is not None
        return self.values if self.sums.group.done else self


SEEN, WRITTEN, FENCED, LET_KNOW = range(4)
"""What products know of what a thread has written to a place of shared memory."""


class Hopper:
    """What is under way in a launch. Times count how often somebody waited for products: who copies
    where products read must know, by barriers, that all warps arrived there after that."""

    def __init__(self) -> None:
        self.time = 0
        self.read_at: np.ndarray | None = None
        """When a warpgroup was last done with a unit of memory."""
        self.known: np.ndarray | None = None
        """For each block what each warp knows of each: when it last arrived somewhere."""
        self.barriers: dict[int, Barrier] = {}
        self.memory: Any = None
        self.reading: np.ndarray | None = None
        self.state: np.ndarray | None = None
        self.open, self.groups = Group(), []
        self.fenced = False
        self.turns: Turns | None = None

    @property
    def together(self) -> int:
        """Threads that do the same, where not all of a block do."""
        return WARPGROUP if self.memory is not None else 0

    def wrote(self, memory: Any, at: np.ndarray) -> None:
        """Threads wrote to some memory."""
        if memory is self.memory and self.state is not None:
            self.state[at] = WRITTEN

    def check_write(self, op: Any, memory: Any, at: np.ndarray) -> None:
        """Whether threads may write there."""
        if memory is self.memory and self.reading is not None and self.reading[at].any():
            raise simt.SimtError(f"race: {op} where a product reads")


def base_address(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`memref.extract_aligned_pointer_as_index` of the shared memory that a launch asks for."""
    memory = operands[0].memory
    assert memory.shared and launch.hopper.memory in (None, memory)
    launch.hopper.memory = memory
    units, warps = memory.writer.size, launch.threads // 32
    launch.hopper.reading = np.zeros(units, np.int32)
    launch.hopper.state = np.full(units, SEEN, np.int8)
    launch.hopper.read_at = np.zeros((launch.threads // WARPGROUP, units), np.int32)
    launch.hopper.known = np.zeros((launch.blocks, warps, warps), np.int32)
    return [np.asarray(BASE)]


def same(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """Casts of pointers."""
    return [operands[0]]


def units_at(launch: Any, block: Any, offset: np.ndarray) -> np.ndarray:
    memory = launch.hopper.memory
    size = memory.data.size * memory.data.itemsize // launch.blocks
    if ((offset < 0) | (offset >= size)).any():
        raise simt.SimtError("an address is out of the bounds of shared memory")
    return (block * size + offset) // memory.unit


def swizzled(address: np.ndarray) -> np.ndarray:
    return address ^ (((address >> 7) & 7) << 4)


def one(value: Any, mask: np.ndarray) -> int:
    found = np.unique(np.broadcast_to(value, mask.shape)[mask])
    assert found.size == 1
    return int(found[0])
