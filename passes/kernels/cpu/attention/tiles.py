"""Products of bf16 in tile registers (AMX) for kernels of attention, and what they are multiplied from.

Instructions multiply rows by words that hold two neighbours along the sum: rows of an operand lie in
memory as they are wanted, and others are turned, or two of them put next to each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_steps, index
from lamina.passes.kernels.cpu.attention.blocks import Position, Range, array, plus
from lamina.passes.kernels.cpu.gemm.dot_factors import offset
from lamina.passes.kernels.cpu.gemm.dot_instructions import (
    TILE_ROWS,
    Tiles,
    kinds_of_blocks,
    pointer,
    splat,
    tile_instruction,
    with_elements,
)
from lamina.passes.kernels.cpu.gemm.dot_packing import interleaved, part_of
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor, load_vector, moved, store_vector
from lamina.passes.linalg.analysis.structure import stride_along
from lamina.passes.linalg.vectors.shuffles import transposed

LANES = 16  # of what is turned: words of pairs, and f32
_KEYS = 16  # keys are multiplied by multiples of these

RowOf = Callable[[ir.Value], Position]
"""Where a row is by its place in a block."""


class TileProducts:
    """Products in tiles of 16 rows and columns (`tdpbf16ps`)."""

    def __init__(self) -> None:
        self._shapes = array(64, element=ir.IntegerType.get_signless(8))

    def product(
        self, a: Factor, b: Factor, target: Factor, row: Range, column: Range, reduced: Range,
        at: Position, *, adds: bool,
    ) -> None:  # fmt: skip
        """target[row, column] = the sum of products of a, rows of bf16, and b, which holds words of
        two; or that is added. The sum is of so many pairs: a multiple of 8."""
        (row_dim, rows), (column_dim, columns), (reduced_dim, pairs) = row, column, reduced
        steps = _steps(pairs)
        groups = pairs // steps
        strides = [_bytes_along(f, d) for f, d in ((a, row_dim), (b, reduced_dim), (target, row_dim))]

        def block(tiles: Tiles, i: ir.Value, j: ir.Value) -> None:
            where = {**at, row_dim: i, column_dim: j}
            left = [moved(where, row_dim, r * TILE_ROWS) for r in range(len(tiles.rows))]
            top = [moved(where, column_dim, c * TILE_ROWS) for c in range(len(tiles.columns))]
            places = [
                _address(target, {**r, column_dim: c[column_dim]}) for r in left for c in top
            ]
            if adds:
                tiles.load_sums(places, strides[2])
            else:
                tiles.clear()

            def step(i: ir.Value) -> None:
                pair = arith.MulIOp(i, index(groups)).result
                first = {reduced_dim: arith.MulIOp(pair, index(2)).result}
                tiles.multiply(
                    [_address(a, r | first) for r in left], strides[0],
                    [_address(b, c | {reduced_dim: pair}) for c in top], strides[1],
                )  # fmt: skip

            for_steps(index(0), index(steps), 1, step)
            tiles.store_sums(places, strides[2])

        for low, high, size, row_parts in kinds_of_blocks(rows, TILE_ROWS):
            for start, end, width, column_parts in kinds_of_blocks(columns, TILE_ROWS):
                tiles = Tiles(row_parts, column_parts, tile_instruction("bf16", (True, True)), groups)
                tiles.configure(self._shapes)
                for_steps(
                    index(start), index(end), width,
                    lambda j, tiles=tiles, low=low, high=high, size=size: for_steps(  # type: ignore[misc]
                        index(low), index(high), size, lambda i: block(tiles, i, j)
                    ),
                )  # fmt: skip


def covered(keys: int) -> int:
    """How many keys are multiplied for so many."""
    return math.ceil(keys / _KEYS) * _KEYS


def turn_pairs(
    source: Factor, row_of: RowOf, width_dim: int, target: Factor, to: Callable[[ir.Value, ir.Value], Position],
    rows: int, width: int,
) -> None:  # fmt: skip
    """Pairs of neighbours along the width, turned: `to` says where in `target` a pair's word of a row
    is. Rows are whole sixteens, and so is the width."""
    pairs = width // 2

    def square(r: ir.Value, pair: ir.Value, count: int) -> None:
        found = []
        for i in range(LANES):
            first = arith.MulIOp(pair, index(2)).result
            place = {**row_of(plus(r, index(i))), width_dim: first}
            type_ = vector(2 * count, ir.BF16Type.get())
            row = with_elements(load_vector(source.buffer, source.at(place), type_), words(count))
            found.append(row if count == LANES else interleaved(row, row))
        for i, column in enumerate(transposed(found)[:: LANES // count]):
            store_vector(column, target.buffer, target.at(to(plus(pair, index(i)), r)))

    def some(r: ir.Value) -> None:
        whole = pairs // LANES * LANES
        for_steps(index(0), index(whole), LANES, lambda pair: square(r, pair, LANES))
        if whole < pairs:
            square(r, index(whole), pairs - whole)

    for_steps(index(0), index(rows), LANES, some)


def turn_rows(
    source: Factor, row_of: RowOf, width_dim: int, target: Factor, to: Callable[[ir.Value, ir.Value], Position],
    rows: int, width: int,
) -> None:  # fmt: skip
    """Rows of keys turned, `to` saying where in `target` a column's number of a row is; those that are
    missing to `covered` ones are zero."""
    type_ = vector(LANES, ir.BF16Type.get())
    none = splat(vector(LANES, ir.IntegerType.get_signless(16)), 0)
    whole = rows // (2 * LANES) * (2 * LANES)

    def square(start: ir.Value, column: ir.Value, there: int) -> None:
        found = []
        for i in range(2 * LANES):
            place = {**row_of(plus(start, index(i))), width_dim: column}
            is_there = i < there
            found.append(
                halves(load_vector(source.buffer, source.at(place), type_)) if is_there else none
            )
        pairs = [
            with_elements(interleaved(*found[i : i + 2]), words(LANES))
            for i in range(0, 2 * LANES, 2)
        ]
        count = covered(there)
        for i, row in enumerate(transposed(pairs)):
            row = row if count == 2 * LANES else part_of(row, 0, count // 2)
            numbers = with_elements(row, vector(count, ir.BF16Type.get()))
            store_vector(numbers, target.buffer, target.at(to(plus(column, index(i)), start)))

    def columns(start: ir.Value, there: int) -> None:
        for_steps(index(0), index(width), LANES, lambda c: square(start, c, there))

    for_steps(index(0), index(whole), 2 * LANES, lambda start: columns(start, 2 * LANES))
    if whole < rows:
        columns(index(whole), rows - whole)


def turn_sums(
    source: Callable[[ir.Value, ir.Value], list[ir.Value]], buffer: ir.Value, target: ir.Value,
    rows: int, width: int,
) -> None:  # fmt: skip
    """Sums that lie by width, then row, the other way round; `source` says where they are in a buffer."""

    def square(c: ir.Value, r: ir.Value) -> None:
        columns = [load_vector(buffer, source(plus(c, index(i)), r), floats()) for i in range(LANES)]
        for i, row in enumerate(transposed(columns)):
            store_vector(row, target, [plus(r, index(i)), c])

    for_steps(
        index(0), index(width), LANES,
        lambda c: for_steps(index(0), index(rows), LANES, lambda r: square(c, r)),
    )  # fmt: skip


def _steps(pairs: int) -> int:
    """The least number of equal parts of at most 16 pairs."""
    return next(n for n in range(math.ceil(pairs / TILE_ROWS), pairs + 1) if pairs % n == 0)


def _address(factor: Factor, place: Position) -> ir.Value:
    strides, _ = ir.MemRefType(factor.buffer.type).get_strides_and_offset()
    size = _element_bytes(factor)
    terms = [(i, stride * size) for i, stride in zip(factor.at(place), strides, strict=True)]
    return pointer(factor.buffer, offset(terms))


def _bytes_along(factor: Factor, dimension: int) -> int:
    return stride_along(factor.buffer, factor.map, dimension) * _element_bytes(factor)


def _element_bytes(factor: Factor) -> int:
    return 2 if isinstance(ir.MemRefType(factor.buffer.type).element_type, ir.BF16Type) else 4


def vector(lanes: int, element: ir.Type) -> ir.VectorType:
    """A vector of one dimension."""
    return ir.VectorType.get([lanes], element)


def words(lanes: int) -> ir.VectorType:
    """A vector of pairs."""
    return vector(lanes, ir.IntegerType.get_signless(32))


def halves(value: ir.Value) -> ir.Value:
    """Numbers of bf16 as integers: where processors lack bf16, moving those would round them."""
    lanes = ir.VectorType(value.type).shape[0]
    return with_elements(value, vector(lanes, ir.IntegerType.get_signless(16)))


def floats() -> ir.VectorType:
    """A vector of as many f32 as are turned."""
    return vector(LANES, ir.F32Type.get())
