"""The emulator's warpgroup products of sm_90a, and all ops that only it has.

What threads wrote, `wgmma` may read once they have fenced it, arrived at a barrier, and that was waited
for. It may read until its group is waited for: nobody may copy or write there before, and its sums may
not be looked at. Who waits for a barrier that readers then arrived at may write again. Descriptors are
read bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.simt import barriers as simt_barriers
from support.simt import emulator as simt
from support.simt import mma as simt_mma
from support.simt.hopper import (
    BASE,
    SEEN,
    WARPGROUP,
    Group,
    Pending,
    Sums,
    base_address,
    same,
    swizzled,
    units_at,
)
from support.simt.turns import WAIT


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
    lanes = np.flatnonzero(mask.reshape(-1, WARPGROUP).all(axis=1))
    assert mask.sum() == lanes.size * WARPGROUP and m == 64
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
    lanes = np.flatnonzero(mask.reshape(-1, WARPGROUP).all(axis=1))
    assert mask.sum() == lanes.size * WARPGROUP
    lane = np.arange(WARPGROUP)
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
    lane = np.arange(WARPGROUP)
    row, column = lane // 32 * 16 + lane % 32 // 4, lane % 4 * 2
    for group in groups:
        mine = slice(group * WARPGROUP, (group + 1) * WARPGROUP)
        a, b = factors(mine, launch.block[group * WARPGROUP])
        whole = np.int64 if np.issubdtype(a.dtype, np.integer) else np.float64
        product = a.astype(whole) @ b.astype(whole).T
        for j in range(b.shape[0] // 8):
            for half in range(2):
                for i in range(2):
                    values[mine, 4 * j + 2 * half + i] += product[row + 8 * half, 8 * j + column + i]
        group_in_block = group % (launch.threads // WARPGROUP)
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
    offset = swizzled(address) - BASE
    units = np.unique(units_at(launch, block, offset))
    memory = launch.hopper.memory
    launch._check_pending(op, memory, units)
    if (launch.hopper.state[units] != SEEN).any():
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


OPS: dict[str, Callable[..., list[Any]]] = {
    "memref.extract_aligned_pointer_as_index": base_address,
    "llvm.inttoptr": same,
    "llvm.addrspacecast": same,
    "llvm.mlir.zero": zero,
    "llvm.extractvalue": extract,
    "nvvm.barrier": simt_barriers.named_barrier,
    "nvvm.mbarrier.init": simt_barriers.init,
    "nvvm.fence.mbarrier.init": simt_barriers.fence_init,
    "nvvm.fence.proxy": simt_barriers.fence_written,
    "nvvm.mbarrier.arrive": simt_barriers.arrive,
    "nvvm.mbarrier.arrive.expect_tx": simt_barriers.arrive,
    WAIT: simt_barriers.try_wait,
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": simt_barriers.copy,
    "nvvm.wgmma.fence.aligned": fence,
    "nvvm.wgmma.mma_async": multiply,
    "nvvm.wgmma.commit.group.sync.aligned": commit,
    "nvvm.wgmma.wait.group.sync.aligned": wait,
}
