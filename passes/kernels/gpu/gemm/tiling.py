"""Which tiles a product's blocks do: the fastest by a model of a GPU's arithmetic and memory.

The model counts a GPU in cycles of one multiprocessor: as many blocks as it is given, each with its
steps along k, which take as long as their arithmetic or their reading, whichever is longer. Few
tiles leave multiprocessors idle: then k is split, and a second kernel adds the parts, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lamina.passes.kernels.gpu.machine import (
    BLOCK_CYCLES,
    BYTES_PER_CYCLE,
    LATENCY_CYCLES,
    LAUNCH_CYCLES,
    MULTIPROCESSORS,
    ROW_COPY_CYCLES,
    ROWS_HELD,
    SHARED_BYTES_PER_CYCLE,
    SHARED_BYTES_SM_90,
    STEP_CYCLES,
)
from lamina.records import Record

_MOST_SPLITS = 32  # rounding: parts of a sum
_MOST_STAGES = 6  # shape: of what is copied ahead


class Unit(Record):
    """What multiplies: threads by themselves, or a tensor core by warps (`kind` is what it reads)."""

    kind: str
    rate: float
    """Products in a cycle of a multiprocessor."""
    bytes: int
    """Of an element in a tile."""
    copied: tuple[str, str] = ("boxes", "boxes")
    """How a warpgroup's factors get to shared memory: as boxes, by threads, or through their registers."""

    @property
    def is_tensor_core(self) -> bool:
        return not self.kind.startswith("fma")

    @property
    def is_warpgroup(self) -> bool:
        """Whether four warps multiply together, from shared memory."""
        return self.kind.startswith("wgmma")


class Tiling(Record):
    """Rows, columns and depth of a block's tile, how many depths it holds at once, and parts of k."""

    unit: Unit
    rows: int
    columns: int
    depth: int
    stages: int
    splits: int
    cost: int = 0
    """Cycles of the whole product, by the model."""

    def __str__(self) -> str:
        split = f", {self.splits} parts of k" if self.splits > 1 else ""
        return (
            f"{self.unit.kind} {self.rows}x{self.columns}x{self.depth}, {self.stages} stages{split}, "
            f"{self.cost} cycles"
        )


def generation(arch: str) -> int:
    """80 for sm_80, 90 for sm_90a."""
    found = re.match(r"sm_(\d+)", arch)
    assert found
    return int(found[1])


def multiprocessors(arch: str) -> int:
    """How many a GPU of an architecture has: of the unknown ones, as many as Hopper's."""
    return MULTIPROCESSORS.get(generation(arch), MULTIPROCESSORS[90])


def fma_unit(bytes_: int, arch: str) -> Unit:
    """Threads that multiply elements of so many bytes."""
    rate = {4: 128, 8: 32, 16: 8}.get(bytes_, 64)
    return Unit(f"fma{8 * bytes_}", rate / 2 if generation(arch) == 80 and bytes_ == 4 else rate, bytes_)


def choose_tiling(
    sizes: tuple[int, int, int, int], unit: Unit, arch: str, largest: int = 128
) -> Tiling:
    """The cheapest tiling for (batches, m, n, k), with no more rows or columns than `largest`."""
    count = multiprocessors(arch)
    found = (_with_cost(t, sizes, count) for t in _candidates(sizes, unit, largest))
    return min(found, key=lambda tiling: (tiling.cost, -tiling.rows * tiling.columns))


def _candidates(
    sizes: tuple[int, int, int, int], unit: Unit, largest: int
) -> Iterator[Tiling]:
    k = sizes[3]
    if unit.is_warpgroup:
        for columns in (64, 128, 256):
            stages = min(_MOST_STAGES, SHARED_BYTES_SM_90 // ((128 + columns) * 128))
            splits = 1
            while splits <= _MOST_SPLITS and (splits == 1 or k * unit.bytes >= splits * 128 * 4):
                yield Tiling(unit, 128, columns, 128 // unit.bytes, stages, splits)
                splits *= 2
        return
    if unit.is_tensor_core:
        depth, stages = 64 // unit.bytes, 3
        edges: tuple[int, ...] = (32, 64, 128)
    else:
        depth, stages = (16 if unit.bytes <= 4 else 8), 2
        edges = (32, 64, 128) if unit.bytes <= 4 else (32,) if unit.bytes == 16 else (32, 64)
    edges = tuple(edge for edge in edges if edge <= largest)
    for rows in edges:
        for columns in edges:
            splits = 1
            while splits <= _MOST_SPLITS and (splits == 1 or k >= splits * depth * 4):
                yield Tiling(unit, rows, columns, depth, stages, splits)
                splits *= 2


def _with_cost(tiling: Tiling, sizes: tuple[int, int, int, int], count: int) -> Tiling:
    batch, m, n, k = sizes
    unit = tiling.unit
    rows, columns, depth = tiling.rows, tiling.columns, tiling.depth
    blocks = batch * -(-m // rows) * -(-n // columns) * tiling.splits
    steps = -(-k // (depth * tiling.splits))
    # What is read again for each product from shared memory, by a warpgroup, a warp or a thread.
    if unit.is_warpgroup:
        shared = (rows + rows / 64 * columns) * depth * unit.bytes
    elif unit.is_tensor_core:
        shared = rows * columns * depth * unit.bytes * (2 / rows + 2 / columns)
    else:
        shared = rows * columns * depth * unit.bytes * (16 / rows + 16 / columns) / 4
    step = max(
        rows * columns * depth / unit.rate,
        shared / SHARED_BYTES_PER_CYCLE,
        (rows + columns) * depth * unit.bytes / BYTES_PER_CYCLE,
    )
    edges = list(zip((rows, columns), unit.copied))
    by_threads = sum(edge for edge, how in edges if how != "boxes")
    waits = -(-sum(edge for edge, how in edges if how == "registers") // ROWS_HELD)
    step = max(step, by_threads * ROW_COPY_CYCLES + waits * LATENCY_CYCLES)
    mine = -(-blocks // count)
    # One block alone waits for memory; from two on, one computes while the other waits.
    alone = 2.0 if mine == 1 and not unit.is_warpgroup else 1.0
    between = 0 if unit.is_warpgroup else STEP_CYCLES  # two warpgroups take turns
    cost = mine * (steps * (step * alone + between) + BLOCK_CYCLES + rows * columns * 8 / BYTES_PER_CYCLE)
    if tiling.splits > 1:
        parts = batch * m * n * max(4, unit.bytes) * (tiling.splits + 1)
        cost += LAUNCH_CYCLES + parts / count / BYTES_PER_CYCLE
    return Tiling(
        unit, rows, columns, depth, tiling.stages, tiling.splits, round(cost)
    )
