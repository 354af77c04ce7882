"""The products of attention's gradient in pairs of bf16, which tile registers (AMX) multiply and add up
in f32; those of scores with rows only where the program rounds scores to bf16.

Rows of keys are multiplied where they lie, by the block's queries, turned to pairs along their width.
Scores come out by key, then query: rounded, they are rows as they are wanted for sums over queries. For
sums over keys pairs of these are put next to each other; keys are turned once for all queries, and sums
when the block is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_steps, index, load, store
from lamina.passes.kernels.cpu.attention.blocks import Position, Range, array, constant, plus
from lamina.passes.kernels.cpu.attention.gradient_lanes import Layout, Queries
from lamina.passes.kernels.cpu.attention.tiles import (
    LANES,
    TileProducts,
    covered,
    floats,
    halves,
    turn_pairs,
    turn_rows,
    turn_sums,
    vector,
    words,
)
from lamina.passes.kernels.cpu.gemm.dot_instructions import splat, with_elements
from lamina.passes.kernels.cpu.gemm.dot_packing import interleaved
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor, load_vector, repeat, store_vector
from lamina.passes.stablehlo.attention.score_region import Operand, Product, Sink

_APART = 32  # numbers behind a row of turned keys, so that rows don't meet in one set of a cache


def is_product_of_pairs(product: Product) -> bool:
    """Whether tiles multiply what makes scores."""
    return all(map(_is_in_pairs, (product.rows, product.keys)))


def is_sink_of_pairs(sink: Sink) -> bool:
    """Whether tiles multiply what uses scores up."""
    return isinstance(sink.scores.type.element_type, ir.BF16Type) and _is_in_pairs(sink.other)


def _is_in_pairs(operand: Operand) -> bool:
    element = operand.value.type.element_type
    return isinstance(element, ir.BF16Type) and operand.width % LANES == 0


class TurnedKeys:
    """Rows of keys with the width outermost, for each of some slots."""

    def __init__(self, layout: Layout, operand: Operand, slots: int) -> None:
        self._layout, self._operand = layout, operand
        keys = covered(layout.region.extents[layout.region.keys])
        self._buffer = array(slots, operand.width, keys + _APART, element=ir.BF16Type.get())

    def write(self, at: Position) -> None:
        """Those of a slot and a batch."""
        blocks, region, operand = self._layout.blocks, self._layout.region, self._operand
        keys, width, dim = region.extents[region.keys], operand.width, region.keys
        source = blocks.factor(self._layout.buffers[operand.value], operand.dims)
        target = blocks.factor(self._buffer, (blocks.slot, blocks.width, dim))

        def at_key(k: ir.Value) -> Position:
            return {**at, dim: k}

        if self._layout.lies_in_rows(operand):
            turn_rows(
                source, at_key, blocks.width, target,
                lambda c, k: {**at_key(k), blocks.width: c}, keys, width,
            )  # fmt: skip
            return
        zero = arith.ConstantOp(ir.BF16Type.get(), 0.0).result

        def column(c: ir.Value) -> None:
            def one(k: ir.Value) -> None:
                place = {**at_key(k), blocks.width: c}
                store(load(source.buffer, source.at(place)), target.buffer, target.at(place))

            def none(k: ir.Value) -> None:
                store(zero, target.buffer, target.at({**at_key(k), blocks.width: c}))

            for_steps(index(0), index(keys), 1, one)
            for_steps(index(keys), index(covered(keys)), 1, none)

        for_steps(index(0), index(width), 1, column)

    def factor(self) -> Factor:
        """By width, a first key and a place behind it."""
        blocks, dim = self._layout.blocks, self._layout.region.keys
        return blocks.factor(
            self._buffer, (blocks.slot, blocks.width, dim), {dim: blocks.key}
        )  # fmt: skip


class PairProducts:
    """Products of a block of queries, see the module's docstring."""

    def __init__(
        self, layout: Layout, queries: Queries, products: Sequence[Product], sinks: Sequence[Sink],
        turned_keys: Mapping[Operand, TurnedKeys],
    ) -> None:  # fmt: skip
        self._layout, self._queries, self._keys = layout, queries, turned_keys
        self._tiles = TileProducts()
        n, word = layout.queries, ir.IntegerType.get_signless(32)
        self._turned = {p.rows: array(p.rows.width // 2, n, element=word) for p in products}
        self._side_by_side = {
            s.other: array(n // 2, s.other.width, element=word) for s in sinks if not s.over_keys
        }
        over_keys = [sink for sink in sinks if sink.over_keys]
        self._totals = {sink: array(sink.other.width, n) for sink in over_keys}
        self._sums = {sink: array(n, sink.other.width) for sink in over_keys}
        if over_keys:
            self._pairs = array(covered(layout.keys) // 2, n, element=word)
        # Copies of rows that do not lie together, or where there may be none behind the last.
        self._copies = {
            operand: array(n, operand.width, element=ir.BF16Type.get())
            for operand in dict.fromkeys((*self._turned, *self._side_by_side))
            if layout.is_ragged or not layout.lies_in_rows(operand)
        } | {
            operand: array(layout.keys, operand.width, element=ir.BF16Type.get())
            for operand in dict.fromkeys(product.keys for product in products)
            if not layout.lies_in_rows(operand)
        }
        for operand, buffer in self._turned.items():
            self._turn(operand, buffer)
        for operand, buffer in self._side_by_side.items():
            self._put_side_by_side(operand, buffer)

    def begin(self) -> None:
        zero = repeat(constant(0.0), floats())
        for sink, totals in self._totals.items():
            for_steps(
                index(0), index(sink.other.width), 1,
                lambda c, totals=totals: for_steps(  # type: ignore[misc]
                    index(0), index(self._layout.queries), LANES,
                    lambda r: store_vector(zero, totals, [c, r]),
                ),
            )  # fmt: skip

    def score(self, product: Product, at: Position, keys: int, target: Factor) -> None:
        layout, blocks = self._layout, self._layout.blocks
        turned = blocks.factor(self._turned[product.rows], (blocks.width, blocks.query))
        self._tiles.product(
            self._rows(product.keys, at, (layout.region.keys, keys), blocks.key), turned, target,
            (blocks.key, keys), (blocks.query, layout.queries), (blocks.width, product.rows.width // 2),
            at, adds=False,
        )  # fmt: skip

    def drain(
        self, sink: Sink, scores: ir.Value, at: Position, keys: int, target: Factor | None
    ) -> None:  # fmt: skip
        blocks, n, width = self._layout.blocks, self._layout.queries, sink.other.width
        if target is None:
            self._pair(scores, keys)
            self._tiles.product(
                self._keys[sink.other].factor(),
                blocks.factor(self._pairs, (blocks.key, blocks.query)),
                blocks.factor(self._totals[sink], (blocks.width, blocks.query)),
                (blocks.width, width), (blocks.query, n), (blocks.key, covered(keys) // 2),
                at, adds=True,
            )  # fmt: skip
            return
        if self._layout.is_ragged:
            self._clear_behind(scores, keys)
        self._tiles.product(
            blocks.factor(scores, (blocks.key, blocks.query)),
            blocks.factor(self._side_by_side[sink.other], (blocks.query, blocks.width)),
            target, (blocks.key, keys), (blocks.width, width), (blocks.query, n // 2),
            at, adds=True,
        )  # fmt: skip

    def sums(self, sink: Sink) -> ir.Value:
        totals, rows = self._totals[sink], self._sums[sink]
        turn_sums(lambda c, r: [c, r], totals, rows, self._layout.queries, sink.other.width)
        return rows

    # ---- operands ------------------------------------------------------------------------------
    def _turn(self, operand: Operand, target: ir.Value) -> None:
        blocks, n = self._layout.blocks, self._layout.queries
        at = self._queries.at
        turn_pairs(
            self._query_rows(operand), lambda r: {**at, blocks.query: r}, blocks.width,
            blocks.factor(target, (blocks.width, blocks.query)),
            lambda pair, r: {blocks.width: pair, blocks.query: r}, n, operand.width,
        )  # fmt: skip

    def _put_side_by_side(self, operand: Operand, target: ir.Value) -> None:
        """Pairs of queries' rows; those behind the last are zero."""
        blocks, at, valid = self._layout.blocks, self._queries.at, self._queries.valid
        source, type_ = self._query_rows(operand), vector(LANES, ir.BF16Type.get())
        none = splat(vector(LANES, ir.IntegerType.get_signless(16)), 0)

        def pair(i: ir.Value, c: ir.Value) -> None:
            rows = []
            for k in range(2):
                r = plus(arith.MulIOp(i, index(2)).result, index(k))
                place = {**at, blocks.query: r, blocks.width: c}
                row = halves(load_vector(source.buffer, source.at(place), type_))
                if self._layout.is_ragged:
                    is_there = arith.CmpIOp(arith.CmpIPredicate.ult, r, valid).result
                    row = arith.SelectOp(is_there, row, none).result
                rows.append(row)
            store_vector(with_elements(interleaved(*rows), words(LANES)), target, [i, c])

        for_steps(
            index(0), index(self._layout.queries // 2), 1,
            lambda i: for_steps(index(0), index(operand.width), LANES, lambda c: pair(i, c)),
        )  # fmt: skip

    def _query_rows(self, operand: Operand) -> Factor:
        row = (self._layout.query, self._layout.queries)
        return self._rows(operand, self._queries.at, row, self._layout.blocks.query)

    def _rows(self, operand: Operand, at: Position, row: Range, place: int) -> Factor:
        """Rows of an operand from a position on, as they are or copied."""
        blocks, buffer = self._layout.blocks, self._layout.buffers[operand.value]
        if operand not in self._copies:
            return blocks.factor(buffer, operand.dims, {row[0]: place})
        copy = self._copies[operand]
        last = self._queries.last if row[0] == self._layout.query else None
        blocks.rows(blocks.factor(buffer, operand.dims), copy, at, row, operand.width, last)
        return blocks.factor(copy, (place, blocks.width))

    # ---- scores --------------------------------------------------------------------------------
    def _pair(self, scores: ir.Value, keys: int) -> None:
        """Put scores of two keys next to each other, those that are missing being zero."""
        n = self._layout.queries
        lanes = 2 * LANES if n % (2 * LANES) == 0 else LANES
        type_ = vector(lanes, ir.BF16Type.get())
        none = splat(vector(lanes, ir.IntegerType.get_signless(16)), 0)

        def pair(i: ir.Value, there: int) -> None:
            def some(r: ir.Value) -> None:
                key = arith.MulIOp(i, index(2)).result
                rows = [
                    halves(load_vector(scores, [plus(key, index(k)), r], type_)) if k < there else none
                    for k in range(2)
                ]
                found = with_elements(interleaved(*rows), words(lanes))
                store_vector(found, self._pairs, [i, r])

            for_steps(index(0), index(n), lanes, some)

        for_steps(index(0), index(keys // 2), 1, lambda i: pair(i, 2))
        if keys % 2:
            pair(index(keys // 2), 1)
        missing = index((keys + 1) // 2)
        for_steps(missing, index(covered(keys) // 2), 1, lambda i: pair(i, 0))

    def _clear_behind(self, scores: ir.Value, keys: int) -> None:
        """Scores of rows that are no queries: even nothing times what is infinite is not zero."""
        zero = arith.ConstantOp(ir.BF16Type.get(), 0.0).result
        for_steps(
            index(0), index(keys), 1,
            lambda k: for_steps(
                self._queries.valid, index(self._layout.queries), 1,
                lambda r: store(zero, scores, [k, r]),
            ),
        )  # fmt: skip

