"""The emulator's barriers in shared memory, and the copies of the tensor memory accelerator.

A copy is done as late as it may be: when somebody waits for the barrier that its bytes arrive at.
Until then nobody may touch where it goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from support.simt import emulator as simt
from support.simt.hopper import (
    BASE,
    FENCED,
    LET_KNOW,
    SEEN,
    WRITTEN,
    Barrier,
    one,
    swizzled,
    units_at,
)


def init(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.mbarrier.init`."""
    address = one(operands[0], mask)
    memory, lanes = launch.hopper.memory, launch.lane[mask]
    blocks = launch.block[mask]
    assert np.unique(blocks).size == blocks.size == launch.blocks and address % 8 == 0
    at = units_at(launch, blocks, np.full(blocks.size, address - BASE))
    memory.writer[at], memory.write_epoch[at] = lanes, launch.epoch[blocks]
    count = np.full(launch.blocks, int(operands[1]))
    zeros = np.zeros(launch.blocks, np.int64)
    arrived = np.zeros((launch.blocks, launch.threads // 32), np.int32)
    launch.hopper.barriers[address] = Barrier(count, count.copy(), zeros, zeros.copy(), arrived)
    return []


def fence_init(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.fence.mbarrier.init`: copies may use the barriers from here on."""
    for barrier in launch.hopper.barriers.values():
        barrier.fenced = True
    return []


def _barrier(launch: Any, op: Any, pointer: Any, mask: np.ndarray) -> Barrier:
    address = one(pointer, mask)
    if address not in launch.hopper.barriers:
        raise simt.SimtError(f"{op}: no barrier at {address}")
    memory = launch.hopper.memory
    at = units_at(launch, launch.block[mask], np.full(mask.sum(), address - BASE))
    launch._check(op, memory.writer[at], memory.writer[at] // launch.threads,
                  memory.write_epoch[at], launch.lane[mask], launch.block[mask])  # fmt: skip
    return launch.hopper.barriers[address]


def arrive(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.mbarrier.arrive` and `.expect_tx`, which says how many bytes arrive, too."""
    for part in _alike(mask, operands[0]):
        barrier = _barrier(launch, op, operands[0], part)
        threads = np.bincount(launch.block[part], minlength=launch.blocks)
        mine = _written_by(launch, part, FENCED)
        launch.hopper.state[mine] = LET_KNOW
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
    parity = one(operands[1], mask)
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


def _see(launch: Any, barrier: Barrier, mask: np.ndarray) -> None:
    """What others wrote before they arrived is for products; where a product read, who knows that all its
    warps are done may write."""
    hopper = launch.hopper
    for units in barrier.written:
        hopper.state[units] = SEEN
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
    launch.hopper.state[_written_by(launch, mask, WRITTEN)] = FENCED
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
        places = swizzled(address + np.arange(data.size)) - BASE
        units = np.unique(units_at(launch, launch.block[lane], places))
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
    launch: Any, barrier: Barrier, block: int, places: np.ndarray, units: np.ndarray,
    data: np.ndarray,
) -> None:  # fmt: skip
    memory = launch.hopper.memory
    whole = memory.data.view(np.uint8)
    whole[block * (whole.size // launch.blocks) + places] = data
    memory.pending[units] = False
    barrier.bytes[block] -= data.size
