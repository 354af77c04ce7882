"""The emulator's tensor memory accelerator, barriers in shared memory, and warpgroup products of sm_90a.

A copy is done as late as it may be: when somebody waits for the barrier that its bytes arrive at.
Until then nobody may touch where it goes. What threads wrote, `wgmma` may read once they have fenced it,
arrived at a barrier, and that was waited for. It may read until its group is waited for: nobody may
copy or write there before, and its sums may not be looked at. Who waits for a barrier that readers then
arrived at may write again. Descriptors are read bit by bit, addresses
swizzled as they are, and memory begins at 1024, not 0. The two arms of an `if` that wait for each
other take turns: who waits in vain lets the other go on, and where both do is a deadlock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simt
import simt_mma

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
    rounds: bool = False
    """Whether f32 are rounded to tf32."""

    def read(self, at: Sequence[int]) -> np.ndarray:
        """The bytes of the box at some coordinates, the innermost first; zeros outside."""
        found = np.zeros(tuple(reversed(self.box)), self.element)
        steps = [self.element.itemsize, *self.strides]
        grid = np.indices(found.shape)[::-1] + np.array(at).reshape(-1, *[1] * found.ndim)
        inside = np.all([(g >= 0) & (g < n) for g, n in zip(grid, self.sizes)], axis=0)
        byte = sum(g[inside] * step for g, step in zip(grid, steps))
        parts = byte[:, None] + np.arange(self.element.itemsize)
        found[inside] = self.data[parts].copy().view(self.element)[:, 0]
        return (simt_mma.round_to_tf32(found) if self.rounds else found).reshape(-1).view(np.uint8)


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
        rounds = str(described["element"].value) == "tf32"
        found.append(Map(data, element, sizes, strides, box, rounds))
    return found


@dataclass
class _Barrier:
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


_SEEN, _WRITTEN, _FENCED, _LET_KNOW = range(4)
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
        self.barriers: dict[int, _Barrier] = {}
        self.memory: Any = None
        self.reading: np.ndarray | None = None
        self.state: np.ndarray | None = None
        self.open, self.groups = Group(), []
        self.fenced = False
        self.turns: Turns | None = None

    @property
    def together(self) -> int:
        """Threads that do the same, where not all of a block do."""
        return _WARPGROUP if self.memory is not None else 0

    def wrote(self, memory: Any, at: np.ndarray) -> None:
        """Threads wrote to some memory."""
        if memory is self.memory and self.state is not None:
            self.state[at] = _WRITTEN

    def check_write(self, op: Any, memory: Any, at: np.ndarray) -> None:
        """Whether threads may write there."""
        if memory is self.memory and self.reading is not None and self.reading[at].any():
            raise simt.SimtError(f"race: {op} where a product reads")


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
    units, warps = memory.writer.size, launch.threads // 32
    launch.hopper.reading = np.zeros(units, np.int32)
    launch.hopper.state = np.full(units, _SEEN, np.int8)
    launch.hopper.read_at = np.zeros((launch.threads // _WARPGROUP, units), np.int32)
    launch.hopper.known = np.zeros((launch.blocks, warps, warps), np.int32)
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
    arrived = np.zeros((launch.blocks, launch.threads // 32), np.int32)
    launch.hopper.barriers[address] = _Barrier(count, count.copy(), zeros, zeros.copy(), arrived)
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
    for part in _alike(mask, operands[0]):
        barrier = _barrier(launch, op, operands[0], part)
        threads = np.bincount(launch.block[part], minlength=launch.blocks)
        mine = _written_by(launch, part, _FENCED)
        launch.hopper.state[mine] = _LET_KNOW
        barrier.written.append(mine)
        barrier.left -= threads
        barrier.arrived[launch.block[part], _warps(launch, part)] = launch.hopper.time
        if len(operands) > 1:
            barrier.bytes += threads * int(operands[1])
        barrier.advance()
        _got_on(launch)
    return [np.asarray(0)] * len(op.results)


def try_wait(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.mbarrier.try_wait.parity`, which goes on trying."""
    for part in _alike(mask, *operands[:2]):
        _try_wait(launch, op, operands, part)
    return []


