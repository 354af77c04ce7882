"""Emitting the inside of a block of a copy that deals a few rows into one, or one into a few rows.

What turns a few long rows into columns (channels that come to lie last, a repeated element) writes
elements of each row in turn; what turns a few columns into rows reads them so. A vector of each row is
loaded and dealt into as many vectors that are stored side by side, or the other way round. The last
vectors of a row are shifted back to end where it ends, and done twice in part: no element is moved alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.linalg.structure import Generic, stride_along
from lamina.passes.loops import add, for_steps, index
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

_REGISTER_BYTES = 64
_LEAST_LANES = 4
_MOST_ROWS = 16  # each takes a register
_BLOCK = 4096  # elements of a row, a task's least

Indices = Callable[[ir.AffineMap], list[ir.Value]]
"""The indices of a map at the current position."""


class Interleaving(Record):
    """How a copy deals: `rows` of the dimension `short`, vectors of `lanes` elements along `long`."""

    long: int
    short: int
    rows: int
    lanes: int
    into_one: bool

    @classmethod
    def of(cls, generic: Generic, outer: int, inner: int) -> Interleaving | None:
        """That of a transposing copy whose input is contiguous along `outer`, its output along
        `inner`; None where rows are not few, or not side by side where they are dealt."""
        (source,), (target,) = generic.inputs, generic.outputs
        (from_,), (to,) = generic.input_maps, generic.output_maps
        ways = (
            (outer, inner, stride_along(target, to, outer), True),
            (inner, outer, stride_along(source, from_, inner), False),
        )
        width = max(element_bytes(value.type.element_type) for value in (source, target))
        for long, short, stride, into_one in sorted(ways, key=lambda way: generic.extents[way[1]]):
            rows, lanes = generic.extents[short], max(1, _REGISTER_BYTES // width)
            while lanes > generic.extents[long]:
                lanes //= 2
            if stride == rows and 1 < rows <= _MOST_ROWS and lanes >= max(_LEAST_LANES, 2 * _shuffles(rows)):
                return cls(long, short, rows, lanes, into_one)
        return None

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Dimensions with the steps of loops over blocks."""
        return (self.long, _BLOCK), (self.short, self.rows)


def emit_interleaved(
    generic: Generic,
    how: Interleaving,
    position: dict[int, ir.Value],
    end: ir.Value,
    indices: Indices,
    computed: Callable[[ir.Value], ir.Value],
) -> None:
    """Copy one block, from `position` to `end` along the long rows; changes `position`."""
    (source,), (target,) = generic.inputs, generic.outputs
    (from_,), (to,) = generic.input_maps, generic.output_maps
    extent = generic.extents[how.long]
    of = ir.VectorType.get([how.lanes], source.type.element_type)

    def at_row(row: int, map_: ir.AffineMap) -> list[ir.Value]:
        position[how.short] = index(row)
        return indices(map_)

    def at_vector(number: int, map_: ir.AffineMap) -> list[ir.Value]:
        """Rows side by side are one: a place beyond the end of the first is one in the next."""
        *before, last = at_row(0, map_)
        return [*before, add(last, index(number * how.lanes))]

    def deal(at: ir.Value) -> None:
        if extent % how.lanes:
            at = arith.MinSIOp(at, index(extent - how.lanes)).result
        position[how.long] = at
        read, written = (at_row, at_vector) if how.into_one else (at_vector, at_row)
        places = [read(number, from_) for number in range(how.rows)]
        vectors = [vector.LoadOp(of, source, place).result for place in places]
        if how.rows == how.lanes and how.lanes.bit_count() == 1:
            vectors = turned([computed(value) for value in vectors])
        elif how.into_one:
            vectors = interleaved([computed(value) for value in vectors])
        else:
            vectors = [computed(value) for value in _deinterleaved(vectors)]
        for number, value in enumerate(vectors):
            vector.StoreOp(value, target, written(number, to))

    for_steps(position[how.long], end, how.lanes, deal)


def turned(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of as many vectors as each has lanes, a power of two.

    Squares of one, two, four, ... elements beside the diagonal change places. Most of that processors
    do without indices, and LLVM compiles it in a quarter of the time of other orders (8 x 8: 2.7 ms
    for 10.9).
    """
    found, count, side = list(rows), len(rows), 1
    while side < count:
        upper = [count + at - side if at & side else at for at in range(count)]
        lower = [count + at if at & side else at + side for at in range(count)]
        for row in range(count):
            if not row & side:
                a, b = found[row], found[row + side]
                found[row] = vector.ShuffleOp(a, b, upper).result
                found[row + side] = vector.ShuffleOp(a, b, lower).result
        side *= 2
    return found


def interleaved(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Vectors that hold the first elements of all rows, then the second ones, and so on."""
    count = _least_factor(len(rows))
    if count == len(rows):
        return _dealt(rows, lambda place: (place % count, place // count))
    parts = [interleaved(rows[first::count]) for first in range(count)]
    return [value for together in zip(*parts, strict=True) for value in interleaved(together)]


def _deinterleaved(vectors: Sequence[ir.Value]) -> list[ir.Value]:
    """The rows that `interleaved` makes these vectors of."""
    count = _least_factor(len(vectors))
    lanes = ir.VectorType(vectors[0].type).shape[0]
    if count == len(vectors):

        def found(place: int) -> tuple[int, int]:
            row, lane = divmod(place, lanes)
            return divmod(lane * count + row, lanes)

        return _dealt(vectors, found)
    groups = [_deinterleaved(vectors[at : at + count]) for at in range(0, len(vectors), count)]
    parts = [_deinterleaved(part) for part in zip(*groups, strict=True)]
    return [value for together in zip(*parts, strict=True) for value in together]


def _dealt(
    vectors: Sequence[ir.Value], found: Callable[[int], tuple[int, int]]
) -> list[ir.Value]:
    """As many vectors again, whose elements are where `found` says: in which vector, in which lane."""
    lanes = ir.VectorType(vectors[0].type).shape[0]
    results = []
    for first in range(0, len(vectors) * lanes, lanes):
        places = [found(first + lane) for lane in range(lanes)]
        made = vectors[0]
        for number in range(1, len(vectors)):
            before = [place for which, place in places] if number == 1 else range(lanes)
            mask = [
                lanes + place if which == number else before[lane] if which < number else lane
                for lane, (which, place) in enumerate(places)
            ]
            made = vector.ShuffleOp(made, vectors[number], mask).result
        results.append(made)
    return results


def _least_factor(number: int) -> int:
    return next((n for n in range(2, number) if number % n == 0), number)


def _shuffles(rows: int) -> int:
    """How many shuffles make one vector."""
    count = 0
    while rows > 1:
        factor = _least_factor(rows)
        count, rows = count + factor - 1, rows // factor
    return count
