"""Products on Hopper's tensor cores (sm_90a): boxes copied by the tensor memory accelerator, `wgmma`.

A block of three warpgroups does a tile of 128 rows. The third one's first thread keeps copies of the
next depths under way, or, where a factor is no boxes, all of its threads do; the others multiply 64
rows each. For each depth that shared memory holds there are two barriers: `full`, where the copies'
bytes and the threads that copied arrive, and `empty`, where the eight warps that multiplied do. Beyond
a matrix's depth copies write zeros.

A factor's rows in shared memory are along k; of one that is contiguous along its other dimension, 64
elements of that, in blocks of a depth's rows. `wgmma` reads both (`wgmma.py`).

All warps have the same registers, 168 at most: the assembler that we have ignores `setmaxnreg`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import arith, ir, scf, vector
from lamina.passes.emit.loops import index
from lamina.passes.kernels.gpu.device.kernels import Kernels
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    barrier,
    below,
    equals,
    gpu_id,
    strided,
    when,
)
from lamina.passes.kernels.gpu.gemm.block import Arena, Block, emit_product
from lamina.passes.kernels.gpu.gemm.boxes import Boxes, boxes_of
from lamina.passes.kernels.gpu.gemm.copies import AsyncCopies
from lamina.passes.kernels.gpu.gemm.fragments import Groups
from lamina.passes.kernels.gpu.gemm.gathered import ChunkCopies, Gathered, gathered_of
from lamina.passes.kernels.gpu.gemm.mma import TensorCore
from lamina.passes.kernels.gpu.gemm.operand import modulo, over, plus, times
from lamina.passes.kernels.gpu.gemm.reading import Product
from lamina.passes.kernels.gpu.gemm.tiling import Tiling, Unit
from lamina.passes.kernels.gpu.gemm.wgmma import (
    ROW_BYTES,
    WARPGROUP,
    Barriers,
    SharedMemory,
    begin_products,
    descriptor,
    end_products,
    fence_barriers,
    fence_written,
    further,
    multiply,
    named_barrier,
    no_sums,
    sum_at,
    wait_for_products,
)
from lamina.passes.kernels.gpu.machine import ROWS_HELD

_CONSUMERS = 2 * WARPGROUP
_TYPES = ("bf16", "f16", "s8", "e4m3", "e5m2", "tf32")
_MOST_LAG = 3  # shape: steps that threads copy ahead of what they have let know

Source = Boxes | Gathered
"""How a factor gets to shared memory."""


def wgmma_unit(core: TensorCore, sources: tuple[Source, Source]) -> Unit:
    """What multiplies, where all conditions hold."""
    kind = core.unit.kind.removeprefix("mma.")
    a, b = (source.how for source in sources)
    return Unit(f"wgmma.{kind}", 2048 * 2 / core.unit.bytes, core.unit.bytes, (a, b))


def sources_for(product: Product, core: TensorCore, arch: str) -> tuple[Source, Source] | None:
    """How both factors are copied; None where a product can't be done so: on other architectures,
    for elements that something is done on first, and for what is not aligned."""
    kind = core.unit.kind.removeprefix("mma.")
    if arch != "sm_90a" or kind not in _TYPES or any(core.before):
        return None
    found = [
        boxes_of(product, factor, core.element) or gathered_of(product, factor, core.element)
        for factor in (product.a, product.b)
    ]
    if found[0] is None or found[1] is None:
        return None
    return found[0], found[1]


def staged_bytes(tiling: Tiling) -> int:
    """Of shared memory, what the results take on their way out."""
    return tiling.rows * (tiling.columns + 8) * 4


def emit_wgmma(
    kernels: Kernels, product: Product, tiling: Tiling, core: TensorCore,
    sources: tuple[Source, Source],
) -> None:  # fmt: skip
    """The kernels of such a product."""
    edges = (tiling.rows, tiling.columns)
    maps = [
        source.map(kernels, edge, tiling.depth, core.element)
        for source, edge in zip(sources, edges, strict=True) if isinstance(source, Boxes)
    ]  # fmt: skip
    emit_product(
        kernels, product, tiling, _CONSUMERS + WARPGROUP,
        lambda block: _Wgmma(block, core, sources).emit(), maps,
    )  # fmt: skip


class _Wgmma:
    """Emits one block's work."""

    def __init__(self, block: Block, core: TensorCore, sources: tuple[Source, Source]) -> None:
        self.block, self.sources, self.tiling = block, sources, block.tiling
        tiling, stages = block.tiling, block.tiling.stages
        self.edges = (tiling.rows, tiling.columns)
        self.tile_bytes = [edge * ROW_BYTES for edge in self.edges]
        self.begins = (0, stages * self.tile_bytes[0])
        tiles = stages * sum(self.tile_bytes)
        assert staged_bytes(tiling) <= tiles
        self.arena = Arena(block.kernel, tiles + 16 * stages, dynamic=True)
        self.memory = SharedMemory(self.arena)
        self.element = core.element
        self.boxed = [n for n, source in enumerate(sources) if isinstance(source, Boxes)]
        writers = WARPGROUP if len(self.boxed) < 2 else 0
        self.full = Barriers(self.memory, tiles, stages, writers + (1 if self.boxed else 0))
        self.empty = Barriers(self.memory, tiles + 8 * stages, stages, _CONSUMERS // WARP)
        self.maps = block.kernel.maps
        self.thread = gpu_id("thread_id")

    def emit(self) -> None:
        """Barriers first, then the roles part."""

        def initialise() -> None:
            self.full.initialise()
            self.empty.initialise()
            fence_barriers()

        when(equals(self.thread, 0), initialise)
        barrier()
        copies = arith.CmpIOp(arith.CmpIPredicate.uge, self.thread, index(_CONSUMERS)).result
        roles = ir.Operation.create("scf.if", operands=[copies], regions=2)
        for region, role in zip(roles.regions, (self._produce, self._consume), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                role()
                scf.YieldOp([])

    # ---- copies ----------------------------------------------------------------------------------
    def _produce(self) -> None:
        if len(self.boxed) == 2:
            when(equals(self.thread, _CONSUMERS), lambda: self._steps(0, self._boxes_of_step))
        else:
            self._gather()

    def _steps(self, more: int, step: Callable[[ir.Value], None]) -> None:
        def body(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            step(number)
            return []

        strided(index(0), self.block.steps + more, 1, [], body)

    def _boxes_of_step(self, number: ir.Value) -> None:
        self.empty.wait(number, before=1)
        self._copy_boxes(number)

    def _copy_boxes(self, number: ir.Value) -> None:
        """Those of a step along k, by one thread."""
        block = self.block
        arrived = self.full.expect(number, sum(self.tile_bytes[which] for which in self.boxed))
        firsts = (block.first_row, block.first_column)
        for map_, which in zip(self.maps, self.boxed, strict=True):
            source = self.sources[which]
            assert isinstance(source, Boxes)
            tile = (self.edges[which], self.tiling.depth)
            source.copy(
                map_, block.batch, firsts[which], self._depth(number), tile, self._tile(which, number), arrived
            )

    def _gather(self) -> None:
        """All threads of the warpgroup copy. What they do asynchronously they wait for some steps later."""
        stages, steps = self.tiling.stages, self.block.steps
        thread = arith.SubIOp(self.thread, index(_CONSUMERS)).result
        tiles = [
            source.copies(
                self.block, self.arena, self.begins[which], self.edges[which], self.element, thread
            )
            for which, source in enumerate(self.sources) if isinstance(source, Gathered)
        ]  # fmt: skip
        lag = min(_MOST_LAG, stages - 2) if any(isinstance(t, AsyncCopies) for t in tiles) else 0
        groups = Groups()
        if any(isinstance(tile, AsyncCopies) for tile in tiles):
            groups.begin()

        together = sum(self.edges) <= ROWS_HELD

        def copy(number: ir.Value) -> None:
            depth, stage = self._depth(number), modulo(number, stages)
            read: dict[int, list[ir.Value]] = {}
            for place, tile in enumerate(tiles):
                if isinstance(tile, ChunkCopies) and (together or not read):
                    read[place] = tile.read(depth)
            self.empty.wait(number, before=1)
            if self.boxed:
                when(equals(thread, 0), lambda: self._copy_boxes(number))
            for place, tile in enumerate(tiles):
                if isinstance(tile, ChunkCopies):
                    tile.put(stage, read[place] if place in read else tile.read(depth))
                else:
                    tile.fill(stage, depth)

        def step(number: ir.Value) -> None:
            if lag:
                when(below(number, steps), lambda: copy(number))
            else:
                copy(number)
            groups.commit()
            groups.wait(lag)
            fence_written()
            if lag:
                late = arith.CmpIOp(arith.CmpIPredicate.uge, number, index(lag)).result
                done = arith.SubIOp(number, index(lag)).result
                when(late, lambda: self.full.arrive(done))
            else:
                self.full.arrive(number)

        self._steps(lag, step)

    def _depth(self, number: ir.Value) -> ir.Value:
        return plus(self.block.first_depth, times(number, self.tiling.depth))

    # ---- products --------------------------------------------------------------------------------
    def _consume(self) -> None:
        none = no_sums(self.tiling.columns // 2, self.block.product.element)
        lane, warpgroup = modulo(self.thread, WARP), over(self.thread, WARPGROUP)

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            self.full.wait(number)
            (sums,) = carried
            begin_products()
            tiles = [self._tile(which, number) for which in range(2)]
            for part in range(ROW_BYTES // 32):
                sums = self._multiply(tiles, warpgroup, part, sums)
            end_products()
            wait_for_products(1)
            # The step before this one is done: its depth may be overwritten.
            is_first = arith.CmpIOp(arith.CmpIPredicate.ne, number, index(0)).result
            free = arith.AndIOp(equals(lane, 0), is_first).result
            before = arith.SubIOp(number, index(1)).result
            when(free, lambda: self.empty.arrive(before))
            return [sums]

        (sums,) = strided(index(0), self.block.steps, 1, [none], step)
        wait_for_products(0)
        self._store(sums, lane)

    def _multiply(
        self, tiles: Sequence[ir.Value], warpgroup: ir.Value, part: int, sums: ir.Value
    ) -> ir.Value:
        """32 bytes of k: 64 rows for each warpgroup."""
        a, b = self.sources
        i64 = ir.IntegerType.get_signless(64)
        mine = arith.IndexCastOp(i64, times(warpgroup, 64 * ROW_BYTES)).result
        left, right = arith.AddIOp(tiles[0], mine).result, tiles[1]
        is_whole = isinstance(self.block.product.element, ir.IntegerType)
        return multiply(
            sums, self._descriptor(left, part, a), self._descriptor(right, part, b),
            kind=self.tiling.unit.kind.removeprefix("wgmma."), sum_kind="s32" if is_whole else "f32",
            columns=self.tiling.columns, depth=32 // self.tiling.unit.bytes,
            across=(a.by_depth, b.by_depth),
        )  # fmt: skip

    def _descriptor(self, address: ir.Value, part: int, source: Source) -> ir.Value:
        if source.by_depth:  # 16 rows of k further
            return descriptor(further(address, part * 16 * ROW_BYTES), self.tiling.depth * ROW_BYTES)
        return descriptor(further(address, part * 32))

    # ---- the results -----------------------------------------------------------------------------
    def _store(self, sums: ir.Value, lane: ir.Value) -> None:
        """By way of shared memory, once all warps are done with what is there."""
        element = self.block.product.element
        tiling = self.tiling
        buffer = self.arena.view(0, [tiling.rows, tiling.columns + 8], element)
        pair = ir.VectorType.get([2], element)
        row = plus(times(over(self.thread, WARP), 16), over(lane, 4))
        column = times(modulo(lane, 4), 2)
        named_barrier(_CONSUMERS)
        for j in range(tiling.columns // 8):
            for half in range(2):
                values = [sum_at(sums, 4 * j + 2 * half + n, element) for n in range(2)]
                packed = vector.FromElementsOp(pair, values).result
                at = [plus(row, 8 * half), plus(column, 8 * j)]
                vector.StoreOp(packed, buffer, at, alignment=8)
        named_barrier(_CONSUMERS)
        self.block.store_tile(buffer, tiling.rows, _CONSUMERS, 0)

    def _tile(self, which: int, number: ir.Value) -> ir.Value:
        """Where a factor's part of a step along k is in shared memory."""
        size = self.tile_bytes[which]
        return self.memory.at(plus(times(modulo(number, self.tiling.stages), size), self.begins[which]))
