"""Packing the second factor of a dot-product GEMM; see `dot_instructions`.

It becomes panels of as many columns as a vector has lanes: for each group of the sum the groups of
these columns lie next to each other. What is missing to whole panels and to whole tiles is zero.
Where rows of columns are read, several panels are written at a time: each cache line is read once, and
fetched ahead where rows are far from each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import for_range, for_steps, index
from lamina.passes.framework.machine import Machine
from lamina.passes.kernels.cpu.gemm.dot_factors import Position, Rows, offset
from lamina.passes.kernels.cpu.gemm.dot_instructions import (
    TILE_BYTES,
    Vectors,
    load_some,
    pointer,
    prefetch_at,
    splat,
    store_at,
    with_elements,
)
from lamina.passes.linalg.vectors.shuffles import transposed
from lamina.records import Record

_PANELS = 8  # written at a time
_NEAR_ROWS = 4  # shape: on a page: what fetches ahead in processors follows them


class Panels(Record):
    """The second factor, packed: panels of `lanes` columns, each of `groups` vectors, at so many
    bytes for each position around, from a column on; and, where signs are flipped, what sums begin
    with."""

    buffer: ir.Value
    around: Mapping[int, int]
    lanes: int
    groups: int
    column_bytes: int
    mending: ir.Value | None
    first: ir.Value | None

    def address(self, position: Position, column: ir.Value, group: ir.Value) -> ir.Value:
        """Where a group of the panel that begins with a column is."""
        terms = [(position[d], stride) for d, stride in self.around.items()]
        place = self._place(column)
        return pointer(self.buffer, offset([*terms, (place, self.column_bytes), (group, self.lanes * 4)]))

    def mending_address(self, position: Position, column: ir.Value) -> ir.Value:
        """Where the first sums of a panel are."""
        assert self.mending is not None
        terms = [(position[d], s // self.column_bytes * 4)
                 for d, s in self.around.items()]  # fmt: skip
        return pointer(self.mending, offset([*terms, (self._place(column), 4)]))

    def _place(self, column: ir.Value) -> ir.Value:
        return column if self.first is None else arith.SubIOp(column, self.first).result


class Packer:
    """Writes the panels of one factor: all, or `some` columns from one on, of one position around. The
    terms of the sums are all, or `depth` of them, and `pack` says from which on."""

    def __init__(self, machine: Machine, rows: Rows, extents: Mapping[int, int], columns: int, depth: int,
                 lanes: int, mended: Vectors | None,
                 some: tuple[ir.Value, int] | None = None) -> None:  # fmt: skip
        self._rows, self._columns, self._depth, self._lanes = rows, columns, depth, lanes
        self._machine = machine
        self._begin: ir.Value | None = None
        self._group = 4 // rows.element_bytes
        groups = math.ceil(depth * rows.element_bytes / TILE_BYTES) * (TILE_BYTES // 4)
        first, held = some or (None, columns)
        panels = math.ceil(held / lanes)
        byte, word = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
        # A vector more than it holds: panels written side by side are in different sets of the cache.
        column_bytes = (groups + 1) * 4
        around, stride = {}, panels * lanes * column_bytes
        for d in reversed(list(rows.around) if some is None else []):
            around[d] = stride
            stride *= extents[d]
        buffer = memref.AllocOp(ir.MemRefType.get([stride], byte), [], []).result
        self._mended = mended
        mending = None
        if mended is not None:
            sums = ir.MemRefType.get([stride // column_bytes], word)
            mending = memref.AllocOp(sums, [], []).result
        self.panels = Panels(buffer, around, lanes, groups, column_bytes, mending, first)
        self.strip = min(strip_columns(rows, lanes), panels * lanes)

    @property
    def strips(self) -> int:
        """How many strips all columns are."""
        return math.ceil(self._columns / self.strip)

    def pack(self, position: Position, strip: ir.Value, begin: ir.Value | None = None) -> None:
        """Write the panels of one strip of columns, whose number is `strip`; their terms `begin` there."""
        self._begin = begin
        column = arith.MulIOp(strip, index(self.strip)).result
        rest = self._columns % self.strip
        if not rest:
            self._write(position, column, self.strip)
            return
        if rest == self._columns:
            self._write(position, column, rest)
            return
        whole = index(self._columns - rest)
        # Of these two loops one runs, once.
        for low, high, count in (
            (column, arith.MinSIOp(arith.AddIOp(column, index(1)).result, whole).result,
             self.strip),
            (arith.MaxSIOp(column, whole).result, arith.AddIOp(column, index(1)).result, rest),
        ):  # fmt: skip
            for_steps(low, high, 1, lambda j, count=count: self._write(position, j, count))  # type: ignore[misc]

    def _write(self, position: Position, column: ir.Value, count: int) -> None:
        """The panels of so many columns."""
        rows, lanes = self._rows, self._lanes
        panels = [
            (arith.AddIOp(column, index(start)).result if start else column, min(lanes, count - start))
            for start in range(0, count, lanes)
        ]
        in_groups = _in_groups(rows)
        step = lanes if in_groups else 1
        make = self._turned if in_groups else self._interleaved
        whole = self._depth // (self._group * step)

        def some(group: ir.Value, sums: list[ir.Value], terms: int) -> list[ir.Value]:
            if not in_groups:
                self._fetch(position, column, count, group)
            return [of(group, total, terms, *panel) for total, panel in zip(sums, panels, strict=True)]

        def of(group: ir.Value, sums: ir.Value, terms: int, left: ir.Value, width: int) -> ir.Value:
            for place, vector in enumerate(make(position, left, width, group, terms)):
                at = arith.AddIOp(group, index(place)).result
                store_at(vector, self.panels.address(position, left, at))
                if self._mended is not None:
                    ones = self._constant(0x01010101)
                    sums = self._mended.multiply(sums, ones, vector)
            return sums

        def body(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            group = arith.MulIOp(i, index(step)).result
            return some(group, carried, self._group * step)

        sums = [self._constant(0) for _ in panels]
        if whole:
            sums = list(for_range(index(0), index(whole), sums, body))
        done = whole * step
        rest = self._depth - done * self._group
        if rest:
            sums = some(index(done), sums, rest)
            done += step
        for group in range(done, self.panels.groups):
            for left, _ in panels:
                store_at(self._constant(0), self.panels.address(position, left, index(group)))
        if self._mended is not None:
            factor = self._constant(self._mended.flip)
            for (left, _), total in zip(panels, sums, strict=True):
                mended = arith.MulIOp(total, factor).result
                store_at(mended, self.panels.mending_address(position, left))

    def _fetch(self, position: Position, column: ir.Value, count: int, group: ir.Value) -> None:
        """Fetch rows that are to come."""
        rows = self._rows
        machine = self._machine
        if rows.depth * _NEAR_ROWS < machine.page_bytes:
            return
        first = self._first_term(group)
        for term in range(self._group):
            row = arith.AddIOp(first, index(machine.ahead_rows + term)).result
            for start in range(0, count, machine.line_bytes // rows.element_bytes):
                left = arith.AddIOp(column, index(start)).result if start else column
                prefetch_at(rows.address(position, left, row))

    def _first_term(self, group: ir.Value) -> ir.Value:
        first = arith.MulIOp(group, index(self._group)).result
        return first if self._begin is None else arith.AddIOp(self._begin, first).result

    def _interleaved(
        self, position: Position, column: ir.Value, count: int, group: ir.Value, terms: int
    ) -> list[ir.Value]:
        """One vector of groups, from rows whose columns lie next to each other."""
        rows, lanes = self._rows, self._lanes
        type_ = ir.VectorType.get([lanes], ir.IntegerType.get_signless(rows.element_bytes * 8))
        first = self._first_term(group)
        vectors = []
        for term in range(self._group):
            if term < terms:
                at = arith.AddIOp(first, index(term)).result
                vectors.append(load_some(rows.address(position, column, at), type_, count))
            else:
                vectors.append(splat(type_, 0))
        while len(vectors) > 1:
            half = len(vectors) // 2
            vectors = [interleaved(a, b) for a, b in zip(vectors[:half], vectors[half:])]
        word = ir.VectorType.get([lanes], ir.IntegerType.get_signless(32))
        return [with_elements(vectors[0], word)]

    def _turned(
        self, position: Position, column: ir.Value, count: int, group: ir.Value, terms: int
    ) -> list[ir.Value]:
        """As many vectors of groups as one has lanes, from columns whose sums' terms lie next to
        each other."""
        rows, lanes = self._rows, self._lanes
        element = ir.IntegerType.get_signless(rows.element_bytes * 8)
        word = ir.VectorType.get([lanes], ir.IntegerType.get_signless(32))
        first = self._first_term(group)
        wide = lanes * self._group
        vectors = []
        for place in range(lanes):
            if place < count:
                at = arith.AddIOp(column, index(place)).result
                address = rows.address(position, at, first)
                loaded = load_some(address, ir.VectorType.get([wide], element), terms)
                vectors.append(with_elements(loaded, word))
            else:
                vectors.append(self._constant(0))
        return transposed(vectors)

    def _constant(self, value: int) -> ir.Value:
        word = ir.IntegerType.get_signless(32)
        return splat(ir.VectorType.get([self._lanes], word), value)


def strip_columns(rows: Rows, lanes: int) -> int:
    """The columns that are packed at a time, if there are as many: of several panels where rows are read."""
    if _in_groups(rows) or rows.free != rows.element_bytes:
        return lanes
    return _PANELS * lanes


def _in_groups(rows: Rows) -> bool:
    """Whether the terms of a group lie next to each other."""
    return rows.depth == rows.element_bytes


def interleaved(a: ir.Value, b: ir.Value) -> ir.Value:
    """The elements of two vectors by turns."""
    lanes = ir.VectorType(a.type).shape[0]
    order = [i + side * lanes for i in range(lanes) for side in (0, 1)]
    return _shuffle(a, b, order)


def part_of(vector: ir.Value, start: int, count: int) -> ir.Value:
    """So many elements of a vector, from one on."""
    return _shuffle(vector, vector, list(range(start, start + count)))


def _shuffle(a: ir.Value, b: ir.Value, order: list[int]) -> ir.Value:
    type_ = ir.VectorType.get([len(order)], ir.VectorType(a.type).element_type)
    return ir.Operation.create(
        "vector.shuffle",
        results=[type_],
        operands=[a, b],
        attributes={"mask": ir.DenseI64ArrayAttr.get(order)},
    ).result
