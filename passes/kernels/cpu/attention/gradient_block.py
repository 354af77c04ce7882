"""The gradient of attention for one block of queries: sweeps over all keys, and what comes of the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from lamina.dialects.attributes import NATIVE
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_steps, index, load, store
from lamina.passes.emit.scalars import Scalar
from lamina.passes.kernels.cpu.attention.blocks import (
    Position,
    array,
    constant,
    each,
    for_both,
    narrowed,
    plus,
)
from lamina.passes.kernels.cpu.attention.gradient_lanes import (
    BlockProducts,
    LaneProducts,
    Layout,
    Queries,
)
from lamina.passes.kernels.cpu.attention.gradient_pairs import PairProducts, TurnedKeys
from lamina.passes.kernels.cpu.attention.mask import Mask, blocks_in_sight
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.stablehlo.analysis.elements import element_of
from lamina.passes.stablehlo.analysis.facts import reducer_of
from lamina.passes.stablehlo.attention.score_region import Operand, Product, Sink
from lamina.passes.stablehlo.attention.score_sweeps import Sweep
from lamina.passes.stablehlo.attention.wide_copies import before_rounding


class QueryBlock:
    """Writes what is done for the queries from a position on. `sums` says for each sink over rows
    what it adds to, `unit` being the slot there."""

    def __init__(
        self, layout: Layout, at: Position, sums: Mapping[Sink, Factor], unit: ir.Value,
        turned_keys: Mapping[Operand, TurnedKeys],
    ) -> None:  # fmt: skip
        self._region, self._plan, self._blocks = layout.region, layout.plan, layout.blocks
        self._buffers, self._kept = layout.buffers, layout.kept
        self._queries, self._step = layout.queries, layout.keys
        self._query, self._keys = layout.region.rows[-1], layout.region.extents[layout.region.keys]
        self._at, self._sums, self._unit = at, sums, unit
        self._rounds = layout.rounds
        region, n = layout.region, self._queries
        extent = region.extents[self._query]
        self._last = index(extent - 1)
        left = arith.SubIOp(index(extent), at[self._query]).result
        self._valid = arith.MinUIOp(index(n), left).result if layout.is_ragged else index(n)
        self._end = None if layout.mask is None else self._end_of(layout.mask)
        self._by = self._products_of(layout, turned_keys)
        sweeps = self._plan.sweeps
        reduced = [op.results[0] for sweep in sweeps for op in sweep.reductions]
        derived = [value for sweep in sweeps for value in sweep.rows]
        self._rows = {v: array(n) for v in dict.fromkeys((*reduced, *derived))}
        self._ready: set[ir.Value] = set()
        made = [product.op.results[0] for product in region.products]
        self._products = {v: array(self._step, n) for v in made if v not in self._plan.places}
        self._outgoing = {
            scores: array(self._step, n, element=scores.type.element_type)
            for scores in dict.fromkeys(sink.scores for sink in region.sinks)
        }

    def _products_of(
        self, layout: Layout, turned_keys: Mapping[Operand, TurnedKeys]
    ) -> dict[Product | Sink, BlockProducts]:
        """By what each product and each sink is multiplied."""
        queries, pairs = Queries(self._at, self._last, self._valid), layout.pairs
        products, sinks = layout.region.products, layout.region.sinks
        inside = [p for p in products if p in pairs], [s for s in sinks if s in pairs]
        others = [p for p in products if p not in pairs], [s for s in sinks if s not in pairs]
        lanes = LaneProducts(layout, queries, *others)
        found: dict[Product | Sink, BlockProducts] = dict.fromkeys([*others[0], *others[1]], lanes)
        if pairs:
            tiles = PairProducts(layout, queries, *inside, turned_keys)
            found |= dict.fromkeys([*inside[0], *inside[1]], tiles)
        return found

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
        for sweep in self._plan.sweeps[:-1]:
            self._sweep(self._at, sweep, is_last=False)
        for products in dict.fromkeys(self._by.values()):
            products.begin()
        self._sweep(self._at, self._plan.sweeps[-1], is_last=True)
        for sink in self._region.sinks:
            if sink.over_keys:
                self._put(sink)

    def _put(self, sink: Sink) -> None:
        blocks, totals = self._blocks, self._by[sink].sums(sink)
        shifts = {self._query: blocks.query}
        target = blocks.factor(self._buffers[sink.result], sink.dims, shifts)

        def put(r: ir.Value, c: ir.Value) -> None:
            number = narrowed(load(totals, [r, c]), target.buffer)
            place = {**self._at, blocks.query: r, blocks.width: c}
            store(number, target.buffer, target.at(place))

        for_both(self._valid, sink.other.width, put)

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
        blocks = self._blocks
        at = {**at, self._region.keys: first}
        for product in sweep.products:
            target = self._scores(product.op.results[0])
            self._by[product].score(product, at, keys, target)
        self._score(at, sweep, keys, is_last=is_last)
        for sink in self._region.sinks if is_last else ():
            sums = None if sink.over_keys else self._sums[sink]
            where = at if sink.over_keys else {**at, blocks.slot: self._unit}
            self._by[sink].drain(sink, self._outgoing[sink.scores], where, keys, sums)

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
        outgoing = {v: before_rounding(v) for v in self._outgoing} if is_last else {}

        def one(k: ir.Value, r: ir.Value) -> None:
            where = {**at, self._query: self._row(at, r), region.keys: plus(at[region.keys], k)}
            here = {**at, blocks.key: k, blocks.query: r}
            wanted = (*sweep.kept, *terms.values(), *outgoing.values())
            found = self._elements(wanted, where, here)
            for row, term in terms.items():
                combine = arith.AddFOp if row in sums else arith.MaximumFOp
                so_far = load(self._rows[row], [r])
                store(combine(so_far, found[term]).result, self._rows[row], [r])
            for value in sweep.kept:
                place = self._scores(value)
                store(found[value], place.buffer, place.at(here))
            for value, wide in outgoing.items():
                store(self._rounded(found[wide], value), self._outgoing[value], [k, r])

        for_both(index(keys), self._queries, one)

    def _rounded(self, number: ir.Value, value: ir.Value) -> ir.Value:
        """A number as a value going out holds it."""
        element = value.type.element_type
        if number.type == element:
            return number
        rounding = arith.TruncFOp(element, number)
        if self._rounds:
            rounding.attributes[NATIVE] = ir.UnitAttr.get()
        return rounding.result

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
