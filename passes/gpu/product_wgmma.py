"""Products on Hopper's tensor cores (sm_90a): boxes copied by the tensor memory accelerator, `wgmma`.

A block of three warpgroups does a tile of 128 rows. The third one's first thread keeps copies of the
next depths under way; the others multiply 64 rows each. For each depth that shared memory holds
there are two barriers: `full`, where the copies' bytes arrive, and `empty`, where the eight warps
that multiplied do. Parity is that of the round: a wait for the round before the first one ends at
once. Beyond a matrix's edges the copies write zeros.

A factor's rows in shared memory are along k; of one that is contiguous along its other dimension, 64
elements of that, in blocks of a depth's rows. `wgmma` reads both (`wgmma.py`).

All warps have the same registers, 168 at most: the assembler that we have ignores `setmaxnreg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, scf, vector
from lamina.passes.gpu.kernels import Kernels, TensorMap
from lamina.passes.gpu.product import Factor, Product
from lamina.passes.gpu.product_block import Arena, Block, emit_product
from lamina.passes.gpu.product_mma import TensorCore
from lamina.passes.gpu.product_operand import modulo, over, padded_source, plus, times
from lamina.passes.gpu.product_tiling import Tiling, Unit
from lamina.passes.gpu.threads import WARP, barrier, equals, gpu_id, strided, when
from lamina.passes.gpu.wgmma import (
    MOST_DIMENSIONS,
    ROW_BYTES,
    WARPGROUP,
    Barriers,
    SharedMemory,
    begin_products,
    copy_box,
    descriptor,
    end_products,
    fence_barriers,
    further,
    multiply,
    named_barrier,
    no_sums,
    sum_at,
    wait_for_products,
)
from lamina.passes.linalg.structure import root_buffer
from lamina.passes.loops import index
from lamina.passes.memref.place_temporaries import element_bytes

_CONSUMERS = 2 * WARPGROUP
_TYPES = ("bf16", "f16", "s8", "e4m3", "e5m2")
_VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview",
          "memref.reinterpret_cast")  # fmt: skip


@dataclass(frozen=True)
class Source:
    """How a factor lies in memory: `order` are the dimensions of the product along its buffer's,
    from the contiguous one out."""

    factor: Factor
    by_depth: bool
    """Whether it is contiguous along its rows, not along k."""
    order: tuple[int, ...]
    places: tuple[int, ...]
    """The buffer's dimension of each."""


def wgmma_unit(core: TensorCore) -> Unit:
    """What multiplies, where all conditions hold."""
    kind = core.unit.kind.removeprefix("mma.")
    return Unit(f"wgmma.{kind}", 2048 * 2 / core.unit.bytes, core.unit.bytes)


def sources_for(product: Product, core: TensorCore, arch: str) -> tuple[Source, Source] | None:
    """How both factors are copied; None where a product can't be done so: on other architectures,
    for elements that something is done on first, for convolutions, and for what is not aligned."""
    kind = core.unit.kind.removeprefix("mma.")
    if arch != "sm_90a" or kind not in _TYPES or any(core.before):
        return None
    found = [_source(product, factor, core.element) for factor in (product.a, product.b)]
    if found[0] is None or found[1] is None:
        return None
    return found[0], found[1]


def _source(product: Product, factor: Factor, element: ir.Type) -> Source | None:
    if padded_source(product, factor) is not None or len(factor.along) != 1 or len(product.reduced) != 1:
        return None
    type_ = ir.MemRefType(factor.buffer.type)
    if type_.element_type != element or len(type_.shape) > MOST_DIMENSIONS or not _is_plain(factor.buffer):
        return None
    used = [ir.AffineDimExpr(e).position for e in factor.map.results if isinstance(e, ir.AffineDimExpr)]
    if len(used) != len(type_.shape) or len(set(used)) != len(used):
        return None
    strides, offset = type_.get_strides_and_offset()
    size = element_bytes(element)
    places = sorted(range(len(used)), key=lambda place: (strides[place], -place))
    order = tuple(used[place] for place in places)
    by_depth = order[0] == factor.along[0]
    if strides[places[0]] != 1 or order[0] not in (*factor.along, *product.reduced):
        return None
    if by_depth and size != 2:
        return None
    if offset < 0 or any(n * size % 16 for n in (offset, *(strides[p] for p in places[1:]))):
        return None
    return Source(factor, by_depth, order, tuple(places))


