"""Laying out the factors of a product for instructions that multiply groups; see `group_units`.

The second factor becomes panels of as many columns as a vector has lanes: for each group of the sum
the groups of these columns lie next to each other. What is missing to whole panels and to whole
tiles is zero. The first factor stays as it is where its rows can be read in groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.linalg.group_units import (
    TILE_BYTES,
    Vectors,
    load_some,
    pointer,
    splat,
    store_at,
)
from lamina.passes.linalg.narrow_products import NarrowFactor
from lamina.passes.linalg.structure import make_generic, stride_along, subview
from lamina.passes.loops import for_range, for_steps, index

Position = Mapping[int, ir.Value]
_SIGN = 128


@dataclass(frozen=True)
class Rows:
    """A factor by its strides in bytes: along the dimensions around, along the rows (or columns),
    and along the sum, all of whose dimensions are one here."""

    buffer: ir.Value
    around: Mapping[int, int]
    free: int
    depth: int
    element_bytes: int

    def address(self, position: Position, free: ir.Value, depth: ir.Value) -> ir.Value:
        """The address of an element."""
        terms = [(position[d], stride) for d, stride in self.around.items()]
        return pointer(self.buffer, offset([*terms, (free, self.free), (depth, self.depth)]))


def offset(terms: Sequence[tuple[ir.Value, int]]) -> ir.Value:
    """The sum of positions times strides."""
    total = index(0)
    for value, stride in terms:
        if stride:
            scaled = arith.MulIOp(value, index(stride)).result
            total = arith.AddIOp(total, scaled).result
    return total


def rows_in_place(
    factor: NarrowFactor, free: int, around: Sequence[int], reduced: Sequence[int],
    extents: Sequence[int],
) -> Rows | None:  # fmt: skip
    """The factor where it lies; None if its sum is no single stride, or it is a part of a buffer."""
    buffer, map_ = factor.factor.buffer, factor.factor.map
    type_ = ir.MemRefType(buffer.type)
    strides, start = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if start or dynamic in strides or any(_has_constant(e) for e in map_.results):
        return None
    size = _bytes_of(type_.element_type)

    def stride(d: int) -> int:
        return stride_along(buffer, map_, d) * size

    inner, step = 1, 0
    for d in reversed([d for d in reduced if extents[d] > 1]):
        if inner > 1 and stride(d) != inner * step:
            return None
        if inner == 1:
            step = stride(d)
        inner *= extents[d]
    return Rows(buffer, {d: stride(d) for d in around if stride(d)}, stride(free), step, size)


def _has_constant(expression: ir.AffineExpr) -> bool:
    if isinstance(expression, ir.AffineConstantExpr):
        return ir.AffineConstantExpr(expression).value != 0
    if isinstance(expression, ir.AffineAddExpr):
        parts = ir.AffineAddExpr(expression)
        return _has_constant(parts.lhs) or _has_constant(parts.rhs)
    return False


def copied_rows(
    factor: NarrowFactor, free: int, around: Sequence[int], reduced: Sequence[int],
    extents: Sequence[int], multiple: int, bits: int = 0, flip: bool = False,
) -> Rows:  # fmt: skip
    """A copy with the sum innermost, as integers of so many `bits` (0: as they are), with their
    sign bits turned if `flip` says so. Its rows have a multiple of so many bytes; what is added is
    zero, and with several dimensions in the sum nothing may have to be."""
    source, map_ = factor.factor.buffer, factor.factor.map
    narrow = ir.MemRefType(source.type).element_type
    element = ir.IntegerType.get_signless(bits) if bits else narrow
    used = [d for d in around if stride_along(source, map_, d)]
    size = _bytes_of(element)
    terms = math.prod(extents[d] for d in reduced)
    padded = math.ceil(terms * size / multiple) * multiple // size
    inner = [d for d in reduced if extents[d] > 1] or list(reduced[:1])
    pads = padded != terms
    order = [*used, free, *inner]
    shape = [extents[d] for d in order]
    whole = shape if not pads else [*shape[:-1], padded]
    assert not pads or len(inner) == 1, "several dimensions are made one first"
    buffer = memref.AllocOp(ir.MemRefType.get(whole, element), [], []).result
    target = buffer
    if pads:
        _fill_with_zero(buffer)
        target = subview(buffer, [0] * len(shape), shape)
    places = {d: ir.AffineDimExpr.get(place) for place, d in enumerate(order)}
    unused = ir.AffineConstantExpr.get(0)
    rank = len(order)
    renaming = ir.AffineMap.get(rank, 0, [places.get(d, unused) for d in range(len(extents))])
    reading = ir.AffineMap.get(rank, 0, [e.compose(renaming) for e in map_.results])
    identity = ir.AffineMap.get_identity(rank)
    copy = make_generic([source], [target], [reading, identity], [False] * rank)
    block = copy.regions[0].blocks.append(narrow, element)
    with ir.InsertionPoint(block):
        value: ir.Value = block.arguments[0]
        if flip:
            value = arith.XOrIOp(value, arith.ConstantOp(element, -_SIGN).result).result
        if bits and element != narrow:
            value = (arith.ExtSIOp if factor.signed else arith.ExtUIOp)(element, value).result
        ir.Operation.create("linalg.yield", operands=[value])
    row = padded * size
    steps, stride = {}, row * extents[free]
    for d in reversed(used):
        steps[d] = stride
        stride *= extents[d]
    return Rows(buffer, steps, row, size, size)


def _fill_with_zero(buffer: ir.Value) -> None:
    type_ = ir.MemRefType(buffer.type)
    element, rank = type_.element_type, len(type_.shape)
    is_float = isinstance(element, ir.FloatType)
    zero = arith.ConstantOp(element, 0.0 if is_float else 0).result
    none, identity = ir.AffineMap.get(rank, 0, []), ir.AffineMap.get_identity(rank)
    fill = make_generic([zero], [buffer], [none, identity], [False] * rank)
    block = fill.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])


@dataclass(frozen=True)
class Panels:
    """The second factor, packed: panels of `lanes` columns, each of `groups` vectors, at so many
    bytes for each position around; and, where signs are flipped, what sums begin with."""

    buffer: ir.Value
    around: Mapping[int, int]
    lanes: int
    groups: int
    mending: ir.Value | None

    @property
    def panel_bytes(self) -> int:
        return self.groups * self.lanes * 4

    def address(self, position: Position, column: ir.Value, group: ir.Value) -> ir.Value:
        """Where a group of the panel that begins with a column is."""
        terms = [(position[d], stride) for d, stride in self.around.items()]
        per_column = self.panel_bytes // self.lanes
        return pointer(
            self.buffer, offset([*terms, (column, per_column), (group, self.lanes * 4)])
        )

    def mending_address(self, position: Position, column: ir.Value) -> ir.Value:
        """Where the first sums of a panel are."""
        assert self.mending is not None
        terms = [(position[d], s // (self.panel_bytes // self.lanes) * 4)
                 for d, s in self.around.items()]  # fmt: skip
        return pointer(self.mending, offset([*terms, (column, 4)]))


class Packer:
    """Writes the panels of one factor."""

    def __init__(self, rows: Rows, extents: Mapping[int, int], columns: int, depth: int,
                 lanes: int, mended: Vectors | None) -> None:  # fmt: skip
        self._rows, self._columns, self._depth, self._lanes = rows, columns, depth, lanes
        self._group = 4 // rows.element_bytes
        groups = math.ceil(depth * rows.element_bytes / TILE_BYTES) * (TILE_BYTES // 4)
        panels = math.ceil(columns / lanes)
        byte, word = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
        around, stride = {}, panels * groups * lanes * 4
        for d in reversed(list(rows.around)):
            around[d] = stride
            stride *= extents[d]
        buffer = memref.AllocOp(ir.MemRefType.get([stride], byte), [], []).result
        self._mended = mended
        mending = None
        if mended is not None:
            sums = ir.MemRefType.get([stride // (groups * 4)], word)
            mending = memref.AllocOp(sums, [], []).result
        self.panels = Panels(buffer, around, lanes, groups, mending)

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
            vectors = [_interleave(a, b) for a, b in zip(vectors[:half], vectors[half:])]
        word = ir.VectorType.get([lanes], ir.IntegerType.get_signless(32))
        return [_bitcast(vectors[0], word)]

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
                vectors.append(_bitcast(loaded, word))
            else:
                vectors.append(self._constant(0))
        return turned(vectors)

    def _constant(self, value: int) -> ir.Value:
        word = ir.IntegerType.get_signless(32)
        return splat(ir.VectorType.get([self._lanes], word), value)


def turned(rows: list[ir.Value]) -> list[ir.Value]:
    """The columns of as many vectors as each has lanes, a power of two."""
    lanes = len(rows)
    half = lanes // 2
    for _ in range(lanes.bit_length() - 1):
        pairs = [_interleave(rows[i], rows[i + half]) for i in range(half)]
        rows = [_part(pair, start, lanes) for pair in pairs for start in (0, lanes)]
    return rows


def _interleave(a: ir.Value, b: ir.Value) -> ir.Value:
    lanes = ir.VectorType(a.type).shape[0]
    order = [i + side * lanes for i in range(lanes) for side in (0, 1)]
    return _shuffle(a, b, order)


def _part(vector: ir.Value, start: int, count: int) -> ir.Value:
    return _shuffle(vector, vector, list(range(start, start + count)))


def _shuffle(a: ir.Value, b: ir.Value, order: list[int]) -> ir.Value:
    type_ = ir.VectorType.get([len(order)], ir.VectorType(a.type).element_type)
    return ir.Operation.create(
        "vector.shuffle",
        results=[type_],
        operands=[a, b],
        attributes={"mask": ir.DenseI64ArrayAttr.get(order)},
    ).result


def _bitcast(vector: ir.Value, type_: ir.Type) -> ir.Value:
    return ir.Operation.create("vector.bitcast", results=[type_], operands=[vector]).result


def _bytes_of(element: ir.Type) -> int:
    return 2 if isinstance(element, ir.FloatType) else ir.IntegerType(element).width // 8


