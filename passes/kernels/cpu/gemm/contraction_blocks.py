"""What is common to those who compute contractions block by block: see `register_blocks` for one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import for_steps, index
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import Contraction, Tiling
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue
from lamina.passes.kernels.cpu.gemm.register_blocks import (
    Block,
    Factor,
    emit_block,
    load_vector,
    repeat,
    store_vector,
)
from lamina.passes.linalg.analysis.dense_access import flat
from lamina.passes.linalg.analysis.structure import stride_along
from lamina.records import Record

DEPTH = 288  # terms of the sums at a time, where those are too many
_NEAR_ROWS = 4  # shape: on a page: what fetches ahead in processors follows them
_LEAST_HEIGHT = 0.75  # shape: of the highest block: multiplications still wait for nothing but each other

Position = Mapping[int, ir.Value]


def steps_ahead(contraction: Contraction, b: Factor, dimension: int) -> int:
    """How many steps of a sum along a dimension the rows of `b`, where the second factor is read, are
    fetched ahead: none where they are near each other, or the factor is in the first cache."""
    machine = machine_of(contraction.generic.op)
    if contraction.bytes_of_b <= machine.l1_bytes * 2 // 3:
        return 0
    step = stride_along(b.buffer, b.map, dimension)
    return machine.ahead_terms if step * contraction.element_bytes * _NEAR_ROWS >= machine.page_bytes else 0


class Part(Record):
    """The terms of the sums that are being added, and whether they are the first."""

    terms: tuple[ir.Value, ir.Value]
    is_first: ir.Value


class Sums(Record):
    """A contraction's result while it grows."""

    c: Factor
    initial: ir.Value | None
    """What sums begin with; None for what c holds."""
    part: Part | None = None

    def of(
        self,
        block: Block,
        factors: tuple[Factor, Factor],
        extents: Sequence[int],
        position: Position,
        place: Position | None = None,
    ) -> list[ir.Value]:
        """The vectors of the block at a position, which is another `place` in c if that is given."""
        neutral: dict[ir.Type, ir.Value] = {}
        in_c = self.c.place(place or position)
        if self.initial is not None:
            types = dict.fromkeys(type_ for *_, type_ in block.places())
            neutral = {type_: repeat(self.initial, type_) for type_ in types}

        def initial(i: int, start: int, type_: ir.VectorType) -> ir.Value:
            if self.part is None and neutral:
                return neutral[type_]
            sums = load_vector(in_c.buffer, in_c.near((block.row, i), (block.column, start)), type_)
            if self.part is None or not neutral:
                return sums
            return arith.SelectOp(self.part.is_first, neutral[type_], sums).result

        return emit_block(
            block, factors, extents, position,
            [initial(*at) for at in block.places()],
            self.part.terms if self.part else None,
        )  # fmt: skip

    def store(self, block: Block, position: Position, values: Sequence[ir.Value]) -> None:
        """Write the vectors of the block at a position."""
        place = self.c.place(position)
        for value, (i, start, _) in zip(values, block.places(), strict=True):
            store_vector(value, place.buffer, place.near((block.row, i), (block.column, start)))


def follow(
    epilogue: Epilogue, block: Block, position: Position, values: Sequence[ir.Value]
) -> None:
    """Do what follows a contraction on the vectors of a block."""
    shape = [block.rows, sum(block.widths)]
    tile = memref.AllocOp(ir.MemRefType.get(shape, block.element), [], []).result
    row = flat(tile)
    for value, (i, start, _) in zip(values, block.places(), strict=True):
        store_vector(value, row, [index(i * shape[1] + start)])
    sizes = {block.row: shape[0], block.column: shape[1]}
    epilogue.emit(tile, (block.row, block.column), position, sizes)


def for_column_blocks(
    tiling: Tiling, columns: int, body: Callable[[ir.Value, tuple[int, ...]], None]
) -> None:
    """Loops over blocks of so many columns; `body` is given their first one and the widths of vectors."""
    whole = columns - sum(tiling.end)
    if tiling.middle and whole:
        for_steps(
            index(0), index(whole), sum(tiling.middle), lambda j: body(j, tiling.middle)
        )
    if tiling.end:
        body(index(whole), tiling.end)


def blocks_of_rows(count: int, most: int) -> list[tuple[int, int, int]]:
    """(low, high, rows of a block) for so many rows: blocks of one height where one that is not much less
    than the best divides them, which is half as much to compile, else of two that differ by a row."""
    blocks = math.ceil(count / most)
    rows = math.ceil(count / blocks)
    if count % rows:
        least = math.ceil(_LEAST_HEIGHT * rows)
        divisor = next((n for n in range(rows - 1, least - 1, -1) if count % n == 0), 0)
        if divisor:
            return [(0, count, divisor)]
    full = (count - blocks * (rows - 1)) * rows
    return [kind for kind in ((0, full, rows), (full, count, rows - 1)) if kind[0] < kind[1]]
