"""The emulator's tensor memory accelerator, barriers in shared memory, and warpgroup products of sm_90a.

A copy is done as late as it may be: when somebody waits for the barrier that its bytes arrive at.
Until then nobody may touch where it goes. `wgmma` may read until its group is waited for: nobody may
copy there before, and its sums may not be looked at. Descriptors are read bit by bit, addresses
swizzled as they are, and memory begins at 1024, not 0. The two arms of an `if` that wait for each
other take turns: who waits in vain lets the other go on, and where both do is a deadlock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simt

from lamina.dialects.vendors import ir

BASE = 1024
"""Where shared memory begins that the launch asks for."""
WAIT = "nvvm.mbarrier.try_wait.parity"
_WARPGROUP = 128


@dataclass
class Map:
    """A tensor map: what `cuTensorMapEncodeTiled` was told."""

    data: np.ndarray
    """Bytes from the tensor's beginning on."""
    element: np.dtype
    sizes: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int]

    def read(self, at: Sequence[int]) -> np.ndarray:
        """The bytes of the box at some coordinates, the innermost first; zeros outside."""
        found = np.zeros(tuple(reversed(self.box)), self.element)
        steps = [self.element.itemsize, *self.strides]
        grid = np.indices(found.shape)[::-1] + np.array(at).reshape(-1, *[1] * found.ndim)
        inside = np.all([(g >= 0) & (g < n) for g, n in zip(grid, self.sizes)], axis=0)
        byte = sum(g[inside] * step for g, step in zip(grid, steps))
        parts = byte[:, None] + np.arange(self.element.itemsize)
        found[inside] = self.data[parts].copy().view(self.element)[:, 0]
        return found.reshape(-1).view(np.uint8)


def maps_of(function: Any, arguments: Sequence[np.ndarray]) -> list[Map]:
    """The maps that a kernel says it is to be given, over its other arguments."""
    if "lamina.tensor_maps" not in function.attributes:
        return []
    found = []
    for each in function.attributes["lamina.tensor_maps"]:
        described = ir.DictAttr(each)
        argument, offset = (described[name].value for name in ("argument", "offset"))
        data = arguments[argument].reshape(-1).view(np.uint8)[offset:]
        element = simt._dtype(described["element"].value)
        sizes, strides, box = (list(described[name]) for name in ("sizes", "strides", "box"))
        found.append(Map(data, element, sizes, strides, box))
    return found


@dataclass
class _Barrier:
    count: np.ndarray  # for each block
    left: np.ndarray
    bytes: np.ndarray
    phase: np.ndarray
    fenced: bool = False
    copies: list[tuple[Any, ...]] = field(default_factory=list)

    def advance(self) -> None:
        if (self.left < 0).any():
            raise simt.SimtError("a barrier that more arrive at than are expected")
        done = (self.left == 0) & (self.bytes == 0)
        self.phase[done] += 1
        self.left[done] = self.count[done]


@dataclass
class Group:
    """Products that are waited for together, and what they read."""

    reads: list[tuple[Any, np.ndarray, np.ndarray]] = field(default_factory=list)
    done: bool = False


class Sums:
    """The sums of a warpgroup's threads, each with a row of them, and the group that makes them."""

    def __init__(self, values: np.ndarray, group: Group | None = None) -> None:
        self.values, self.group = values, group

    def where(self, mask: np.ndarray, old: Sums) -> Sums:
        return Sums(np.where(mask[:, None], self.values, old.values), self.group)


class Hopper:
    """What is under way in a launch."""

    def __init__(self) -> None:
        self.barriers: dict[int, _Barrier] = {}
        self.memory: Any = None
        self.reading: np.ndarray | None = None
        self.open, self.groups = Group(), []
        self.fenced = False
        self.turns: Turns | None = None


