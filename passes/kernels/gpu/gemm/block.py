"""What kernels of products have in common: a block's place in the grid, its shared memory, its
results, and the kernel that adds parts of k."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import index, load, store
from lamina.passes.kernels.gpu.device.kernels import Kernel, Kernels, TensorMap
from lamina.passes.kernels.gpu.device.threads import (
    SHARED_SPACE,
    below,
    gpu_id,
    positions,
    strided,
    when,
    zero_of,
)
from lamina.passes.kernels.gpu.gemm.operand import Bounds, Operand, modulo, over, plus, times
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.kernels.gpu.gemm.results import Results, combined, prepare
from lamina.passes.kernels.gpu.gemm.tiling import Tiling
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

TILING = "lamina.tiling"
_ADDING_THREADS = 256
_NEIGHBOURS = 4  # columns that a thread writes at once
_MOST_WRITTEN_OUT = 128  # code: ops that a thread does to what is staged
_TILE_ROWS = 8  # of tiles that neighbouring blocks do, one below the other


class Arena:
    """A block's shared memory, of which parts are seen as buffers of any type. Parts may overlap in
    time: a barrier must lie between."""

    def __init__(self, kernel: Kernel, size: int, dynamic: bool = False) -> None:
        byte = ir.IntegerType.get_signless(8)
        self.bytes = kernel.dynamic_shared(size) if dynamic else kernel.shared([size], byte)
        self.size = size

    def view(self, offset: int, shape: Sequence[int], element: ir.Type) -> ir.Value:
        """The part from `offset` on that holds a dense buffer."""
        space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), SHARED_SPACE)
        type_ = ir.MemRefType.get(list(shape), element, memory_space=space)
        assert offset + math.prod(shape) * element_bytes(element) <= self.size
        return ir.Operation.create(
            "memref.view", results=[type_], operands=[self.bytes, index(offset)]
        ).result


class Block(Record, frozen=False):
    """One block's share: a tile of the result at a place of the batch, and a part of k."""

    kernel: Kernel
    product: Product
    tiling: Tiling
    batch: Mapping[int, ir.Value]
    first_row: ir.Value
    first_column: ir.Value
    first_depth: ir.Value
    steps: int
    """Along k, each as deep as a tile."""
    write: Callable[[ir.Value, ir.Value, ir.Value], None]
    """(row, column, sum): rows and columns of the whole matrix, within bounds."""

    def operand(
        self, factor: Factor, ops: Sequence[ir.Operation], narrow: bool = False
    ) -> Operand:
        """A factor for this block; see `Operand`."""
        _, m, n, k = self.product.sizes
        is_a = factor is self.product.a
        rows, edge = (m, self.tiling.rows) if is_a else (n, self.tiling.columns)
        bounds = Bounds(rows, k, bool(rows % edge), k < self.steps * self.tiling.depth * self.tiling.splits)
        begin = self.first_row if is_a else self.first_column
        return Operand(
            self.product, factor, self.kernel.replaced, self.batch, begin, bounds, ops, narrow
        )

    def store_tile(
        self, staged: ir.Value, rows: int, threads: int, row_of: int | Callable[[ir.Value], ir.Value]
    ) -> None:
        """Write what is staged in shared memory, neighbouring columns by neighbouring threads;
        `row_of` says which row of the tile is staged in a row, or in the first one."""
        _, m, n, _ = self.product.sizes
        columns = self.tiling.columns
        # LLVM makes one access of neighbours where it sees that they are aligned.
        several = _NEIGHBOURS if n % _NEIGHBOURS == 0 and len(self.product.b.along) == 1 else 1
        groups = columns // several

        def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            staged_row, in_tile = over(number, groups), times(modulo(number, groups), several)
            in_tile_row = plus(staged_row, row_of) if isinstance(row_of, int) else row_of(staged_row)
            row = plus(self.first_row, in_tile_row)
            column = plus(self.first_column, in_tile)

            def write() -> None:
                sums = [load(staged, [staged_row, plus(in_tile, i)]) for i in range(several)]
                for i, total in enumerate(sums):
                    self.write(row, plus(column, i), total)

            tests = [below(row, m)] if m % self.tiling.rows else []
            tests += [below(column, n)] if n % columns else []
            if tests:
                when(tests[0] if len(tests) == 1 else arith.AndIOp(*tests).result, write)
            else:
                write()
            return []

        thread, items = gpu_id("thread_id"), rows * groups
        count = items // threads
        ops = sum(len(list(follower.generic.body.operations)) for follower in self.product.followers)
        # Where a thread's items lie below each other, written out they have one address; in flight together they must
        # take fewer registers than the tile's sums did.
        few = count * several * (1 + ops) <= _MOST_WRITTEN_OUT and 4 * rows <= self.tiling.rows
        if items % threads == threads % groups == 0 and few:
            for number in range(count):
                item(plus(thread, number * threads), [])
        else:
            strided(thread, items, threads, [], item)


