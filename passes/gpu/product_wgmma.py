"""Products on Hopper's tensor cores (sm_90a): boxes copied by the tensor memory accelerator, `wgmma`.

A block of three warpgroups does a tile of 128 rows. The third one's first thread keeps copies of the
next depths under way; the others multiply 64 rows each. For each depth that shared memory holds
there are two barriers: `full`, where the copies' bytes arrive, and `empty`, where the eight warps
that multiplied do. Parity is that of the round: a wait for the round before the first one ends at
once. Beyond a matrix's edges the copies write zeros.

Shared memory holds rows of 128 bytes, whose 16-byte chunks are swizzled by the row (address bits 4
to 6 xor bits 7 to 9). A factor's rows are along k; of one that is contiguous along its other
dimension, 64 elements of that, in blocks of a depth's rows. `wgmma` reads both; PTX ISA 9.0, 9.7.15
("asynchronous warpgroup level matrix"), says where by a descriptor: the address, and how far it is
from 8 rows to the next (and from block to block).

All warps have the same registers, 168 at most: the assembler that we have ignores `setmaxnreg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, memref, scf, vector
from lamina.passes.gpu.kernels import Kernels, TensorMap
from lamina.passes.gpu.product import Factor, Product
from lamina.passes.gpu.product_block import Arena, Block, emit_product
from lamina.passes.gpu.product_mma import TensorCore
from lamina.passes.gpu.product_operand import modulo, over, padded_source, plus, times
from lamina.passes.gpu.product_tiling import Tiling, Unit
from lamina.passes.gpu.threads import WARP, barrier, equals, gpu_id, strided, when
from lamina.passes.linalg.structure import root_buffer
from lamina.passes.loops import index
from lamina.passes.memref.place_temporaries import element_bytes

ROW_BYTES = 128
_ATOM = 8 * ROW_BYTES  # eight rows, after which the swizzle repeats
_WARPGROUP = 128
_CONSUMERS = 2 * _WARPGROUP
_TYPES = {"bf16": "bf16", "f16": "f16", "s8": "s8", "e4m3": "e4m3", "e5m2": "e5m2"}
_VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview",
          "memref.reinterpret_cast")  # fmt: skip
_MOST_DIMENSIONS = 5
_TICKS = 10_000_000  # nanoseconds at most before a wait tries again


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
    if type_.element_type != element or len(type_.shape) > _MOST_DIMENSIONS or not _is_plain(factor.buffer):
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
        kernels, product, tiling, _CONSUMERS + _WARPGROUP,
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
        self.barriers = tiling.stages * self.stage_bytes
        assert staged_bytes(tiling) <= self.barriers
        self.arena = Arena(block.kernel, self.barriers + 16 * tiling.stages, dynamic=True)
        address = memref.ExtractAlignedPointerAsIndexOp(self.arena.bytes).result
        self.address = arith.IndexCastOp(_i64(), address).result
        self.maps = block.kernel.maps
        self.thread = gpu_id("thread_id")

    def emit(self) -> None:
        """Barriers first, then the roles part."""
        stages = self.tiling.stages

        def initialise() -> None:
            for number in range(2 * stages):
                count = 1 if number < stages else _CONSUMERS // WARP
                where = self._pointer(_long(self.barriers + 8 * number))
                ir.Operation.create("nvvm.mbarrier.init", operands=[where, _word(count)])
            ir.Operation.create("nvvm.fence.mbarrier.init")

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
            stage, round_ = modulo(number, self.tiling.stages), over(number, self.tiling.stages)
            self._wait(self._barrier(stage, full=False), plus(round_, 1))
            full = self._barrier(stage, full=True)
            ir.Operation.create(
                "nvvm.mbarrier.arrive.expect_tx", operands=[full, _word(self.stage_bytes)]
            )
            depth = plus(self.block.first_depth, times(number, self.tiling.depth))
            base = self._stage(stage)
            for which, source in enumerate(self.sources):
                self._copy(which, source, depth, _add(base, which * self.tile_bytes[0]), full)
            return []

        when(equals(self.thread, _CONSUMERS), lambda: _nothing(
            strided(index(0), self.block.steps, 1, [], step)))  # fmt: skip

    def _copy(
        self, which: int, source: Source, depth: ir.Value, target: ir.Value, full: ir.Value
    ) -> None:
        """The boxes of a factor for one depth: one of all rows, or one for each 64."""
        product = self.block.product
        first = self.block.first_column if which else self.block.first_row
        rows = source.factor.along[0]
        for number in range(self.edges[which] // 64 if source.by_depth else 1):
            at = {**self.block.batch, rows: plus(first, 64 * number), product.reduced[0]: depth}
            coordinates = [arith.IndexCastOp(_i32(), at[d]).result for d in source.order]
            pointer = self._pointer(_add(target, number * self.tiling.depth * ROW_BYTES))
            cluster = ir.Operation.create(
                "llvm.addrspacecast", results=[ir.Type.parse("!llvm.ptr<7>")], operands=[pointer]
            ).result
            segments = [1, 1, len(coordinates), 1, 0, 0, 0, 0]
            ir.Operation.create(
                "nvvm.cp.async.bulk.tensor.shared.cluster.global",
                operands=[cluster, self.maps[which], *coordinates, full],
                attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)},
            )

    # ---- products --------------------------------------------------------------------------------
    def _consume(self) -> None:
        stages = self.tiling.stages
        count = self.tiling.columns // 2
        type_ = ir.Type.parse(f"!llvm.struct<({', '.join([str(self.block.product.element)] * count)})>")
        none = ir.Operation.create("llvm.mlir.zero", results=[type_]).result
        lane, warpgroup = modulo(self.thread, WARP), over(self.thread, _WARPGROUP)

        def release(number: ir.Value) -> None:
            empty = self._barrier(modulo(number, stages), full=False)
            ir.Operation.create("nvvm.mbarrier.arrive", results=[_i64()], operands=[empty])

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            stage, round_ = modulo(number, stages), over(number, stages)
            self._wait(self._barrier(stage, full=True), round_)
            (sums,) = carried
            ir.Operation.create("nvvm.wgmma.fence.aligned")
            base = self._stage(stage)
            for part in range(ROW_BYTES // 32):
                sums = self._multiply(base, warpgroup, part, sums)
            ir.Operation.create("nvvm.wgmma.commit.group.sync.aligned")
            _wait_for_products(1)
            # The step before this one is done: its depth may be overwritten.
            is_first = arith.CmpIOp(arith.CmpIPredicate.ne, number, index(0)).result
            free = arith.AndIOp(equals(lane, 0), is_first).result
            before = arith.SubIOp(number, index(1)).result
            when(free, lambda: release(before))
            return [sums]

        (sums,) = strided(index(0), self.block.steps, 1, [none], step)
        _wait_for_products(0)
        self._store(sums, lane)

    def _multiply(
        self, base: ir.Value, warpgroup: ir.Value, part: int, sums: ir.Value
    ) -> ir.Value:
        """32 bytes of k: 64 rows for each warpgroup."""
        a, b = self.sources
        mine = arith.IndexCastOp(_i64(), times(warpgroup, 64 * ROW_BYTES)).result
        left = arith.AddIOp(base, mine).result
        right = _add(base, self.tile_bytes[0])
        kind = _TYPES[self.tiling.unit.kind.removeprefix("wgmma.")]
        layouts = ["col" if a.by_depth else "row", "row" if b.by_depth else "col"]
        attribute = ir.Attribute.parse
        attributes = {
            "shape": attribute(
                f"#nvvm.shape<m = 64, n = {self.tiling.columns}, k = {32 // self.tiling.unit.bytes}>"
            ),
            "typeA": attribute(f"#nvvm.wgmma_type<{kind}>"),
            "typeB": attribute(f"#nvvm.wgmma_type<{kind}>"),
            "typeD": attribute(f"#nvvm.wgmma_type<{_sum_type(self.block.product.element)}>"),
            "scaleD": attribute("#nvvm.wgmma_scale_out<one>"),
            "scaleA": attribute("#nvvm.wgmma_scale_in<one>"),
            "scaleB": attribute("#nvvm.wgmma_scale_in<one>"),
            "layoutA": attribute(f"#nvvm.mma_layout<{layouts[0]}>"),
            "layoutB": attribute(f"#nvvm.mma_layout<{layouts[1]}>"),
        }
        if self.block.product.element == _i32():
            attributes["satfinite"] = attribute("#nvvm.mma_int_overflow<wrapped>")
        operands = [sums, self._descriptor(left, part, a), self._descriptor(right, part, b)]
        return ir.Operation.create(
            "nvvm.wgmma.mma_async", results=[sums.type], operands=operands, attributes=attributes
        ).result

    def _descriptor(self, address: ir.Value, part: int, source: Source) -> ir.Value:
        """Where `wgmma` finds a factor: address, from block to block, from 8 rows to the next, and
        that rows of 128 bytes are swizzled; all in units of 16 bytes."""
        if source.by_depth:  # 16 rows of k further
            begin, blocks = _add(address, part * 16 * ROW_BYTES), self.tiling.depth * ROW_BYTES
        else:
            begin, blocks = _add(address, part * 32), 16  # there are no blocks
        low = arith.ShRUIOp(arith.AndIOp(begin, _long(0x3FFFF)).result, _long(4)).result
        rest = (blocks >> 4) << 16 | (_ATOM >> 4) << 32 | 1 << 62
        return arith.OrIOp(low, _long(rest)).result

    # ---- the results -----------------------------------------------------------------------------
    def _store(self, sums: ir.Value, lane: ir.Value) -> None:
        """By way of shared memory, once all warps are done with what is there."""
        element = self.block.product.element
        tiling = self.tiling
        buffer = self.arena.view(0, [tiling.rows, tiling.columns + 8], element)
        pair = ir.VectorType.get([2], element)
        row = plus(times(over(self.thread, WARP), 16), over(lane, 4))
        column = times(modulo(lane, 4), 2)
        _named_barrier()
        for j in range(tiling.columns // 8):
            for half in range(2):
                values = [_extract(sums, 4 * j + 2 * half + n, element) for n in range(2)]
                packed = vector.FromElementsOp(pair, values).result
                at = [plus(row, 8 * half), plus(column, 8 * j)]
                vector.StoreOp(packed, buffer, at, alignment=8)
        _named_barrier()
        self.block.store_tile(buffer, tiling.rows, _CONSUMERS, 0)

    # ---- addresses -------------------------------------------------------------------------------
    def _stage(self, stage: ir.Value) -> ir.Value:
        offset = arith.IndexCastOp(_i64(), times(stage, self.stage_bytes)).result
        return arith.AddIOp(self.address, offset).result

    def _pointer(self, address: ir.Value) -> ir.Value:
        """To shared memory. Numbers that are constants count from the arena's beginning."""
        if _is_constant(address):
            address = arith.AddIOp(self.address, address).result
        return ir.Operation.create(
            "llvm.inttoptr", results=[ir.Type.parse("!llvm.ptr<3>")], operands=[address]
        ).result

    def _barrier(self, stage: ir.Value, full: bool) -> ir.Value:
        offset = plus(times(stage, 8), self.barriers + (0 if full else 8 * self.tiling.stages))
        there = arith.IndexCastOp(_i64(), offset).result
        return self._pointer(arith.AddIOp(self.address, there).result)

    def _wait(self, where: ir.Value, round_: ir.Value) -> None:
        """Until the barrier's phase with the round's parity is complete."""
        parity = arith.IndexCastOp(_i32(), modulo(round_, 2)).result
        ir.Operation.create(
            "nvvm.mbarrier.try_wait.parity", operands=[where, parity, _word(_TICKS)]
        )


def _sum_type(element: ir.Type) -> str:
    return "s32" if element == _i32() else "f32"


def _wait_for_products(groups: int) -> None:
    count = ir.IntegerAttr.get(_i64(), groups)
    ir.Operation.create("nvvm.wgmma.wait.group.sync.aligned", attributes={"group": count})


def _named_barrier() -> None:
    """All threads that multiply wait for each other."""
    ir.Operation.create(
        "nvvm.barrier",
        operands=[_word(1), _word(_CONSUMERS)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
    )


def _extract(sums: ir.Value, place: int, element: ir.Type) -> ir.Value:
    return ir.Operation.create(
        "llvm.extractvalue", results=[element], operands=[sums],
        attributes={"position": ir.DenseI64ArrayAttr.get([place])},
    ).result  # fmt: skip


def _is_constant(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "arith.constant"


def _add(address: ir.Value, offset: int) -> ir.Value:
    return address if offset == 0 else arith.AddIOp(address, _long(offset)).result


def _nothing(values: Sequence[ir.Value]) -> None:
    assert not values


def _long(value: int) -> ir.Value:
    return arith.ConstantOp(_i64(), value).result


def _word(value: int) -> ir.Value:
    return arith.ConstantOp(_i32(), value).result


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)