class Turns:
    """Two roles that take turns: one works at a time."""

    def __init__(self) -> None:
        self.locks = [threading.Semaphore(0), threading.Semaphore(0)]
        self.ended = [False, False]
        self.waited = 0  # times in a row that nobody got on
        self.error: BaseException | None = None

    def run(self, roles: Sequence[Callable[[], Any]]) -> None:
        threads = [
            threading.Thread(target=self._play, args=(n, role)) for n, role in enumerate(roles)
        ]
        for thread in threads:
            thread.start()
        self.locks[0].release()
        for thread in threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def _play(self, number: int, role: Callable[[], Any]) -> None:
        self.locks[number].acquire()
        try:
            if self.error is None:
                with np.errstate(all="ignore"):
                    self.number = number
                    role()
        except BaseException as error:
            self.error = self.error or error
        self.ended[number] = True
        self.locks[1 - number].release()

    def give_way(self) -> None:
        self.waited += 1
        mine = self.number
        if self.waited > 2 or self.ended[1 - mine]:
            raise simt.SimtError("a deadlock: a barrier that nobody arrives at any more")
        self.locks[1 - mine].release()
        self.locks[mine].acquire()
        self.number = mine
        if self.error is not None:
            raise simt.SimtError("the other role failed")


def takes_turns(op: Any) -> bool:
    """Whether both arms of an `if` wait at barriers in shared memory."""
    return all(len(r.blocks) and any(_waits(b) for b in r.blocks) for r in op.regions)


def _waits(block: Any) -> bool:
    return any(
        view.operation.name == WAIT or any(_waits(b) for r in view.operation.regions for b in r.blocks)
        for view in block.operations
    )


