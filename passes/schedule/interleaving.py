"""Emitting the inside of a block of a copy that deals a few rows into one, or one into a few rows.

What makes a few long rows columns (channels that come to lie last, a repeated element) writes an element of
each row after the other; what makes a few columns rows reads them so. A vector of each row is
loaded and dealt into as many vectors that are stored side by side, or the other way round. The last
vectors of a row are shifted back to end where it ends, and done twice in part: no element is moved alone.
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import add, for_steps, index
from lamina.passes.linalg.analysis.structure import Generic, stride_along
from lamina.passes.linalg.vectors.shuffles import (
    deinterleaved,
    interleaved,
    least_factor,
    transposed,
)
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

_REGISTER_BYTES = 64  # shape
_LEAST_LANES = 4  # shape
_MOST_ROWS = 16  # shape: each takes a register
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
            vectors = transposed([computed(value) for value in vectors])
        elif how.into_one:
            vectors = interleaved([computed(value) for value in vectors])
        else:
            vectors = [computed(value) for value in deinterleaved(vectors)]
        for number, value in enumerate(vectors):
            vector.StoreOp(value, target, written(number, to))

    for_steps(position[how.long], end, how.lanes, deal)


def _shuffles(rows: int) -> int:
    """How many shuffles make one vector."""
    count = 0
    while rows > 1:
        factor = least_factor(rows)
        count, rows = count + factor - 1, rows // factor
    return count
