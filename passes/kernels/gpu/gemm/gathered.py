"""How threads copy a product's factor to where `wgmma` reads it, where no box can be copied: windows of
convolutions; and factors of 8 or 32 bits that don't lie along k, which that has no other way to read.

Asynchronously where elements are copied as they lie, 16 bytes at a time. Else by way of registers: what
is contiguous along its rows is turned four rows at a time, and f32 is rounded to tf32.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.kernels.gpu.device.padding import place_in_source
from lamina.passes.kernels.gpu.device.threads import WARP, zero_of
from lamina.passes.kernels.gpu.gemm.block import Arena, Block
from lamina.passes.kernels.gpu.gemm.copies import AsyncCopies, TileShape, copy_elements
from lamina.passes.kernels.gpu.gemm.fragments import nearest_tf32
from lamina.passes.kernels.gpu.gemm.operand import Operand, modulo, over, padded_source, plus, times
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.kernels.gpu.gemm.wgmma import ROW_BYTES, WARPGROUP
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

_CHUNK = 16  # bytes that are copied at once
_CHUNKS = ROW_BYTES // _CHUNK
_TURNED = 4  # rows that a thread turns at once
_TURNED_ROWS, _TURNED_CHUNKS = 32, 4  # by a warp


class Gathered(Record):
    """A factor whose elements threads copy."""

    factor: Factor
    by_depth: bool
    """Whether it is in shared memory as it lies, along its rows."""
    turned: bool
    """Whether it lies along its rows, but is to be along k."""
    in_registers: bool

    @property
    def how(self) -> str:
        return "registers" if self.in_registers else "threads"

    def copies(
        self, block: Block, arena: Arena, offset: int, edge: int, element: ir.Type, thread: ir.Value
    ) -> AsyncCopies | ChunkCopies:  # fmt: skip
        """What copies tiles of so many rows, one behind the other, to shared memory; `thread` is the
        number among those of a warpgroup that do."""
        stages, depth = block.tiling.stages, block.tiling.depth
        size = element_bytes(element)
        width = ROW_BYTES // size
        lines = edge * depth // width
        buffer = arena.view(offset, [stages, lines, width], element)
        operand = block.operand(self.factor, (), narrow=True)
        if self.in_registers:
            return ChunkCopies(operand, buffer, edge, self.turned, thread)
        shape = _Tile(edge, depth, size, self.by_depth, _CHUNK // size)
        return AsyncCopies(operand, shape, buffer, WARPGROUP, thread)


def gathered_of(product: Product, factor: Factor, element: ir.Type) -> Gathered | None:
    """How threads copy a factor; None where it does not lie in runs of 16 bytes, or, if it is to be
    turned, of 4 elements."""
    padding = padded_source(product, factor)
    found = copy_elements(product, factor, element, (), padding, any_order=True)
    if found is None:
        return None
    by_rows, count = found
    size = element_bytes(element)
    turned = by_rows and size != 2
    if count < _TURNED if turned else count * size < _CHUNK:
        return None
    in_registers = turned or isinstance(element, ir.F32Type)
    if in_registers:  # as vectors, which are of the buffer's last dimension alone
        extents = product.generic.extents
        *_, fastest = (d for d in (factor.along if by_rows else product.reduced) if extents[d] > 1)
        last = len(factor.map.results) - 1
        if extents[fastest] % (_TURNED if turned else _CHUNK // size) or not factor.uses(last, fastest):
            return None
    return Gathered(factor, by_rows and not turned, turned, in_registers)


class _Tile(TileShape):
    """A tile whose lines are 128 bytes: where it is by depth, in blocks of 64 rows."""

    def place(self, line: ir.Value, at: ir.Value, further: int = 0) -> list[ir.Value]:
        line, place = super().place(line, at, further)
        if not self.by_depth:
            return [line, place]
        width = ROW_BYTES // self.bytes
        return [plus(line, times(over(place, width), self.depth)), modulo(place, width)]


class ChunkCopies:
    """Chunks of 16 bytes along k that are read into registers, finished there, and stored once the tile
    is free."""

    def __init__(
        self, operand: Operand, buffer: ir.Value, edge: int, turned: bool, thread: ir.Value
    ) -> None:
        self.operand, self.buffer, self.turned = operand, buffer, turned
        self.element = ir.MemRefType(buffer.type).element_type
        self.per = _CHUNK // element_bytes(self.element)
        if turned:
            # Lanes of a warp read whole sectors, and those that store at once do it in different banks.
            lane, warp = modulo(thread, WARP), over(thread, WARP)
            halves = _CHUNKS // _TURNED_CHUNKS
            group = plus(modulo(lane, 2), times(over(lane, 8), 2))
            row = plus(times(over(warp, halves), _TURNED_ROWS), times(group, _TURNED))
            chunk = plus(
                times(modulo(warp, halves), _TURNED_CHUNKS), modulo(over(lane, 2), _TURNED_CHUNKS)
            )
            together = WARPGROUP // WARP // halves * _TURNED_ROWS
        else:
            row, chunk = over(thread, _CHUNKS), modulo(thread, _CHUNKS)
            together = WARPGROUP // _CHUNKS
        self.chunk = chunk
        self.rows = [plus(row, first) for first in range(0, edge, together)]

    def read(self, first_depth: ir.Value) -> list[ir.Value]:
        """This thread's elements of the step that begins at a depth."""
        k = plus(times(self.chunk, self.per), first_depth)
        if self.turned:
            return [self._load(row, plus(k, n), _TURNED) for row in self.rows for n in range(self.per)]
        return [self._load(row, k, self.per) for row in self.rows]

    def _load(self, row: ir.Value, k: ir.Value, count: int) -> ir.Value:
        places, there = self.operand.position(row, k, count if self.turned else 1)
        if self.operand.padding is not None:
            places, inside = place_in_source(self.operand.padding, places)
            both = [test for test in (there, inside) if test is not None]
            there = arith.AndIOp(*both).result if len(both) == 2 else next(iter(both), None)
        type_ = ir.VectorType.get([count], self.element)
        size = count * element_bytes(self.element)
        found = vector.LoadOp(type_, self.operand.buffer, places, alignment=size).result
        if there is None:
            return found
        zeros = vector.FromElementsOp(type_, [zero_of(self.element)] * count).result
        return arith.SelectOp(there, found, zeros).result

    def put(self, stage: ir.Value, values: Sequence[ir.Value]) -> None:
        """Store them."""
        parts = [
            [vector.ExtractOp(value, [], [n]).result for n in range(ir.VectorType(value.type).shape[0])]
            for value in values
        ]
        for number, row in enumerate(self.rows):
            if not self.turned:
                self._store(stage, row, parts[number])
                continue
            mine = parts[number * self.per : (number + 1) * self.per]
            for n in range(_TURNED):
                self._store(stage, plus(row, n), [line[n] for line in mine])

    def _store(self, stage: ir.Value, row: ir.Value, values: Sequence[ir.Value]) -> None:
        if isinstance(self.element, ir.F32Type):
            values = [nearest_tf32(value) for value in values]
        type_ = ir.VectorType.get([self.per], self.element)
        packed = vector.FromElementsOp(type_, values).result
        moved = arith.XOrIOp(self.chunk, modulo(row, _CHUNKS)).result
        at = [stage, row, times(moved, self.per)]
        vector.StoreOp(packed, self.buffer, at, alignment=_CHUNK)