# ---- addresses -----------------------------------------------------------------------------------
def base_address(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`memref.extract_aligned_pointer_as_index` of the shared memory that a launch asks for."""
    memory = operands[0].memory
    assert memory.shared and launch.hopper.memory in (None, memory)
    launch.hopper.memory = memory
    launch.hopper.reading = np.zeros(memory.writer.size, np.int32)
    return [np.asarray(BASE)]


def same(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """Casts of pointers."""
    return [operands[0]]


def _units(launch: Any, block: Any, offset: np.ndarray) -> np.ndarray:
    memory = launch.hopper.memory
    size = memory.data.size * memory.data.itemsize // launch.blocks
    if ((offset < 0) | (offset >= size)).any():
        raise simt.SimtError("an address is out of the bounds of shared memory")
    return (block * size + offset) // memory.unit


def _swizzled(address: np.ndarray) -> np.ndarray:
    return address ^ (((address >> 7) & 7) << 4)


# ---- barriers ------------------------------------------------------------------------------------
def init(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.mbarrier.init`."""
    address = _one(operands[0], mask)
    memory, lanes = launch.hopper.memory, launch.lane[mask]
    blocks = launch.block[mask]
    assert np.unique(blocks).size == blocks.size == launch.blocks and address % 8 == 0
    at = _units(launch, blocks, np.full(blocks.size, address - BASE))
    memory.writer[at], memory.write_epoch[at] = lanes, launch.epoch[blocks]
    count = np.full(launch.blocks, int(operands[1]))
    zeros = np.zeros(launch.blocks, np.int64)
    launch.hopper.barriers[address] = _Barrier(count, count.copy(), zeros, zeros.copy())
    return []


def fence_init(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.fence.mbarrier.init`: copies may use the barriers from here on."""
    for barrier in launch.hopper.barriers.values():
        barrier.fenced = True
    return []


def _barrier(launch: Any, op: Any, pointer: Any, mask: np.ndarray) -> _Barrier:
    address = _one(pointer, mask)
    if address not in launch.hopper.barriers:
        raise simt.SimtError(f"{op}: no barrier at {address}")
    memory = launch.hopper.memory
    at = _units(launch, launch.block[mask], np.full(mask.sum(), address - BASE))
    launch._check(op, memory.writer[at], memory.writer[at] // launch.threads,
                  memory.write_epoch[at], launch.lane[mask], launch.block[mask])  # fmt: skip
    return launch.hopper.barriers[address]


def arrive(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.mbarrier.arrive` and `.expect_tx`, which says how many bytes arrive, too."""
    if mask.any():
        barrier = _barrier(launch, op, operands[0], mask)
        threads = np.bincount(launch.block[mask], minlength=launch.blocks)
        barrier.left -= threads
        if len(operands) > 1:
            barrier.bytes += threads * int(operands[1])
        barrier.advance()
        _got_on(launch)
    return [np.asarray(0)] * len(op.results)


def try_wait(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.mbarrier.try_wait.parity`, which goes on trying."""
    barrier = _barrier(launch, op, operands[0], mask)
    parity = _one(operands[1], mask)
    blocks = np.unique(launch.block[mask])
    while True:
        for copied in barrier.copies:
            _finish(launch, barrier, *copied)
        barrier.copies.clear()
        barrier.advance()
        if (barrier.phase[blocks] % 2 != parity).all():
            _got_on(launch)
            return []
        if launch.hopper.turns is None:
            raise simt.SimtError(f"{op}: a deadlock")
        launch.hopper.turns.give_way()


def _got_on(launch: Any) -> None:
    if launch.hopper.turns is not None:
        launch.hopper.turns.waited = 0


def named_barrier(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.barrier` for some of a block's threads."""
    there = np.bincount(launch.block[mask], minlength=launch.blocks)
    if not np.isin(there, (0, int(operands[1]))).all():
        raise simt.SimtError(f"{op}: {there} threads get there")
    launch.epoch += there > 0
    return []


# ---- copies --------------------------------------------------------------------------------------
def copy(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.cp.async.bulk.tensor`: a box to shared memory, swizzled."""
    target, map_, *coordinates, pointer = operands
    barrier = _barrier(launch, op, pointer, mask)
    if not barrier.fenced:
        raise simt.SimtError(f"race: {op} may not see the barrier: a fence is missing")
    memory = launch.hopper.memory
    assert map_.box[0] * map_.element.itemsize == 128 and all(s % 16 == 0 for s in map_.strides)
    for lane in launch.lane[mask]:
        at = [int(np.broadcast_to(c, launch.lane.shape)[lane]) for c in coordinates]
        data = map_.read(at)
        address = int(np.broadcast_to(target, launch.lane.shape)[lane])
        assert address % 1024 == 0
        places = _swizzled(address + np.arange(data.size)) - BASE
        units = np.unique(_units(launch, launch.block[lane], places))
        if memory.pending[units].any() or launch.hopper.reading[units].any():
            raise simt.SimtError(f"race: {op} where a copy goes, or a product reads")
        memory.pending[units] = True
        barrier.copies.append((launch.block[lane], places, units, data))
    return []


def _finish(
    launch: Any, barrier: _Barrier, block: int, places: np.ndarray, units: np.ndarray,
    data: np.ndarray,
) -> None:  # fmt: skip
    memory = launch.hopper.memory
    whole = memory.data.view(np.uint8)
    whole[block * (whole.size // launch.blocks) + places] = data
    memory.pending[units] = False
    barrier.bytes[block] -= data.size


# ---- products ------------------------------------------------------------------------------------
def fence(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.wgmma.fence.aligned`."""
    launch.hopper.fenced = True
    return []


def multiply(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.wgmma.mma_async`: 64 rows of sums in each warpgroup."""
    sums, left, right = operands
    attributes = op.attributes
    text = str(attributes["shape"])
    m, n, k = (int(text.split(f"{name} = ")[1].split(",")[0].rstrip(">")) for name in "mnk")
    if not launch.hopper.fenced:
        raise simt.SimtError(f"race: {op} with no fence before it")
    size = 32 // k
    kind = str(attributes["typeA"]).split("<")[1].rstrip(">")
    dtype = simt._dtype_of_name(kind)
    lanes = np.flatnonzero(mask.reshape(-1, _WARPGROUP).all(axis=1))
    assert mask.sum() == lanes.size * _WARPGROUP and m == 64
    whole = np.int64 if np.issubdtype(dtype, np.integer) else np.float64
    values = sums.values.copy()
    lane = np.arange(_WARPGROUP)
    row, column = lane // 32 * 16 + lane % 32 // 4, lane % 4 * 2
    for group in lanes:
        mine = slice(group * _WARPGROUP, (group + 1) * _WARPGROUP)
        block = launch.block[group * _WARPGROUP]
        a = _matrix(launch, op, left[mine], block, m, k, size, dtype, "col" in str(attributes["layoutA"]))
        b = _matrix(launch, op, right[mine], block, n, k, size, dtype, "row" in str(attributes["layoutB"]))
        product = a.astype(whole) @ b.astype(whole).T
        for j in range(n // 8):
            for half in range(2):
                for i in range(2):
                    values[mine, 4 * j + 2 * half + i] += product[row + 8 * half, 8 * j + column + i]
    return [Sums(values, launch.hopper.open)]


def _matrix(
    launch: Any, op: Any, descriptor: np.ndarray, block: int, rows: int, k: int, size: int,
    dtype: Any, by_depth: bool,
) -> np.ndarray:  # fmt: skip
    bits = int(descriptor[0])
    assert (descriptor == bits).all(), "a descriptor is the same in a warpgroup"
    if bits >> 62 & 3 != 1 or bits >> 49 & 7:
        raise simt.SimtError(f"{op}: a descriptor of other than swizzled rows of 128 bytes")
    start, blocks, strip = (((bits >> low) & 0x3FFF) << 4 for low in (0, 16, 32))
    r, c = np.arange(rows)[:, None], np.arange(k)[None, :]
    if by_depth:
        address = start + r // 64 * blocks + r % 64 * size + c // 8 * strip + c % 8 * 128
    else:
        address = start + r // 8 * strip + r % 8 * 128 + c * size
    offset = _swizzled(address) - BASE
    units = np.unique(_units(launch, block, offset))
    memory = launch.hopper.memory
    launch._check_pending(op, memory, units)
    launch.hopper.reading[units] += 1
    launch.hopper.open.reads.append((op, units, np.asarray(block)))
    whole = memory.data.view(np.uint8)
    first = block * (whole.size // launch.blocks) + offset
    return whole[first[..., None] + np.arange(size)].view(dtype)[..., 0]


def commit(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.wgmma.commit.group.sync.aligned`."""
    launch.hopper.groups.append(launch.hopper.open)
    launch.hopper.open, launch.hopper.fenced = Group(), False
    return []


def wait(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.wgmma.wait.group.sync.aligned`: all but the last groups are done."""
    memory = launch.hopper.memory
    while len(launch.hopper.groups) > op.attributes["group"].value:
        group = launch.hopper.groups.pop(0)
        group.done = True
        for _, units, block in group.reads:
            launch.hopper.reading[units] -= 1
            memory.reader[units], memory.read_block[units] = -2, block
            memory.read_epoch[units] = launch.epoch[block]
    return []


def zero(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`llvm.mlir.zero` of a struct of sums."""
    names = str(op.results[0].type).split("(")[1].split(")")[0].split(", ")
    return [Sums(np.zeros((launch.lane.size, len(names)), simt._dtype(names[0])))]


def extract(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`llvm.extractvalue` of sums, which must be done."""
    (sums,) = operands
    if sums.group is not None and not sums.group.done:
        raise simt.SimtError(f"race: {op} of sums that nobody waited for")
    return [sums.values[:, op.attributes["position"][0]]]


def _one(value: Any, mask: np.ndarray) -> int:
    found = np.unique(np.broadcast_to(value, mask.shape)[mask])
    assert found.size == 1
    return int(found[0])


OPS: dict[str, Callable[..., list[Any]]] = {
    "memref.extract_aligned_pointer_as_index": base_address,
    "llvm.inttoptr": same,
    "llvm.addrspacecast": same,
    "llvm.mlir.zero": zero,
    "llvm.extractvalue": extract,
    "nvvm.barrier": named_barrier,
    "nvvm.mbarrier.init": init,
    "nvvm.fence.mbarrier.init": fence_init,
    "nvvm.mbarrier.arrive": arrive,
    "nvvm.mbarrier.arrive.expect_tx": arrive,
    WAIT: try_wait,
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": copy,
    "nvvm.wgmma.fence.aligned": fence,
    "nvvm.wgmma.mma_async": multiply,
    "nvvm.wgmma.commit.group.sync.aligned": commit,
    "nvvm.wgmma.wait.group.sync.aligned": wait,
}
