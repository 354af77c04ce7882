"""Products on tensor cores: asynchronous copies into shared memory, `ldmatrix`, `mma.sync`.

Four warps do a tile, each a quarter of it as fragments of 16 x 8 sums. Three depths of the tile are
in shared memory: while one is multiplied, the copies of the next two are under way. Where elements
can't be copied as they lie, threads read them into registers, and store them a step later.

Shared memory holds rows of 16-byte chunks, each row's chunks in an order of its own (swizzled), so
that the eight chunks that `ldmatrix` reads at once lie in different banks.
"""

from __future__ import annotations

from lamina.dialects.vendors import ir, vector
from lamina.passes.emit.loops import index
from lamina.passes.kernels.gpu.device.kernels import Kernels
from lamina.passes.kernels.gpu.device.threads import WARP, barrier, below, gpu_id, strided, zero_of
from lamina.passes.kernels.gpu.gemm.block import Arena, Block, emit_product
from lamina.passes.kernels.gpu.gemm.copies import (
    AsyncCopies,
    RegisterCopies,
    TileShape,
    copy_elements,
)
from lamina.passes.kernels.gpu.gemm.fragments import Groups, fragment, multiply_add, part, rounded
from lamina.passes.kernels.gpu.gemm.operand import modulo, over, padded_source, plus, times
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.kernels.gpu.gemm.tiling import Tiling, Unit, generation
from lamina.passes.kernels.gpu.machine import F8_AS_F16
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

_THREADS = 128
_RATES = {80: 1024, 86: 512, 90: 1280}
"""Products of 16-bit floats in a cycle of a multiprocessor, by `mma.sync`."""


class TensorCore(Record):
    """What a tensor core is given: `element` of each factor, and the body's ops that come before."""

    unit: Unit
    element: ir.Type
    before: tuple[tuple[ir.Operation, ...], tuple[ir.Operation, ...]]
    """Of a and b."""

    @property
    def is_tf32(self) -> bool:
        return isinstance(self.element, ir.F32Type)


def tensor_core_for(product: Product, arch: str, tf32: bool) -> TensorCore | None:
    """The tensor core operation that does a product exactly, or as `tf32` allows; None if there is
    none on this architecture."""
    made = generation(arch)
    if made < 80:
        return None
    factors = (product.a, product.b)
    narrow = [_narrow(product, factor) for factor in factors]
    if product.a.value.type != product.b.value.type:
        return None
    before = (product.a.before, product.b.before)
    wide, total = str(product.a.value.type), str(product.element)
    if narrow[0] is not None and narrow[0] == narrow[1]:
        element = narrow[0]
        kind = _KINDS.get((str(element), wide, total))
        if kind is not None and made >= kind[1]:
            left, right = (ops[:-1] for ops in before)
            return TensorCore(mma_unit(kind[0], element, made), element, (left, right))
    if tf32 and wide == total == "f32" and not any(_is_converted(product, f) for f in factors):
        return TensorCore(mma_unit("tf32", product.element, made), product.element, before)
    return None


# (element, what it is widened to, sum) -> (name, first generation)
_KINDS = {
    ("f16", "f32", "f32"): ("f16", 80),
    ("bf16", "f32", "f32"): ("bf16", 80),
    ("i8", "i32", "i32"): ("s8", 80),
    ("f8E4M3FN", "f32", "f32"): ("e4m3", 89),
    ("f8E5M2", "f32", "f32"): ("e5m2", 89),
}


def mma_unit(kind: str, element: ir.Type, made: int) -> Unit:
    """Warps that multiply elements of a type, by what the instruction calls it, on a generation of GPUs."""
    size = element_bytes(element)
    rate = max((at, rate) for at, rate in _RATES.items() if at <= made)[1]
    is_widened = size == 1 and isinstance(element, ir.FloatType) and made in F8_AS_F16
    return Unit(f"mma.{kind}", rate if is_widened else rate * 2 / size, size)


def _narrow(product: Product, factor: Factor) -> ir.Type | None:
    """What a factor is widened from, exactly, in the last op before it is multiplied."""
    padding = padded_source(product, factor)
    if factor.before:
        last = factor.before[-1]
        if last.results[0] != factor.value or (padding is not None and padding.conversion is not None):
            return None
    elif padding is not None and padding.conversion is not None and padding.is_zero:
        last = padding.conversion
    else:
        return None
    return last.operands[0].type if last.name in ("arith.extf", "arith.extsi") else None


def _is_converted(product: Product, factor: Factor) -> bool:
    padding = padded_source(product, factor)
    return padding is not None and padding.conversion is not None


def largest_edge(product: Product, core: TensorCore) -> int:
    """Of tiles: what goes through registers must fit there beside the sums."""
    copied = (
        copy_elements(product, factor, core.element, ops, padded_source(product, factor))
        for factor, ops in zip((product.a, product.b), core.before, strict=True)
    )
    return 128 if all(copied) else 64


def emit_mma(kernels: Kernels, product: Product, tiling: Tiling, core: TensorCore) -> None:
    """The kernels of a product that tensor cores do."""
    emit_product(kernels, product, tiling, _THREADS, lambda block: _Mma(block, core).emit())