def emit_product(
    kernels: Kernels, product: Product, tiling: Tiling, threads: int,
    emit: Callable[[Block], None], maps: Sequence[TensorMap] = (),
) -> None:  # fmt: skip
    """Kernels that do a product: the one that `emit` writes, and one that adds what its parts of k
    give."""
    batches, m, n, k = product.sizes
    tiles = -(-m // tiling.rows), -(-n // tiling.columns)
    grid = [batches, tiling.splits, math.prod(tiles)]
    steps = -(-k // (tiling.depth * tiling.splits))
    partial = _Parts(kernels, product, tiling) if tiling.splits > 1 else None

    def whole(kernel: Kernel) -> None:
        number, part, tile = positions(gpu_id("block_id"), grid)
        tile_row, tile_column = _tile(tile, *tiles)
        batch = _batch(product, number)
        block = Block(
            kernel, product, tiling, batch,
            times(tile_row, tiling.rows), times(tile_column, tiling.columns),
            times(part, steps * tiling.depth), steps, lambda *_: None,
        )  # fmt: skip
        operands = [block.operand(f, ()) for f in (product.a, product.b)]
        prepare(kernel, product, *operands)
        if partial is None:
            block.write = Results(kernel, product, batch).write
        else:
            buffer = partial.buffer(kernel)
            block.write = lambda row, column, total: store(
                total, buffer, [part, number, row, column]
            )
        emit(block)

    kernels.add([math.prod(grid)], [threads], product.generic.op, whole, maps)
    kernels.annotate(TILING, str(tiling))
    if partial is not None:
        partial.add()


def _tile(number: ir.Value, rows: int, columns: int) -> tuple[ir.Value, ir.Value]:
    """The row and column of a tile. Blocks that run at once do some rows of tiles by some columns, so
    that they read the same parts of memory."""
    if rows <= _TILE_ROWS:
        return modulo(number, rows), over(number, rows)
    strip, within = over(number, _TILE_ROWS * columns), modulo(number, _TILE_ROWS * columns)
    first = times(strip, _TILE_ROWS)
    if rows % _TILE_ROWS == 0:
        return plus(first, modulo(within, _TILE_ROWS)), over(within, _TILE_ROWS)
    height = arith.MinUIOp(arith.SubIOp(index(rows), first).result, index(_TILE_ROWS)).result
    row = arith.RemUIOp(within, height).result
    return arith.AddIOp(first, row).result, arith.DivUIOp(within, height).result


def _batch(product: Product, number: ir.Value) -> dict[int, ir.Value]:
    extents = [product.generic.extents[d] for d in product.batch]
    return dict(zip(product.batch, positions(number, extents)))


class _Parts:
    """Sums over parts of k, in scratch memory, and the kernel that adds them."""

    def __init__(self, kernels: Kernels, product: Product, tiling: Tiling) -> None:
        batches, m, n, _ = product.sizes
        self.kernels, self.product, self.splits = kernels, product, tiling.splits
        self.shape = [tiling.splits, batches, m, n]
        self.part = kernels.scratch(self.shape, product.element)

    def buffer(self, kernel: Kernel) -> ir.Value:
        """The sums, by part, batch, row and column."""
        return kernel.view(self.part)

    def add(self) -> None:
        """One more kernel: a thread for each element, which adds the parts from the first on."""
        product = self.product
        _, batches, m, n = self.shape
        items = batches * m * n
        blocks = min(2048, -(-items // _ADDING_THREADS))

        def emit(kernel: Kernel) -> None:
            prepare(kernel, product)
            buffer = self.buffer(kernel)
            first = plus(times(gpu_id("block_id"), _ADDING_THREADS), gpu_id("thread_id"))

            def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                batch, row, column = positions(number, [batches, m, n])

                def part(at: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                    return [combined(product, carried[0], load(buffer, [at, batch, row, column]))]

                total = strided(index(0), self.splits, 1, [zero_of(product.element)], part)[0]
                Results(kernel, product, _batch(product, batch)).write(row, column, total)
                return []

            strided(first, items, blocks * _ADDING_THREADS, [], item)

        self.kernels.add([blocks], [_ADDING_THREADS], product.generic.op, emit)


