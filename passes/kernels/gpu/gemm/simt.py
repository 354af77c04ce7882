"""Products of any element type by threads: tiles in shared memory, blocks of sums in registers.

256 threads do a tile; each has a block of its rows and columns. While a step along k is computed
from one half of the shared memory, the next step's elements are read, and then go into the other
half. Beyond the matrices' ends, elements of other rows are read again, and not used; beyond k they
are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir, vector
from lamina.passes.emit.loops import if_else, index, load, store
from lamina.passes.kernels.gpu.device.kernels import Kernels
from lamina.passes.kernels.gpu.device.threads import barrier, below, gpu_id, strided, zero_of
from lamina.passes.kernels.gpu.gemm.block import Arena, Block, emit_product
from lamina.passes.kernels.gpu.gemm.operand import Operand, modulo, over, plus, times
from lamina.passes.kernels.gpu.gemm.reading import Product
from lamina.passes.kernels.gpu.gemm.results import multiplied_and_added
from lamina.passes.kernels.gpu.gemm.tiling import Tiling
from lamina.passes.memref.place_temporaries import element_bytes

_THREADS = 256
_ACROSS = 16  # threads along a tile's rows, and along its columns


def emit_simt(kernels: Kernels, product: Product, tiling: Tiling) -> None:
    """The kernels of a product that threads do."""
    emit_product(kernels, product, tiling, _THREADS, lambda block: _Simt(block).emit())


class _Tile:
    """Two halves of shared memory for a factor's rows, by depth, and which elements a thread puts
    there."""

    def __init__(self, operand: Operand, buffer: ir.Value, rows: int, depth: int) -> None:
        self.operand, self.buffer = operand, buffer
        thread = gpu_id("thread_id")
        self.places: list[tuple[ir.Value, ir.Value]] = []
        innermost = operand.product.reduced[-1]
        if abs(operand.factor.stride(innermost)) == 1:  # neighbours along k to neighbouring threads
            per = _THREADS // depth
            k, row = modulo(thread, depth), over(thread, depth)
            self.places = [(plus(row, n * per), k) for n in range(rows // per)]
        else:
            per = _THREADS // rows
            row, k = modulo(thread, rows), over(thread, rows)
            self.places = [(row, plus(k, n * per)) for n in range(depth // per)]

    def read(self, first_depth: ir.Value) -> list[ir.Value]:
        """This thread's elements of the step that begins at a depth."""
        return [self.operand.element(row, plus(k, first_depth)) for row, k in self.places]

    def put(self, half: ir.Value, values: Sequence[ir.Value]) -> None:
        for (row, k), value in zip(self.places, values, strict=True):
            store(value, self.buffer, [half, k, row])


class _Simt:
    """Emits one block's work."""

    def __init__(self, block: Block) -> None:
        self.block, self.tiling = block, block.tiling
        product, tiling = block.product, block.tiling
        elements = [product.a.value.type, product.b.value.type]
        self.lanes = max(1, 16 // max(map(element_bytes, elements)))  # that one access reads
        edges = (tiling.rows, tiling.columns)
        if any(isinstance(e, ir.ComplexType) for e in elements):
            self.lanes = 1
        self.lanes = min(self.lanes, *(edge // _ACROSS for edge in edges))
        padded = [edge + max(1, 16 // element_bytes(e)) for edge, e in zip(edges, elements)]
        sizes = [2 * tiling.depth * p * element_bytes(e) for p, e in zip(padded, elements)]
        self.group = _ACROSS * self.lanes
        staging = self.group * (tiling.columns + 1) * element_bytes(product.element)
        self.arena = Arena(block.kernel, max(sum(sizes), staging))
        offsets = (0, sizes[0])
        self.a, self.b = (
            _Tile(
                block.operand(factor, factor.before),
                self.arena.view(offset, [2, tiling.depth, pitch], element),
                edge,
                tiling.depth,
            )
            for factor, offset, pitch, element, edge in zip(
                (product.a, product.b), offsets, padded, elements, edges
            )
        )
        thread = gpu_id("thread_id")
        self.down, self.across = over(thread, _ACROSS), modulo(thread, _ACROSS)
        self.counts = tuple(edge // _ACROSS for edge in edges)

    def emit(self) -> None:
        self._finish(self._sums())

    def _sums(self) -> list[ir.Value]:
        block = self.block
        rows, columns = self.counts
        zero = zero_of(block.product.element)
        first = block.first_depth
        for tile in (self.a, self.b):
            tile.put(index(0), tile.read(first))
        barrier()

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            following = plus(number, 1)
            start = plus(first, times(following, self.tiling.depth))
            more = below(following, block.steps)
            tiles = (self.a, self.b)
            types = [tile.operand.factor.value.type for tile in tiles for _ in tile.places]
            read = if_else(
                more,
                lambda: [value for tile in tiles for value in tile.read(start)],
                lambda: [zero_of(type_) for type_ in types],
                types,
            )
            sums = self._step(modulo(number, 2), carried)
            other = modulo(following, 2)
            count = len(self.a.places)
            self.a.put(other, read[:count])
            self.b.put(other, read[count:])
            barrier()
            return sums

        return strided(index(0), block.steps, 1, [zero] * (rows * columns), step)

    def _step(self, half: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        product = self.block.product

        def at_depth(k: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            left = self._read(self.a.buffer, half, k, self.down, self.counts[0])
            right = self._read(self.b.buffer, half, k, self.across, self.counts[1])
            pairs = [(x, y) for x in left for y in right]
            return [
                multiplied_and_added(product, x, y, total)
                for (x, y), total in zip(pairs, carried, strict=True)
            ]

        return strided(index(0), self.tiling.depth, 1, sums, at_depth)

    def _read(
        self, buffer: ir.Value, half: ir.Value, k: ir.Value, thread: ir.Value, count: int
    ) -> list[ir.Value]:
        element = ir.MemRefType(buffer.type).element_type
        found = []
        for first in range(0, count, self.lanes):
            place = plus(times(thread, self.lanes), first * _ACROSS)
            if self.lanes == 1:
                found.append(load(buffer, [half, k, place]))
                continue
            type_ = ir.VectorType.get([self.lanes], element)
            size = self.lanes * element_bytes(element)
            read = vector.LoadOp(type_, buffer, [half, k, place], alignment=size).result
            found += [vector.ExtractOp(read, [], [n]).result for n in range(self.lanes)]
        return found

    def _finish(self, sums: list[ir.Value]) -> None:
        """Stage the sums in shared memory, a part of the rows after the other, and store them."""
        columns = self.counts[1]
        buffer = self.arena.view(
            0, [self.group, self.tiling.columns + 1], self.block.product.element
        )
        for first in range(0, self.counts[0], self.lanes):
            if first:
                barrier()
            for row in range(self.lanes):
                for column in range(columns):
                    outer, inner = divmod(column, self.lanes)
                    place = plus(times(self.across, self.lanes), outer * self.group + inner)
                    at = plus(times(self.down, self.lanes), row)
                    store(sums[(first + row) * columns + column], buffer, [at, place])
            barrier()
            self.block.store_tile(buffer, self.group, _THREADS, first * _ACROSS)