def _try_wait(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> None:
    barrier = _barrier(launch, op, operands[0], mask)
    parity = _one(operands[1], mask)
    blocks = np.unique(launch.block[mask])
    while True:
        for copied in barrier.copies:
            _finish(launch, barrier, *copied)
        barrier.copies.clear()
        barrier.advance()
        if (barrier.phase[blocks] % 2 != parity).all():
            at = launch.block[mask], _warps(launch, mask)
            launch.hopper.known[at] = np.maximum(launch.hopper.known[at], barrier.complete[at[0]])
            _see(launch, barrier, mask)
            _got_on(launch)
            return
        if launch.hopper.turns is None:
            raise simt.SimtError(f"{op}: a deadlock")
        launch.hopper.turns.give_way()


def _alike(mask: np.ndarray, *values: Any) -> Iterator[np.ndarray]:
    """Parts of a mask in which values are the same: blocks may be at different steps."""
    table = np.stack([np.broadcast_to(value, mask.shape) for value in values], axis=-1)
    for row in np.unique(table[mask], axis=0):
        yield mask & (table == row).all(axis=-1)


def _warps(launch: Any, mask: np.ndarray) -> np.ndarray:
    return launch.lane[mask] % launch.threads // 32


def _see(launch: Any, barrier: _Barrier, mask: np.ndarray) -> None:
    """What others wrote before they arrived is for products; where a product read, who knows that all its
    warps are done may write."""
    hopper = launch.hopper
    for units in barrier.written:
        hopper.state[units] = _SEEN
    barrier.written.clear()
    memory = hopper.memory
    for block in np.unique(launch.block[mask]):
        warps = np.unique(_warps(launch, mask & (launch.block == block)))
        known = hopper.known[block, warps].min(axis=0).reshape(-1, 4).min(axis=1)
        units = np.flatnonzero((memory.reader == -2) & (memory.read_block == block))
        done = units[(hopper.read_at[:, units] <= known[:, None]).all(axis=0)]
        memory.reader[done] = memory.read_epoch[done] = -1


def _written_by(launch: Any, mask: np.ndarray, state: int) -> np.ndarray:
    """The places that these threads wrote last of which so much is known."""
    hopper = launch.hopper
    units = np.flatnonzero(hopper.state == state)
    return units[mask[hopper.memory.writer[units]]]


def fence_written(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.fence.proxy`: what these threads wrote is for products, too."""
    assert "async.shared" in str(op.attributes["kind"])
    launch.hopper.state[_written_by(launch, mask, _WRITTEN)] = _FENCED
    return []

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
    memory = launch.hopper.memory
    assert map_.box[0] * map_.element.itemsize == 128 and all(s % 16 == 0 for s in map_.strides)
    for lane in launch.lane[mask]:
        barrier = _barrier(launch, op, pointer, launch.lane == lane)
        if not barrier.fenced:
            raise simt.SimtError(f"race: {op} may not see the barrier: a fence is missing")
        at = [int(np.broadcast_to(c, launch.lane.shape)[lane]) for c in coordinates]
        data = map_.read(at)
        address = int(np.broadcast_to(target, launch.lane.shape)[lane])
        assert address % 1024 == 0
        places = _swizzled(address + np.arange(data.size)) - BASE
        units = np.unique(_units(launch, launch.block[lane], places))
        if memory.pending[units].any() or launch.hopper.reading[units].any():
            raise simt.SimtError(f"race: {op} where a copy goes, or a product reads")
        known = launch.hopper.known[launch.block[lane], lane % launch.threads // 32].copy()
        known[lane % launch.threads // 32] = launch.hopper.time  # what it did itself
        for group, read_at in enumerate(launch.hopper.read_at):
            if read_at[units].max() > known[4 * group : 4 * group + 4].min():
                raise simt.SimtError(f"race: {op} by a thread that does not know of the last read")
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
    sums, *descriptors = operands
    left, right = (np.broadcast_to(d, mask.shape) for d in descriptors)
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
    layouts = "col" in str(attributes["layoutA"]), "row" in str(attributes["layoutB"])

    def factors(mine: slice, block: Any) -> tuple[np.ndarray, np.ndarray]:
        a = _matrix(launch, op, left[mine], block, m, k, size, dtype, layouts[0])
        b = _matrix(launch, op, right[mine], block, n, k, size, dtype, layouts[1])
        return (simt_mma.cut_to_tf32(a), simt_mma.cut_to_tf32(b)) if kind == "tf32" else (a, b)

    return [Sums(_added(launch, sums.values, lanes, factors), launch.hopper.open)]


def multiply_registers(
    launch: Any, op: Any, operands: list[Any], mask: np.ndarray, n: int, kind: str, across: bool
) -> Sums:
    """The same with 64 rows of 16 of k in registers, as the assembly of `wgmma.mma_async` says."""
    if not launch.hopper.fenced:
        raise simt.SimtError(f"race: {op} with no fence before it")
    *values, first, second, third, fourth, right = operands
    right = np.broadcast_to(right, mask.shape)
    assert len(values) == n // 2
    sums = np.stack([v.values if isinstance(v, Pending) else np.broadcast_to(v, mask.shape)
                     for v in values], axis=-1)  # fmt: skip
    lanes = np.flatnonzero(mask.reshape(-1, _WARPGROUP).all(axis=1))
    assert mask.sum() == lanes.size * _WARPGROUP
    lane = np.arange(_WARPGROUP)
    row, column = lane // 32 * 16 + lane % 32 // 4, lane % 4 * 2

    def factors(mine: slice, block: Any) -> tuple[np.ndarray, np.ndarray]:
        a = np.zeros((64, 16), first.dtype)
        for number, part in enumerate((first, second, third, fourth)):
            for i in range(2):
                a[row + number % 2 * 8, column + number // 2 * 8 + i] = part[mine, i]
        return a, _matrix(launch, op, right[mine], block, n, 16, 2, simt._dtype_of_name(kind), across)

    return Sums(_added(launch, sums, lanes, factors), launch.hopper.open)


def _added(
    launch: Any, sums: np.ndarray, groups: np.ndarray, factors: Callable[..., Any]
) -> np.ndarray:
    """Sums and the products of what `factors` gives for the lanes of a warpgroup, in their registers."""
    values = sums.copy()
    lane = np.arange(_WARPGROUP)
    row, column = lane // 32 * 16 + lane % 32 // 4, lane % 4 * 2
    for group in groups:
        mine = slice(group * _WARPGROUP, (group + 1) * _WARPGROUP)
        a, b = factors(mine, launch.block[group * _WARPGROUP])
        whole = np.int64 if np.issubdtype(a.dtype, np.integer) else np.float64
        product = a.astype(whole) @ b.astype(whole).T
        for j in range(b.shape[0] // 8):
            for half in range(2):
                for i in range(2):
                    values[mine, 4 * j + 2 * half + i] += product[row + 8 * half, 8 * j + column + i]
        group_in_block = group % (launch.threads // _WARPGROUP)
        for number, (of, units, block) in enumerate(launch.hopper.open.reads):
            if of < 0:
                launch.hopper.open.reads[number] = group_in_block, units, block
    return values


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
    if by_depth and size != 2:
        raise simt.SimtError(f"{op}: only 16 bits are read across rows")
    if by_depth:
        address = start + r // 64 * blocks + r % 64 * size + c // 8 * strip + c % 8 * 128
    else:
        address = start + r // 8 * strip + r % 8 * 128 + c * size
    offset = _swizzled(address) - BASE
    units = np.unique(_units(launch, block, offset))
    memory = launch.hopper.memory
    launch._check_pending(op, memory, units)
    if (launch.hopper.state[units] != _SEEN).any():
        raise simt.SimtError(f"race: {op} of what threads wrote, with no fence, or nobody waited")
    launch.hopper.reading[units] += 1
    launch.hopper.open.reads.append((-1, units, np.asarray(block)))
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
    wait_for(launch, op.attributes["group"].value)
    return []


def wait_for(launch: Any, groups: int) -> None:
    """All but so many groups are done."""
    memory = launch.hopper.memory
    launch.hopper.time += 1
    while len(launch.hopper.groups) > groups:
        group = launch.hopper.groups.pop(0)
        group.done = True
        for warpgroup, units, block in group.reads:
            launch.hopper.reading[units] -= 1
            launch.hopper.read_at[warpgroup, units] = launch.hopper.time
            memory.reader[units], memory.read_block[units] = -2, block
            memory.read_epoch[units] = launch.epoch[block]


def zero(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`llvm.mlir.zero` of a struct of sums."""
    names = str(op.results[0].type).split("(")[1].split(")")[0].split(", ")
    return [Sums(np.zeros((launch.lane.size, len(names)), simt._dtype(names[0])))]


def extract(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`llvm.extractvalue` of sums, or of what assembly gives."""
    (sums,), place = operands, op.attributes["position"][0]
    if isinstance(sums, list):
        return [sums[place]]
    if sums.group is not None and not sums.group.done:
        return [Pending(op, sums, place)]
    return [sums.values[:, place]]


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
    "nvvm.fence.proxy": fence_written,
    "nvvm.mbarrier.arrive": arrive,
    "nvvm.mbarrier.arrive.expect_tx": arrive,
    WAIT: try_wait,
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": copy,
    "nvvm.wgmma.fence.aligned": fence,
    "nvvm.wgmma.mma_async": multiply,
    "nvvm.wgmma.commit.group.sync.aligned": commit,
    "nvvm.wgmma.wait.group.sync.aligned": wait,
}