def _is_plain(buffer: ir.Value) -> bool:
    """Whether the strides and the offset of a buffer's type tell where it lies in its root."""
    root = root_buffer(buffer)
    while buffer != root:
        op = buffer.owner.operation
        if op.name not in _VIEWS:
            return False
        buffer = op.operands[0]
    return isinstance(root.owner, ir.Block) or root.owner.operation.name == "memref.alloc"


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
        _tensor_map(kernels, product, source, edge, tiling.depth, core.element)
        for source, edge in zip(sources, edges, strict=True)
    ]
    emit_product(
        kernels, product, tiling, _CONSUMERS + WARPGROUP,
        lambda block: _Wgmma(block, core, sources).emit(), maps,
    )  # fmt: skip


def _tensor_map(
    kernels: Kernels, product: Product, source: Source, edge: int, depth: int, element: ir.Type
) -> TensorMap:
    buffer = source.factor.buffer
    strides, offset = ir.MemRefType(buffer.type).get_strides_and_offset()
    size = element_bytes(element)
    found = kernels.place_of(root_buffer(buffer))
    assert found is not None
    argument, begin = found
    rows = source.factor.along[0]
    lengths = {rows: 64 if source.by_depth else edge, product.reduced[0]: depth}
    return TensorMap(
        argument, begin + offset * size, element,
        tuple(product.generic.extents[d] for d in source.order),
        tuple(strides[place] * size for place in source.places[1:]),
        tuple(lengths.get(d, 1) for d in source.order),
    )  # fmt: skip


class _Wgmma:
    """Emits one block's work."""

    def __init__(self, block: Block, core: TensorCore, sources: tuple[Source, Source]) -> None:
        self.block, self.core, self.sources, self.tiling = block, core, sources, block.tiling
        tiling = block.tiling
        self.edges = (tiling.rows, tiling.columns)
        self.tile_bytes = [edge * ROW_BYTES for edge in self.edges]
        self.stage_bytes = sum(self.tile_bytes)
        tiles, stages = tiling.stages * self.stage_bytes, tiling.stages
        assert staged_bytes(tiling) <= tiles
        self.arena = Arena(block.kernel, tiles + 16 * stages, dynamic=True)
        self.memory = SharedMemory(self.arena)
        self.full = Barriers(self.memory, tiles, stages, 1)
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
        def step(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self.empty.wait(number, before=1)
            arrived = self.full.expect(number, self.stage_bytes)
            depth = plus(self.block.first_depth, times(number, self.tiling.depth))
            base = self._stage(number)
            for which, source in enumerate(self.sources):
                self._copy(which, source, depth, further(base, which * self.tile_bytes[0]), arrived)
            return []

        when(equals(self.thread, _CONSUMERS), lambda: _nothing(
            strided(index(0), self.block.steps, 1, [], step)))  # fmt: skip

    def _copy(
        self, which: int, source: Source, depth: ir.Value, target: ir.Value, arrived: ir.Value
    ) -> None:
        """The boxes of a factor for one depth: one of all rows, or one for each 64."""
        product = self.block.product
        first = self.block.first_column if which else self.block.first_row
        rows = source.factor.along[0]
        for number in range(self.edges[which] // 64 if source.by_depth else 1):
            at = {**self.block.batch, rows: plus(first, 64 * number), product.reduced[0]: depth}
            place = further(target, number * self.tiling.depth * ROW_BYTES)
            copy_box(self.maps[which], [at[d] for d in source.order], place, arrived)

    # ---- products --------------------------------------------------------------------------------
    def _consume(self) -> None:
        none = no_sums(self.tiling.columns // 2, self.block.product.element)
        lane, warpgroup = modulo(self.thread, WARP), over(self.thread, WARPGROUP)

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            self.full.wait(number)
            (sums,) = carried
            begin_products()
            base = self._stage(number)
            for part in range(ROW_BYTES // 32):
                sums = self._multiply(base, warpgroup, part, sums)
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
        self, base: ir.Value, warpgroup: ir.Value, part: int, sums: ir.Value
    ) -> ir.Value:
        """32 bytes of k: 64 rows for each warpgroup."""
        a, b = self.sources
        i64 = ir.IntegerType.get_signless(64)
        mine = arith.IndexCastOp(i64, times(warpgroup, 64 * ROW_BYTES)).result
        left = arith.AddIOp(base, mine).result
        right = further(base, self.tile_bytes[0])
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

    def _stage(self, number: ir.Value) -> ir.Value:
        return self.memory.at(times(modulo(number, self.tiling.stages), self.stage_bytes))


def _nothing(values: Sequence[ir.Value]) -> None:
    assert not values
