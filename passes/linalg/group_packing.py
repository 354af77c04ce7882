"""Packing the second factor of a product for instructions that multiply groups; see `group_units`.

It becomes panels of as many columns as a vector has lanes: for each group of the sum the groups of
these columns lie next to each other. What is missing to whole panels and to whole tiles is zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.linalg.group_factors import Position, Rows, offset
from lamina.passes.linalg.group_units import (
    TILE_BYTES,
    Vectors,
    load_some,
    pointer,
    splat,
    store_at,
    with_elements,
)
from lamina.passes.linalg.interleaving import turned
from lamina.passes.loops import for_range, for_steps, index


@dataclass(frozen=True)
class Panels:
    """The second factor, packed: panels of `lanes` columns, each of `groups` vectors, at so many
    bytes for each position around, from a column on; and, where signs are flipped, what sums begin
    with."""

    buffer: ir.Value
    around: Mapping[int, int]
    lanes: int
    groups: int
    mending: ir.Value | None
    first: ir.Value | None

    @property
    def panel_bytes(self) -> int:
        return self.groups * self.lanes * 4

    def address(self, position: Position, column: ir.Value, group: ir.Value) -> ir.Value:
        """Where a group of the panel that begins with a column is."""
        terms = [(position[d], stride) for d, stride in self.around.items()]
        per_column = self.panel_bytes // self.lanes
        place = self._place(column)
        return pointer(self.buffer, offset([*terms, (place, per_column), (group, self.lanes * 4)]))

    def mending_address(self, position: Position, column: ir.Value) -> ir.Value:
        """Where the first sums of a panel are."""
        assert self.mending is not None
        terms = [(position[d], s // (self.panel_bytes // self.lanes) * 4)
                 for d, s in self.around.items()]  # fmt: skip
        return pointer(self.mending, offset([*terms, (self._place(column), 4)]))

    def _place(self, column: ir.Value) -> ir.Value:
        return column if self.first is None else arith.SubIOp(column, self.first).result


class Packer:
    """Writes the panels of one factor: all, or `some` columns from one on, of one position around."""

    def __init__(self, rows: Rows, extents: Mapping[int, int], columns: int, depth: int,
                 lanes: int, mended: Vectors | None,
                 some: tuple[ir.Value, int] | None = None) -> None:  # fmt: skip
        self._rows, self._columns, self._depth, self._lanes = rows, columns, depth, lanes
        self._group = 4 // rows.element_bytes
        groups = math.ceil(depth * rows.element_bytes / TILE_BYTES) * (TILE_BYTES // 4)
        first, held = some or (None, columns)
        panels = math.ceil(held / lanes)
        byte, word = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
        around, stride = {}, panels * groups * lanes * 4
        for d in reversed(list(rows.around) if some is None else []):
            around[d] = stride
            stride *= extents[d]
        buffer = memref.AllocOp(ir.MemRefType.get([stride], byte), [], []).result
        self._mended = mended
        mending = None
        if mended is not None:
            sums = ir.MemRefType.get([stride // (groups * 4)], word)
            mending = memref.AllocOp(sums, [], []).result
        self.panels = Panels(buffer, around, lanes, groups, mending, first)

    def pack(self, position: Position, panel: ir.Value) -> None:
        """Write one panel, whose number is `panel`."""
        column = arith.MulIOp(panel, index(self._lanes)).result
        rest = self._columns % self._lanes
        if not rest:
            self._panel(position, column, self._lanes)
            return
        whole = index(self._columns - rest)
        # Of these two loops one runs, once.
        for low, high, count in (
            (column, arith.MinSIOp(arith.AddIOp(column, index(1)).result, whole).result,
             self._lanes),
            (arith.MaxSIOp(column, whole).result, arith.AddIOp(column, index(1)).result, rest),
        ):  # fmt: skip
            for_steps(low, high, 1, lambda j, count=count: self._panel(position, j, count))  # type: ignore[misc]

    def _panel(self, position: Position, column: ir.Value, count: int) -> None:
        rows, lanes = self._rows, self._lanes
        sums = self._constant(0)
        in_groups = rows.depth == rows.element_bytes and self._group * rows.element_bytes == 4
        step = lanes if in_groups else 1
        make = self._turned if in_groups else self._interleaved
        whole = self._depth // (self._group * step)

        def some(group: ir.Value, sums: ir.Value, terms: int) -> ir.Value:
            for place, vector in enumerate(make(position, column, count, group, terms)):
                at = arith.AddIOp(group, index(place)).result
                store_at(vector, self.panels.address(position, column, at))
                if self._mended is not None:
                    ones = self._constant(0x01010101)
                    sums = self._mended.multiply(sums, ones, vector)
            return sums

        def body(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            group = arith.MulIOp(i, index(step)).result
            return [some(group, carried[0], self._group * step)]

        if whole:
            (sums,) = for_range(index(0), index(whole), [sums], body)
        done = whole * step
        rest = self._depth - done * self._group
        if rest:
            sums = some(index(done), sums, rest)
            done += step
        for group in range(done, self.panels.groups):
            store_at(self._constant(0), self.panels.address(position, column, index(group)))
        if self._mended is not None:
            factor = self._constant(self._mended.flip)
            mended = arith.MulIOp(sums, factor).result
            store_at(mended, self.panels.mending_address(position, column))

    def _interleaved(
        self, position: Position, column: ir.Value, count: int, group: ir.Value, terms: int
    ) -> list[ir.Value]:
        """One vector of groups, from rows whose columns lie next to each other."""
        rows, lanes = self._rows, self._lanes
        type_ = ir.VectorType.get([lanes], ir.IntegerType.get_signless(rows.element_bytes * 8))
        first = arith.MulIOp(group, index(self._group)).result
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
        first = arith.MulIOp(group, index(self._group)).result
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
        return turned(vectors)

    def _constant(self, value: int) -> ir.Value:
        word = ir.IntegerType.get_signless(32)
        return splat(ir.VectorType.get([self._lanes], word), value)


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
