"""The blocks of a dot-product GEMM: which a task computes, and how one is, in tiles or in vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_range, for_steps, index
from lamina.passes.kernels.cpu.gemm.dot_factors import Position, Rows
from lamina.passes.kernels.cpu.gemm.dot_instructions import (
    TILE_BYTES,
    TILE_ROWS,
    Kind,
    Tiles,
    Vectors,
    load_at,
    load_some,
    pointer,
    repeat_group,
    splat,
    store_some,
)
from lamina.passes.kernels.cpu.gemm.dot_packing import Panels
from lamina.records import Record

_State = TypeVar("_State")
Place = tuple[Position, int, int]
"""A position, and which of its dimensions are the rows' and the columns'."""


class Blocks(Record):
    """The blocks of a task that begins at a row and a column, has so many of them at most, of all there
    are, and of which kinds."""

    starts: list[ir.Value]
    sizes: tuple[int, int]
    extents: tuple[int, int]
    kinds: tuple[list[Kind], list[Kind]]

    def each(
        self,
        begin: Callable[[tuple[int, ...], tuple[int, ...]], _State],
        body: Callable[[ir.Value, ir.Value, tuple[int, ...], tuple[int, ...], _State], None],
    ) -> None:
        """Loops over blocks, `body` given the first row and column and the parts of both, and what `begin`
        made for all blocks of the same parts."""

        def columns_of(kind: Kind) -> Callable[[ir.Value], None]:
            def at_column(j: ir.Value) -> None:
                for row_kind in self.kinds[0]:
                    state = begin(row_kind[3], kind[3])

                    def at_row(i: ir.Value, rows: tuple[int, ...] = row_kind[3], state: _State = state) -> None:
                        body(i, j, rows, kind[3], state)

                    self._of_kind(0, row_kind, at_row)

            return at_column

        for kind in self.kinds[1]:
            self._of_kind(1, kind, columns_of(kind))

    def within(self, row: ir.Value, column: ir.Value) -> list[ir.Value]:
        """A place from where the task begins."""
        return [arith.SubIOp(at, start).result for at, start in zip((row, column), self.starts, strict=True)]

    def _of_kind(self, side: int, kind: Kind, body: Callable[[ir.Value], None]) -> None:
        start, size = self.starts[side], self.sizes[side]
        low, high, step, _ = kind
        if size >= self.extents[side]:
            for_steps(index(low), index(high), step, body)
            return
        end = arith.AddIOp(start, index(size)).result
        first = arith.MaxSIOp(start, index(low)).result if low else start
        for_steps(first, arith.MinSIOp(end, index(high)).result, step, body)


class Part(Record):
    """Terms of the sums, which begin with one: the second factor's panels of them."""

    panels: Panels
    terms: int
    begin: ir.Value | None = None

    def of_first(self, rows: Rows, at: Position, row: ir.Value, term: ir.Value) -> ir.Value:
        """Where the first factor has a term of a row."""
        if self.begin is not None:
            term = arith.AddIOp(self.begin, term).result
        return rows.address(at, row, term)


class Target(Record):
    """Where the sums of a block are stored: the buffer, bytes from row to row, the first's place."""

    buffer: ir.Value
    row_bytes: int
    start: ir.Value

    def place(self, row: int, start_bytes: int) -> ir.Value:
        """The address of so many bytes in a row."""
        return pointer(self.buffer, moved_by(self.start, row * self.row_bytes + start_bytes))


def tile_block(
    a: Rows, part: Part, tiles: Tiles, place: Place, target: Target, adds: bool
) -> None:
    """Sums of a block in tile registers, which add to what their places hold if `adds`."""
    at, row, column = place
    places = [
        target.place(r * TILE_ROWS, n * TILE_BYTES)
        for r in range(len(tiles.rows))
        for n in range(len(tiles.columns))
    ]
    if adds:
        tiles.load_sums(places, target.row_bytes)
    else:
        tiles.clear()
    per_step = TILE_BYTES // a.element_bytes

    def step(i: ir.Value) -> None:
        term = arith.MulIOp(i, index(per_step)).result
        group = arith.MulIOp(i, index(TILE_BYTES // 4)).result
        rows = [
            part.of_first(a, at, moved_by(at[row], r * TILE_ROWS), term)
            for r in range(len(tiles.rows))
        ]
        columns = [
            part.panels.address(at, moved_by(at[column], n * TILE_ROWS), group)
            for n in range(len(tiles.columns))
        ]
        tiles.multiply(rows, a.free, columns)

    for_steps(index(0), index(math.ceil(part.terms / per_step)), 1, step)
    tiles.store_sums(places, target.row_bytes)


def vector_block(
    a: Rows, part: Part, unit: Vectors, sizes: tuple[int, tuple[int, ...]], place: Place,
    target: Target, adds: bool,
) -> None:  # fmt: skip
    """Sums of a block of so many rows, and columns in vectors, in vector registers."""
    at, row, column = place
    rows, widths = sizes
    word = ir.IntegerType.get_signless(32)
    vector = ir.VectorType.get([unit.lanes], word)

    def initial(r: int, n: int, width: int) -> ir.Value:
        left = moved_by(at[column], n * unit.lanes)
        if adds:
            sums = load_some(target.place(r, n * unit.lanes * 4), vector, width)
        else:
            sums = splat(vector, 0)
        if part.panels.mending is None:
            return sums
        return arith.AddIOp(sums, load_at(part.panels.mending_address(at, left), vector)).result

    def step(i: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        term = arith.MulIOp(i, index(unit.group)).result
        b = [
            load_at(part.panels.address(at, moved_by(at[column], n * unit.lanes), i), vector)
            for n in range(len(widths))
        ]
        found: list[ir.Value] = []
        for r in range(rows):
            group = load_at(part.of_first(a, at, moved_by(at[row], r), term), word)
            repeated = repeat_group(group, unit.lanes)
            for factor in b:
                found.append(unit.multiply(sums[len(found)], repeated, factor))
        return found

    begin = [initial(r, n, width) for r in range(rows) for n, width in enumerate(widths)]
    groups = math.ceil(part.terms / unit.group)
    sums = iter(for_range(index(0), index(groups), begin, step))
    for r in range(rows):
        for n, width in enumerate(widths):
            store_some(next(sums), target.place(r, n * unit.lanes * 4), width)


def moved_by(value: ir.Value, by: int) -> ir.Value:
    """A number and so many."""
    return arith.AddIOp(value, index(by)).result if by else value
