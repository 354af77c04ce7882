"""Emitting one block of a contraction's result in vector registers.

    c[m : m + rows, n : n + columns] = sum over k of a[m + i, k] * b[k, n : n + columns]

holds rows x vectors accumulators; each step of k loads the vectors of b once and multiplies them
by each row's element of a, repeated over the lanes. Dense buffers are seen as rows: an element is then
a constant away from its neighbour, where LLVM would have to find that out from an index for each
dimension (a seventh of the time it takes for a product).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import add, for_range, index, load
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.dense_access import flat, place_in
from lamina.passes.linalg.analysis.structure import is_dense, is_linear, part_of, strides_of
from lamina.records import Record


class Factor(Record):
    """A buffer and how the contraction's dimensions index it; what is dense, or part of it, may be known as
    one `row`, too, in which it begins at `start`."""

    buffer: ir.Value
    map: ir.AffineMap
    row: ir.Value | None = None
    start: ir.Value | None = None

    def at(self, position: Mapping[int, ir.Value]) -> list[ir.Value]:
        return indices(self.map, position)

    def in_a_row(self) -> Factor:
        """The same, to be found by one index if that can be. Begins with an op on the buffer."""
        is_flat = is_dense(self.buffer) and all(is_linear(index) for index in self.map.results)
        return replace(self, row=flat(self.buffer)) if is_flat else self

    def place(self, position: Mapping[int, ir.Value]) -> Place | PlaceInRow:
        """Where the element at a position is, along some of the dimensions."""
        if self.row is None:
            return Place(self, position)
        strides = strides_of(self.buffer.type, self.map)
        at = place_in(0, [strides[d] for d in position], list(position.values()))
        return PlaceInRow(self.row, strides, at if self.start is None else add(self.start, at))

    def part(self, at: Mapping[int, ir.Value], sizes: Mapping[int, int]) -> Factor:
        """Its part for the iterations from a position on, as many along each dimension, indexed from there."""
        part = Factor(part_of(self.buffer, self.map, at, sizes), self.map)
        whole = self.in_a_row()
        if whole.row is None or part.buffer == self.buffer:
            return part.in_a_row()
        place = whole.place(at)
        assert isinstance(place, PlaceInRow)
        return replace(part, row=whole.row, start=place.at)


class Place(Record):
    """Where an element is, by an index of each dimension of its buffer."""

    factor: Factor
    position: Mapping[int, ir.Value]

    @property
    def buffer(self) -> ir.Value:
        return self.factor.buffer

    def along(self, dimension: int, position: ir.Value) -> Place:
        """So far along a dimension that the place did not know of."""
        return Place(self.factor, {**self.position, dimension: position})

    def near(self, *steps: tuple[int, int]) -> list[ir.Value]:
        """The indices of the element so many steps further along dimensions."""
        position = dict(self.position)
        for dimension, count in steps:
            position = moved(position, dimension, count)
        return self.factor.at(position)


class PlaceInRow(Record):
    """Where an element is in a row: an addition from those near it, whatever the number of dimensions."""

    buffer: ir.Value
    strides: tuple[int, ...]
    at: ir.Value

    def along(self, dimension: int, position: ir.Value) -> PlaceInRow:
        """So far along a dimension that the place did not know of."""
        stride = self.strides[dimension]
        return replace(self, at=place_in(0, [1, stride], [self.at, position])) if stride else self

    def next(self, dimension: int) -> ir.Value:
        """The index of the next element along a dimension."""
        return self.near((dimension, 1))[0]

    def near(self, *steps: tuple[int, int]) -> list[ir.Value]:
        """The index of the element so many steps further along dimensions."""
        distance = sum(self.strides[dimension] * count for dimension, count in steps)
        return [add(self.at, index(distance)) if distance else self.at]


class Block(Record):
    """The dimensions that a block runs over, its rows, the widths of its vectors, and how many steps
    of the innermost sum ahead the second factor is fetched (0: not)."""

    row: int
    column: int
    reduced: tuple[int, ...]
    rows: int
    widths: tuple[int, ...]
    element: ir.Type
    ahead: int = 0

    def places(self) -> list[tuple[int, int, ir.VectorType]]:
        """Row, first column and type of each vector of the block."""
        starts = [sum(self.widths[:i]) for i in range(len(self.widths))]
        types = [ir.VectorType.get([width], self.element) for width in self.widths]
        return [
            (row, start, type_)
            for row in range(self.rows)
            for start, type_ in zip(starts, types, strict=True)
        ]


def emit_block(
    block: Block,
    factors: tuple[Factor, Factor],
    extents: Sequence[int],
    position: Mapping[int, ir.Value],
    initial: Sequence[ir.Value],
    terms: tuple[ir.Value, ir.Value] | None = None,
) -> list[ir.Value]:
    """The vectors of the block at `position`, in the order of its `places`: what `initial` holds
    and the sum of products, or of those of the one reduced dimension from the first of `terms` up to
    the second. The second factor is contiguous along the columns."""
    columns = block.places()[: len(block.widths)]
    types = list(dict.fromkeys(type_ for *_, type_ in columns))

    def counted_on(
        inner: int, low: ir.Value, high: ir.Value, a: PlaceInRow, b: PlaceInRow, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The innermost loop, which carries both places: what LLVM's strength reduction would make of it, in
        a quarter of the time that selecting instructions takes with it."""

        def step(_: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            *before, at_a, at_b = carried
            now_a, now_b = replace(a, at=at_a), replace(b, at=at_b)
            after = reduce((), now_a, now_b, before)
            return [*after, now_a.next(inner), now_b.next(inner)]

        begin = [place.along(inner, low).at for place in (a, b)]
        return for_range(low, high, [*sums, *begin], step)[:-2]

    def reduce(
        left: tuple[int, ...], a: Place | PlaceInRow, b: Place | PlaceInRow, sums: Sequence[ir.Value]
    ) -> Sequence[ir.Value]:
        if left:
            inner, *more = left
            low, high = terms or (index(0), index(extents[inner]))
            if not more and isinstance(a, PlaceInRow) and isinstance(b, PlaceInRow):
                return counted_on(inner, low, high, a, b, sums)
            return for_range(
                low,
                high,
                list(sums),
                lambda i, sums: reduce(tuple(more), a.along(inner, i), b.along(inner, i), sums),
            )
        vectors = [
            load_vector(b.buffer, b.near((block.column, start)), type_) for _, start, type_ in columns
        ]
        found: list[ir.Value] = []
        for _, start, _ in columns if block.ahead else ():
            prefetch(b.buffer, b.near((block.column, start), (block.reduced[-1], block.ahead)))
        for row in range(block.rows):
            scalar = load(a.buffer, a.near((block.row, row)))
            repeated = {type_: repeat(scalar, type_) for type_ in types}
            for vector in vectors:
                operands = [repeated[vector.type], vector, sums[len(found)]]
                found.append(
                    ir.Operation.create(
                        "vector.fma", results=[vector.type], operands=operands
                    ).result
                )
        return found

    a, b = (factor.place(position) for factor in factors)
    return list(reduce(block.reduced, a, b, initial))


def moved(position: Mapping[int, ir.Value], dimension: int, by: int) -> dict[int, ir.Value]:
    """A position further along one dimension."""
    if not by:
        return dict(position)
    return {**position, dimension: add(position[dimension], index(by))}


def repeat(scalar: ir.Value, type_: ir.Type) -> ir.Value:
    """A vector of one value."""
    return ir.Operation.create("vector.broadcast", results=[type_], operands=[scalar]).result


def load_vector(buffer: ir.Value, at: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """The elements of a buffer from a place on, along its last dimension."""
    operands = [buffer, *at]
    return ir.Operation.create("vector.load", results=[type_], operands=operands).result


def store_vector(vector: ir.Value, buffer: ir.Value, at: Sequence[ir.Value]) -> None:
    """Write a vector along a buffer's last dimension."""
    ir.Operation.create("vector.store", operands=[vector, buffer, *at])


def prefetch(buffer: ir.Value, at: Sequence[ir.Value]) -> None:
    """Fetch what is at a place, which may be past the buffer's end, into the first-level cache."""
    ir.Operation.create(
        "memref.prefetch",
        operands=[buffer, *at],
        attributes={
            "isWrite": ir.BoolAttr.get(False),
            "isDataCache": ir.BoolAttr.get(True),
            "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 3),
        },
    )
