"""The products of attention's gradient, of a block of queries by some keys after the other.

`BlockProducts` is what the sweeps want of them; `LaneProducts` does them in f32, whatever the operands
are (`gradient_pairs.py` in pairs of bf16). Scores are transposed: a vector holds one key's for
some queries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import index, store
from lamina.passes.kernels.cpu.attention.blocks import (
    Blocks,
    Position,
    Range,
    array,
    constant,
    for_both,
    is_f32,
    zeros,
)
from lamina.passes.kernels.cpu.attention.mask import Mask
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor, load_vector
from lamina.passes.stablehlo.attention.score_region import Operand, Product, ScoreRegion, Sink
from lamina.passes.stablehlo.attention.score_sweeps import Sweeps
from lamina.records import Record


class Layout(Record):
    """What all blocks have in common."""

    region: ScoreRegion
    plan: Sweeps
    blocks: Blocks
    buffers: Mapping[ir.Value, ir.Value]
    """Of arguments and of sinks' results."""
    kept: Sequence[ir.Value]
    """The plan's arrays, one of each for every slot."""
    queries: int
    keys: int
    """Of a step."""
    mask: Mask | None
    """What hides keys that then can be left out."""
    pairs: Collection[Product | Sink]
    """What is multiplied in pairs of bf16."""
    rounds: bool
    """Whether an instruction rounds to bf16."""

    @property
    def query(self) -> int:
        """The dimension of scores along which a block of queries lies."""
        return self.region.rows[-1]

    def lies_in_rows(self, operand: Operand) -> bool:
        """Whether an operand's width lies together."""
        return operand.dims[-1] == self.region.width

    @property
    def is_ragged(self) -> bool:
        """Whether the last block has rows behind the last query."""
        return self.region.extents[self.query] % self.queries != 0


class Queries(Record):
    """A block of queries: where its first is, the last one there is, and how many it has. Rows behind
    the last are like it."""

    at: Position
    last: ir.Value
    valid: ir.Value


class BlockProducts(Protocol):
    """What the sweeps want of some of the products and sinks."""

    def begin(self) -> None:
        """Nothing is in sums over keys so far."""

    def score(self, product: Product, at: Position, keys: int, target: Factor) -> None:
        """Write the product of the block's queries by so many keys."""

    def drain(
        self, sink: Sink, scores: ir.Value, at: Position, keys: int, target: Factor | None
    ) -> None:  # fmt: skip
        """Add the products of scores, [key, query], by rows of queries to `target`; or by rows of
        keys, if that is None, to what `sums` gives."""

    def sums(self, sink: Sink) -> ir.Value:
        """The sum over keys, [query, width]."""


class LaneProducts:
    """Products of f32, to which rows of what is narrower are widened first."""

    def __init__(
        self, layout: Layout, queries: Queries, products: Sequence[Product], sinks: Sequence[Sink]
    ) -> None:
        self._layout, self._queries = layout, queries
        blocks, n = layout.blocks, layout.queries
        row = (layout.query, n)
        self._turned: dict[Operand, ir.Value] = {}
        for operand in dict.fromkeys(product.rows for product in products):
            self._turned[operand] = array(operand.width, n)
            source = blocks.factor(layout.buffers[operand.value], operand.dims)
            blocks.turn(
                source, self._turned[operand], queries.at, row, operand.width, queries.last
            )
        self._side_by_side = {
            other: self._query_rows(other)
            for other in dict.fromkeys(sink.other for sink in sinks if not sink.over_keys)
        }
        self._totals = {sink: array(n, sink.other.width) for sink in sinks if sink.over_keys}
        # Once: a task has little room.
        keys = [product.keys for product in products if not self._is_wide(product.keys)]
        keys += [sink.other for sink in self._totals if not self._is_in_place(sink.other)]
        self._copies = {o: array(layout.keys, o.width) for o in dict.fromkeys(keys)}

    def begin(self) -> None:
        zero = constant(0.0)
        for sink, totals in self._totals.items():
            for_both(
                index(self._layout.queries), sink.other.width,
                lambda r, c, totals=totals: store(zero, totals, [r, c]),  # type: ignore[misc]
            )  # fmt: skip

    def score(self, product: Product, at: Position, keys: int, target: Factor) -> None:
        blocks, operand = self._layout.blocks, product.keys
        buffer = self._layout.buffers[operand.value]
        if self._is_wide(operand):  # elements may lie anywhere
            rows = blocks.factor(buffer, operand.dims, {self._layout.region.keys: blocks.key})
        else:
            rows = self._key_rows(operand, at, keys)
        turned = blocks.factor(self._turned[product.rows], (blocks.width, blocks.query))
        blocks.product(
            (rows, turned), target, (blocks.key, keys), (blocks.query, self._layout.queries),
            (blocks.width, product.rows.width), at, zeros,
        )  # fmt: skip

    def drain(
        self, sink: Sink, scores: ir.Value, at: Position, keys: int, target: Factor | None
    ) -> None:  # fmt: skip
        blocks, n, width = self._layout.blocks, self._layout.queries, sink.other.width
        left = blocks.factor(scores, (blocks.key, blocks.query))
        row, reduced, terms = (blocks.query, n), (blocks.key, keys), None
        if target is None:
            other = self._key_rows(sink.other, at, keys)
            totals = blocks.factor(self._totals[sink], (blocks.query, blocks.width))
        else:
            other, totals = self._side_by_side[sink.other], target
            row, reduced, terms = reduced, row, self._queries.valid

        def before(place: Position, type_: ir.VectorType) -> ir.Value:
            return load_vector(totals.buffer, totals.at(place), type_)

        blocks.product((left, other), totals, row, (blocks.width, width), reduced, at, before, terms)

    def sums(self, sink: Sink) -> ir.Value:
        return self._totals[sink]

    def _key_rows(self, operand: Operand, at: Position, keys: int) -> Factor:
        layout = self._layout
        row = (layout.region.keys, keys)
        return self._in_rows(operand, at, row, layout.blocks.key, self._copies.get(operand))

    def _query_rows(self, operand: Operand) -> Factor:
        layout = self._layout
        n = layout.queries
        copy = None if self._is_in_place(operand) else array(n, operand.width)
        place = layout.blocks.query
        return self._in_rows(operand, self._queries.at, (layout.query, n), place, copy)

    def _in_rows(
        self, operand: Operand, at: Position, row: Range, place: int, copy: ir.Value | None
    ) -> Factor:
        """Rows of an operand from a position on, side by side, as they are or copied; `place` is
        that within them."""
        blocks, buffer = self._layout.blocks, self._layout.buffers[operand.value]
        if copy is None:
            return blocks.factor(buffer, operand.dims, {row[0]: place})
        last = self._queries.last if row[0] == self._layout.query else None
        blocks.rows(blocks.factor(buffer, operand.dims), copy, at, row, operand.width, last)
        return blocks.factor(copy, (place, blocks.width))

    def _is_wide(self, operand: Operand) -> bool:
        return is_f32(self._layout.buffers[operand.value])

    def _is_in_place(self, operand: Operand) -> bool:
        return self._is_wide(operand) and self._layout.lies_in_rows(operand)
