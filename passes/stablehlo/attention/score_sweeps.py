"""In how many sweeps over the keys the values of a score region can be computed, and what is kept.

A row's maximum is known after one sweep over its scores, the sum of exponentials relative to it after
a second. Kept from one sweep to a later one are products and what is costly; all else is computed
again from these, and so are products that cost less than to keep them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import COSTLY, defining
from lamina.passes.stablehlo.attention.score_region import Product, ScoreRegion
from lamina.records import Record

_KEPT = COSTLY - {"stablehlo.divide", "stablehlo.sqrt", "stablehlo.rsqrt"}


class Sweep(Record, frozen=False):
    """What one sweep over the keys does, in this order, and for each row after it."""

    products: list[Product] = field(default_factory=list)
    kept: list[ir.Value] = field(default_factory=list)
    """Scores that later sweeps read."""
    reductions: list[ir.Operation] = field(default_factory=list)
    rows: list[ir.Value] = field(default_factory=list)
    """What is made of rows' reductions, and read by later sweeps."""


class Sweeps(Record, frozen=False):
    """All, the last of which feeds the sinks. `places` says which of `arrays` arrays of all keys
    holds a product or a kept value; a product read in its own sweep only has none."""

    sweeps: list[Sweep]
    places: dict[ir.Value, int]
    arrays: int

    @classmethod
    def of(cls, region: ScoreRegion, again: Collection[Product] = ()) -> Sweeps:
        """`again`: products that each sweep does that reads them."""
        return _Planner(region, again).plan()


class _Planner:
    def __init__(self, region: ScoreRegion, again: Collection[Product]) -> None:
        self._region = region
        self._again = {product.op.results[0] for product in again}
        self._levels = {p.op.results[0]: 0 for p in region.products}
        for op in region.ops:
            level = max(self._levels[v] for v in op.operands if v in self._levels)
            self._levels[op.results[0]] = level + (op.name == "stablehlo.reduce")
        self._costly = {
            op.results[0] for op in region.ops
            if op.name in _KEPT and region.is_scores(op.results[0])
        }  # fmt: skip

    def plan(self) -> Sweeps:
        region, levels = self._region, self._levels
        count = 1 + max(levels[sink.scores] for sink in region.sinks)
        sweeps = [Sweep() for _ in range(count)]
        first: dict[ir.Value, int] = {}
        last: dict[ir.Value, int] = {}
        readers: dict[ir.Value, set[int]] = {}

        def read(values: Iterable[ir.Value], sweep: int) -> None:
            for value in self._stored_behind(values):
                first[value] = min(first.get(value, sweep), sweep)
                last[value] = max(last.get(value, sweep), sweep)
                readers.setdefault(value, set()).add(sweep)

        for op in region.ops:
            value = op.results[0]
            if op.name == "stablehlo.reduce":
                sweeps[levels[value] - 1].reductions.append(op)
                read([op.operands[0]], levels[value] - 1)
            elif value in self._costly:
                read(op.operands, levels[value])
            elif op.name == "stablehlo.broadcast_in_dim" and op.operands[0] in levels:
                rows = sweeps[levels[op.operands[0]] - 1].rows
                if op.operands[0] not in rows:
                    rows.append(op.operands[0])
        read([sink.scores for sink in region.sinks], count - 1)
        for product in region.products:
            value = product.op.results[0]
            for sweep in readers[value] if value in self._again else (first[value],):
                sweeps[sweep].products.append(product)
        for op in region.ops:
            value = op.results[0]
            if value in self._costly and last[value] > levels[value]:
                sweeps[levels[value]].kept.append(value)
        return self._placed(sweeps, last)

    def _stored_behind(self, values: Iterable[ir.Value]) -> set[ir.Value]:
        """The products and costly values that these are made of."""
        found: set[ir.Value] = set()
        seen: set[ir.Value] = set()
        work = list(values)
        while work:
            value = work.pop()
            op = defining(value)
            if value in seen or value not in self._levels or not self._region.is_scores(value):
                continue
            seen.add(value)
            assert op is not None
            if op.name == "stablehlo.dot_general" or value in self._costly:
                found.add(value)
            else:
                work += op.operands
        return found

    def _placed(self, sweeps: list[Sweep], last: dict[ir.Value, int]) -> Sweeps:
        """An array for what is read in later sweeps, once nobody reads what it held."""
        places: dict[ir.Value, int] = {}
        until: list[int] = []

        def place(value: ir.Value, free_after: int) -> None:
            free = [array for array, end in enumerate(until) if end <= free_after]
            if not free:
                free = [len(until)]
                until.append(0)
            places[value] = free[0]
            until[free[0]] = last[value]

        for number, sweep in enumerate(sweeps):
            for product in sweep.products:
                value = product.op.results[0]
                if last[value] > number and value not in self._again:
                    place(value, number - 1)
            for value in sweep.kept:  # each element in place of one just read
                place(value, number)
        return Sweeps(sweeps, places, len(until))