class _Mma:
    """Emits one block's work."""

    def __init__(self, block: Block, core: TensorCore) -> None:
        self.block, self.core, self.tiling = block, core, block.tiling
        product, tiling = block.product, block.tiling
        self.bytes = tiling.unit.bytes
        edges = (tiling.rows, tiling.columns)
        shapes = [
            TileShape.of(product, factor, edge, tiling.depth, core.element, ops)
            for factor, edge, ops in zip((product.a, product.b), edges, core.before)
        ]
        sizes = [tiling.stages * edge * tiling.depth * self.bytes for edge in edges]
        staging = 2 * 16 * (tiling.columns + 8) * 4
        self.arena = Arena(block.kernel, max(sum(sizes), staging))
        self.tiles = []
        for factor, shape, offset, ops in zip(
            (product.a, product.b), shapes, (0, sizes[0]), core.before, strict=True
        ):
            buffer = self.arena.view(offset, [tiling.stages, *shape.shape], core.element)
            copies = AsyncCopies if shape.copied else RegisterCopies
            self.tiles.append(copies(block.operand(factor, ops, narrow=True), shape, buffer, _THREADS))
        self.is_f8 = self.bytes == 1 and isinstance(core.element, ir.FloatType)
        thread = gpu_id("thread_id")
        self.lane, warp = modulo(thread, WARP), over(thread, WARP)
        self.warp_row, self.warp_column = over(warp, 2), modulo(warp, 2)
        self.rows, self.columns = tiling.rows // 2, tiling.columns // 2  # of a warp

    def emit(self) -> None:
        self._finish(self._sums())

    # ---- the loop along k ------------------------------------------------------------------------
    def _sums(self) -> list[ir.Value]:
        block, stages, depth = self.block, self.tiling.stages, self.tiling.depth
        steps = block.steps
        groups = Groups()
        for stage in range(stages - 1):
            at = plus(block.first_depth, stage * depth)
            if stage < steps:
                for tile in self.tiles:
                    tile.put(index(stage), tile.read(index(stage), at))
                    if isinstance(tile, AsyncCopies):
                        groups.token = groups.token or tile.token
            groups.commit()
        zero = zero_of(block.product.element)
        type_ = ir.VectorType.get([2, 2], block.product.element)
        none = vector.FromElementsOp(type_, [zero] * 4).result
        fragments = (self.rows // 16) * (self.columns // 8)

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            groups.wait(stages - 2)
            barrier()
            following = plus(number, stages - 1)
            stage = modulo(following, stages)
            more = below(following, steps)
            start = plus(block.first_depth, times(following, depth))
            read = [tile.read_if(more, stage, start) for tile in self.tiles]
            groups.commit()
            sums = self._multiply(modulo(number, stages), carried)
            for tile, values in zip(self.tiles, read, strict=True):
                tile.put(stage, values)
            return sums

        sums = strided(index(0), steps, 1, [none] * fragments, step)
        barrier()
        return sums

    def _multiply(self, stage: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        a, b = self.tiles
        per = 32 // self.bytes  # of k, in one instruction
        sums = list(sums)
        for k in range(0, self.tiling.depth, per):
            down = times(self.warp_row, self.rows)
            left = [
                self._fragment(a, stage, down, row, k, True)
                for row in range(0, self.rows, 16)
            ]
            right: list[ir.Value] = []
            begin = times(self.warp_column, self.columns)
            for column in range(0, self.columns, 8 if self.is_f8 else 16):
                if self.is_f8:  # no other op may have such vectors
                    right.append(self._fragment(b, stage, begin, column, k, False, 2))
                else:
                    both = self._fragment(b, stage, begin, column, k, False)
                    right += [part(both, 0), part(both, 2)]
            for i, x in enumerate(left):
                for j, y in enumerate(right):
                    place = i * len(right) + j
                    sums[place] = multiply_add(x, y, sums[place], self.core.is_tf32)
        return sums

    def _fragment(
        self, tile: AsyncCopies | RegisterCopies, stage: ir.Value, row: ir.Value, further: int,
        k: int, rows_first: bool, matrices: int = 4,
    ) -> ir.Value:  # fmt: skip
        found = fragment(
            tile.buffer, tile.shape, self.lane, stage, row, further, k, rows_first, matrices
        )
        return rounded(found) if self.core.is_tf32 else found

    # ---- the results -----------------------------------------------------------------------------
    def _finish(self, sums: list[ir.Value]) -> None:
        """Stage 16 rows of each warp in shared memory, and store them."""
        element = self.block.product.element
        buffer = self.arena.view(0, [32, self.tiling.columns + 8], element)
        pair = ir.VectorType.get([2], element)
        row = plus(times(self.warp_row, 16), over(self.lane, 4))
        column = plus(times(self.warp_column, self.columns), times(modulo(self.lane, 4), 2))
        across = self.columns // 8
        for first in range(self.rows // 16):
            if first:
                barrier()
            for j in range(across):
                total = sums[first * across + j]
                for half in range(2):
                    values = [vector.ExtractOp(total, [], [half, n]).result for n in range(2)]
                    packed = vector.FromElementsOp(pair, values).result
                    at = [plus(row, 8 * half), plus(column, 8 * j)]
                    vector.StoreOp(packed, buffer, at, alignment=8)
            barrier()

            def row_of(staged: ir.Value, first: int = first) -> ir.Value:
                of_warp = times(over(staged, 16), self.rows)
                return plus(plus(of_warp, modulo(staged, 16)), 16 * first)

            self.block.store_tile(buffer, 32, _THREADS, row_of)
