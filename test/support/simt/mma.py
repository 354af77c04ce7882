"""The emulator's tensor cores and asynchronous copies: what `simt` does for `nvgpu` ops.

A copy's data is held back until a wait for its group: reading or writing where it goes before that is
refused. `ldmatrix` and copies count the conflicts of shared memory's banks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina.dialects.vendors import ir
from support.simt import emulator as simt

_BANKS, _BANK_BYTES = 32, 4


class Copies:
    """Copies that are under way, in the groups that were made of them."""

    def __init__(self) -> None:
        self.open: list[tuple[Any, ...]] = []
        self.groups: list[list[tuple[Any, ...]]] = []


def copy(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvgpu.device_async_copy`: elements that are not to be read are zero."""
    _, places, _, sources, given = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    target, source = operands[0], operands[1 + places]
    count = op.attributes["dstElements"].value
    size = count * target.data.itemsize
    if size not in (4, 8, 16) or ("bypassL1" in op.attributes) != (size == 16):
        raise simt.SimtError(f"{op}: no copy of {size} bytes is like this")
    wanted = np.broadcast_to(operands[-1] if given else count, launch.lane.shape)
    to = launch._place(op, operands[: 1 + places], mask, count)
    some = mask & (wanted > 0)
    # The last elements may be in the buffer's next rows: it is dense.
    at = launch._place(op, operands[1 + places : 2 + places + sources], some)
    if (at[some] % count).any() or (at[some] + count > source.data.size).any():
        raise simt.SimtError(f"{op}: not aligned, or out of the bounds of {source.shape}")
    values = np.stack([
        launch._load(op, source, at + n, some & (wanted > n)) for n in range(count)
    ], axis=-1)  # fmt: skip
    values[np.arange(count)[None, :] >= wanted[:, None]] = 0
    for n in range(count):
        launch._claim(op, target, to + n, mask)
    count_conflicts(launch, op, target, to, mask, size)
    launch.copies.open.append((op, target, to, values, mask.copy()))
    return [None]


def create_group(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvgpu.device_async_create_group`."""
    launch._everyone(op, mask, launch.hopper.together or launch.threads)
    launch.copies.groups.append(launch.copies.open)
    launch.copies.open = []
    return [None]


def wait(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvgpu.device_async_wait`: all but the last groups are done, in the threads that copied."""
    launch._everyone(op, mask, launch.hopper.together or launch.threads)
    left = op.attributes["numGroups"].value if "numGroups" in op.attributes else 0
    groups = launch.copies.groups
    while len(groups) > left:
        for by, target, to, values, where in groups.pop(0):
            for n in range(values.shape[-1]):
                units = target.units(to[where] + n)[0]
                target.memory.pending[units] = False
                launch._store(by, target, to + n, values[..., n], where)
    return []


def ldmatrix(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvgpu.ldmatrix`: lane 8 i + r says where row r of matrix i is; all lanes get parts."""
    launch._everyone(op, mask, launch.threads)
    view, *_ = operands
    tiles, per = op.results[0].type.shape
    count = 16 // view.data.itemsize
    place = launch._place(op, operands, mask, count)
    rows = np.stack([
        launch._load(op, view, place + n, mask, by_warp=True) for n in range(count)
    ], axis=-1)  # fmt: skip
    count_conflicts(launch, op, view, place, mask)
    matrices = rows.reshape(-1, 32, count)[:, : 8 * tiles].reshape(-1, tiles, 8, count)
    if op.attributes["transpose"].value:
        assert view.data.itemsize == 2
        matrices = matrices.swapaxes(2, 3)
    lane = np.arange(32)
    first = lane % 4 * per
    parts = matrices[:, :, (lane // 4)[:, None], first[:, None] + np.arange(per)]
    return [parts.swapaxes(1, 2).reshape(-1, tiles, per)]


def mma(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvgpu.mma.sync`: a 16 x 8 tile of sums in each warp."""
    launch._everyone(op, mask, launch.threads)
    a, b, c = (np.broadcast_to(x, (launch.lane.size, *x.shape[-2:])) for x in operands)
    if "tf32Enabled" in op.attributes:
        a, b = map(cut_to_tf32, (a, b))
    per = a.shape[-1]
    warps = launch.lane.size // 32
    lane = np.arange(32)
    g, t = lane // 4, lane % 4
    whole = np.int32 if c.dtype == np.int32 else np.float64
    left, right = np.zeros((warps, 16, 8 * per), whole), np.zeros((warps, 8 * per, 8), whole)
    for e in range(per):
        for i in range(4):
            k = t * per + e + i // 2 * 4 * per
            left[:, g + i % 2 * 8, k] = a.reshape(warps, 32, 4, per)[:, :, i, e]
        for i in range(2):
            right[:, t * per + e + i * 4 * per, g] = b.reshape(warps, 32, 2, per)[:, :, i, e]
    products = left @ right
    total = c.reshape(warps, 32, 2, 2).copy()
    for i in range(2):
        for j in range(2):
            total[:, :, i, j] = (total[:, :, i, j].astype(whole) + products[:, g + 8 * i, t * 2 + j]
                                 ).astype(c.dtype)  # fmt: skip
    return [total.reshape(-1, 2, 2)]


def to_tf32(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`nvvm.convert.float.to.tf32`: to nearest, ties away from zero."""
    return [round_to_tf32(operands[0]).view(np.int32)]


def round_to_tf32(values: Any) -> np.ndarray:
    """f32 rounded to the nearest of tf32, ties away from zero."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded, bits).astype(np.uint32).view(np.float32)


def cut_to_tf32(values: np.ndarray) -> np.ndarray:
    """The bits of f32 that tensor cores look at."""
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def count_conflicts(
    launch: Any, op: Any, view: Any, place: np.ndarray, mask: np.ndarray, size: int = 16
) -> None:
    """Notes how often the accesses that are done at once, of 128 bytes in all, meet in banks."""
    words = max(1, size // _BANK_BYTES)
    at_once = _BANKS // words
    first = place * view.data.itemsize // _BANK_BYTES
    for lanes in range(0, first.size, at_once):
        mine = first[lanes : lanes + at_once][mask[lanes : lanes + at_once]]
        touched = np.unique(mine[:, None] + np.arange(words)) % _BANKS
        if touched.size:
            launch.conflicts[op.name] += int(np.bincount(touched).max()) - 1


OPS: dict[str, Callable[..., list[Any]]] = {
    "nvgpu.device_async_copy": copy,
    "nvgpu.device_async_create_group": create_group,
    "nvgpu.device_async_wait": wait,
    "nvgpu.ldmatrix": ldmatrix,
    "nvgpu.mma.sync": mma,
    "nvvm.convert.float.to.tf32": to_tf32,
}
