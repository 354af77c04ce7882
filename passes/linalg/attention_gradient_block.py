"""The gradient of attention for one block of queries: sweeps over all keys, and what comes of the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir
from lamina.passes.linalg.attention_blocks import (
    Blocks,
    Position,
    Range,
    array,
    constant,
    each,
    for_both,
    is_f32,
    narrowed,
    plus,
    zeros,
)
from lamina.passes.linalg.attention_mask import Mask, blocks_in_sight
from lamina.passes.linalg.register_blocks import Factor, load_vector
from lamina.passes.loops import for_steps, index, load, store
from lamina.passes.scalars import Scalar
from lamina.passes.stablehlo.elements import element_of
from lamina.passes.stablehlo.facts import reducer_of
from lamina.passes.stablehlo.score_region import Operand, ScoreRegion, Sink
from lamina.passes.stablehlo.score_sweeps import Sweep, Sweeps


@dataclass(frozen=True)
class Layout:
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


class QueryBlock:
    """Writes what is done for the queries from a position on. `sums` says for each sink over rows
    what it adds to, `unit` being the slot there."""

    def __init__(
        self, layout: Layout, at: Position, sums: Mapping[Sink, Factor], unit: ir.Value
    ) -> None:
        self._region, self._plan, self._blocks = layout.region, layout.plan, layout.blocks
        self._buffers, self._kept = layout.buffers, layout.kept
        self._queries, self._step = layout.queries, layout.keys
        self._query, self._keys = layout.region.rows[-1], layout.region.extents[layout.region.keys]
        self._at, self._sums, self._unit = at, sums, unit
        region, n = layout.region, self._queries
        extent = region.extents[self._query]
        self._last = index(extent - 1)
        left = arith.SubIOp(index(extent), at[self._query]).result
        self._valid = arith.MinUIOp(index(n), left).result if extent % n else index(n)
        self._end = None if layout.mask is None else self._end_of(layout.mask)
        self._turned = {p.rows: self._turn(p.rows) for p in region.products}
        self._side_by_side = {
            sink.other: self._in_rows(sink.other, at, (self._query, n), self._blocks.query, self._last)
            for sink in region.sinks
            if not sink.over_keys
        }
        sweeps = self._plan.sweeps
        reduced = [op.results[0] for sweep in sweeps for op in sweep.reductions]
        derived = [value for sweep in sweeps for value in sweep.rows]
        self._rows = {v: array(n) for v in dict.fromkeys((*reduced, *derived))}
        self._ready: set[ir.Value] = set()
        made = [product.op.results[0] for product in region.products]
        self._products = {v: array(self._step, n) for v in made if v not in self._plan.places}
        self._outgoing = {sink.scores: array(self._step, n) for sink in region.sinks}
        self._totals = {
            sink: array(n, sink.other.width) for sink in region.sinks if sink.over_keys
        }

    def _end_of(self, mask: Mask) -> ir.Value:
        """Before which key all are that the block's queries see."""
        region, at = self._region, self._at
        bounds = {d: (Scalar(at[d]), Scalar(at[d])) for d in (*region.batch, *region.rows)}
        first = Scalar(at[self._query])
        bounds[self._query] = (first, first + (self._queries - 1))
        blocks = blocks_in_sight(mask, bounds, region.keys, self._keys, self._step)
        return (blocks * self._step).value

    def write(self) -> None:
        """All of it."""
        at, zero = self._at, constant(0.0)
        for sweep in self._plan.sweeps[:-1]:
            self._sweep(at, sweep, is_last=False)
        for sink, totals in self._totals.items():
            for_both(
                index(self._queries), sink.other.width,
                lambda r, c, totals=totals: store(zero, totals, [r, c]),  # type: ignore[misc]
            )  # fmt: skip
        self._sweep(at, self._plan.sweeps[-1], is_last=True)
        for sink in self._totals:
            self._put(sink)

    def _put(self, sink: Sink) -> None:
        blocks, totals = self._blocks, self._totals[sink]
        shifts = {self._query: blocks.query}
        target = blocks.factor(self._buffers[sink.result], sink.dims, shifts)

        def put(r: ir.Value, c: ir.Value) -> None:
            number = narrowed(load(totals, [r, c]), target.buffer)
            place = {**self._at, blocks.query: r, blocks.width: c}
            store(number, target.buffer, target.at(place))

        for_both(self._valid, sink.other.width, put)

    def _turn(self, operand: Operand) -> ir.Value:
        """The block's rows of an operand with the width outermost."""
        turned = array(operand.width, self._queries)
        source = self._blocks.factor(self._buffers[operand.value], operand.dims)
        row = (self._query, self._queries)
        self._blocks.turn(source, turned, self._at, row, operand.width, self._last)
        return turned

    def _in_rows(
        self, operand: Operand, at: Position, row: Range, place: int, last: ir.Value | None = None
    ) -> Factor:
        """Rows of an operand from a position on, side by side, as they are or copied; `place` is
        that within them."""
        blocks, buffer = self._blocks, self._buffers[operand.value]
        if is_f32(buffer) and operand.dims[-1] == blocks.width:
            return blocks.factor(buffer, operand.dims, {row[0]: place})
        width = operand.width
        copy = array(row[1], width)
        blocks.rows(blocks.factor(buffer, operand.dims), copy, at, row, width, last)
        return blocks.factor(copy, (place, blocks.width))

    def _sweep(self, at: Position, sweep: Sweep, *, is_last: bool) -> None:
        starts = {
            op.results[0]: constant(0.0 if reducer_of(op) == "stablehlo.add" else -math.inf)
            for op in sweep.reductions
        }

        def begin(r: ir.Value) -> None:
            for value, number in starts.items():
                store(number, self._rows[value], [r])

        if starts:
            for_steps(index(0), index(self._queries), 1, begin)
        self._ready |= {product.op.results[0] for product in sweep.products}
        each(
            self._keys, self._step,
            lambda first, size: self._part(at, sweep, first, size, is_last=is_last), self._end,
        )  # fmt: skip
        self._ready |= {*starts, *sweep.kept}
        derived = [value for value in sweep.rows if value not in starts]

        def finish(r: ir.Value) -> None:
            where = {**at, self._query: self._row(at, r)}
            for value, number in self._elements(derived, where, {self._blocks.query: r}).items():
                store(number, self._rows[value], [r])

        if derived:
            for_steps(index(0), index(self._queries), 1, finish)
        self._ready |= {*derived}

    def _row(self, at: Position, r: ir.Value) -> ir.Value:
        """Which query a row is; rows behind the last are like it."""
        return arith.MinUIOp(plus(at[self._query], r), self._last).result

    # ---- some queries and some keys ------------------------------------------------------------
    def _part(
        self, at: Position, sweep: Sweep, first: ir.Value, keys: int, *, is_last: bool
    ) -> None:
        region, blocks = self._region, self._blocks
        at = {**at, region.keys: first}
        rows: dict[Operand, Factor] = {}

        def key_rows(operand: Operand, *, together: bool) -> Factor:
            """As a factor: elements of the first may lie anywhere, if they are f32."""
            buffer, shifts = self._buffers[operand.value], {region.keys: blocks.key}
            if is_f32(buffer) and not together:
                return blocks.factor(buffer, operand.dims, shifts)
            if operand not in rows:
                rows[operand] = self._in_rows(operand, at, (region.keys, keys), blocks.key)
            return rows[operand]

        for product in sweep.products:
            value = product.op.results[0]
            turned = blocks.factor(self._turned[product.rows], (blocks.width, blocks.query))
            blocks.product(
                (key_rows(product.keys, together=False), turned), self._scores(value),
                (blocks.key, keys), (blocks.query, self._queries),
                (blocks.width, product.rows.width), at, zeros,
            )  # fmt: skip
        self._score(at, sweep, keys, is_last=is_last)
        for sink in region.sinks if is_last else ():
            is_row = sink.over_keys
            other = key_rows(sink.other, together=True) if is_row else self._side_by_side[sink.other]
            self._drain(sink, other, at, keys)

    def _scores(self, value: ir.Value) -> Factor:
        """Where scores of the block are."""
        region, blocks = self._region, self._blocks
        if value in self._plan.places:
            buffer = self._kept[self._plan.places[value]]
            dims = (blocks.slot, region.keys, blocks.query)
            return blocks.factor(buffer, dims, {region.keys: blocks.key})
        return blocks.factor(self._products[value], (blocks.key, blocks.query))

    def _score(self, at: Position, sweep: Sweep, keys: int, *, is_last: bool) -> None:
        """All that is done to scores one by one."""
        region, blocks = self._region, self._blocks
        terms = {op.results[0]: op.operands[0] for op in sweep.reductions}
        sums = {op.results[0] for op in sweep.reductions if reducer_of(op) == "stablehlo.add"}
        outgoing = list(self._outgoing) if is_last else []

        def one(k: ir.Value, r: ir.Value) -> None:
            where = {**at, self._query: self._row(at, r), region.keys: plus(at[region.keys], k)}
            here = {**at, blocks.key: k, blocks.query: r}
            wanted = (*sweep.kept, *terms.values(), *outgoing)
            found = self._elements(wanted, where, here)
            for row, term in terms.items():
                combine = arith.AddFOp if row in sums else arith.MaximumFOp
                so_far = load(self._rows[row], [r])
                store(combine(so_far, found[term]).result, self._rows[row], [r])
            for value in sweep.kept:
                place = self._scores(value)
                store(found[value], place.buffer, place.at(here))
            for value in outgoing:
                store(found[value], self._outgoing[value], [k, r])

        for_both(index(keys), self._queries, one)

    def _elements(
        self, values: Iterable[ir.Value], where: Position, here: Position
    ) -> dict[ir.Value, ir.Value]:
        """Elements of scores or of a row, each from those before it and what is ready."""
        found: dict[ir.Value, ir.Value] = {}

        def load_of(value: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
            if value in found:
                return found[value]
            if value in self._rows:
                return load(self._rows[value], [here[self._blocks.query]])
            if value in self._ready:
                source = self._scores(value)
                return load(source.buffer, source.at(here))
            return load(self._buffers[value], place)

        for value in values:
            places = [where[d] for d in self._region.dims[value]]
            stored = {*self._ready, *found}
            found[value] = element_of(value, places, {}, load_of, stored)
        return found

    def _drain(self, sink: Sink, other: Factor, at: Position, keys: int) -> None:
        """What a sink adds up of some queries and some keys."""
        blocks, n, width = self._blocks, self._queries, sink.other.width
        scores = blocks.factor(self._outgoing[sink.scores], (blocks.key, blocks.query))
        row, reduced, terms = (blocks.query, n), (blocks.key, keys), None
        if sink.over_keys:
            target = blocks.factor(self._totals[sink], (blocks.query, blocks.width))
        else:
            row, reduced, terms = reduced, row, self._valid
            target, at = self._sums[sink], {**at, blocks.slot: self._unit}

        def before(place: Position, type_: ir.VectorType) -> ir.Value:
            return load_vector(target.buffer, target.at(place), type_)

        blocks.product(
            (scores, other), target, row, (blocks.width, width), reduced, at, before, terms
        )


