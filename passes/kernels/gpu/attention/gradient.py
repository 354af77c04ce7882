"""The gradient of attention by tensor cores, without scores in memory.

A kernel has blocks of queries. It goes over the keys as often as rows of scores are reduced (for their
maximum, the sum of exponentials relative to it, and what softmax's derivative adds up), and once more
for what is a sum over keys, the gradient with respect to queries; what rows were reduced to stays in
memory. Another has blocks of keys, and goes over the queries for the sums over those, the gradients
with respect to keys and values. Each sum has its order: the same bits at every run. Scores are computed
anew each time. (Dao, FlashAttention-2, 2023, keeps the sum and takes two sweeps less.)

Factors are f16 or bf16, or f32 where tf32 will do. Where scores of f32 are multiplied by bf16, they are
taken apart into three bf16 each, so that nothing is rounded.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import store
from lamina.passes.emit.scalars import Scalar
from lamina.passes.kernels.gpu.attention.score_plan import Plan, Share
from lamina.passes.kernels.gpu.attention.score_tiles import RowOf, ScoreTiles, converted
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Scratch
from lamina.passes.kernels.gpu.device.threads import below, equals, shuffle_xor, when, zero_of
from lamina.passes.kernels.gpu.gemm.operand import modulo, plus, times
from lamina.passes.stablehlo.analysis.facts import defining, reducer_of
from lamina.passes.stablehlo.attention.score_region import Product, ScoreRegion, positions_in
from lamina.passes.stablehlo.attention.score_sweeps import Sweeps

Rows = dict[ir.Value, Scratch]
"""Values of rows that stay in memory, by batch and row."""


def write_attention_gradient(job: Job) -> None:
    """The kernels of a function that `stablehlo-outline-attention-gradient` made."""
    ops = positions_in(job.op.block)
    first = next(op for op in ops if op.name == "stablehlo.dot_general")
    region = ScoreRegion.of(first, ops)
    assert region is not None, "only kernels that were outlined for this are asked about"
    sweeps = Sweeps.of(region)
    kept = [value for sweep in sweeps.sweeps for value in sweep.rows]
    batches = math.prod(region.extents[d] for d in region.batch)
    count = math.prod(region.extents[d] for d in region.rows)
    rows = {v: job.scratch([batches, count], v.type.element_type) for v in dict.fromkeys(kept)}
    over_keys = Share.groups([sink for sink in region.sinks if sink.over_keys]) or [()]
    for number, shares in enumerate(over_keys):
        plan, stored = Plan.of(region, region.products, shares, by_rows=True), {} if number else rows
        _launch(job, plan, functools.partial(_Queries, sweeps=sweeps, rows=stored))
    for shares in Share.groups([sink for sink in region.sinks if not sink.over_keys]):
        needed = _behind([share.sink.scores for share in shares], region, rows)
        plan = Plan.of(region, needed, shares, by_rows=False)
        _launch(job, plan, functools.partial(_Keys, rows=rows))


def _launch(job: Job, plan: Plan, block: Callable[[ScoreTiles], _Queries | _Keys]) -> None:
    job.launch(
        plan.blocks, 2 * plan.size, lambda kernel: block(ScoreTiles(job, kernel, plan)).emit()
    )


def _behind(
    values: Iterable[ir.Value], region: ScoreRegion, known: Iterable[ir.Value]
) -> list[Product]:
    """The products that values are made of, apart from those of rows that are known."""
    seen, work = set(known), list(values)
    while work:
        value = work.pop()
        op = defining(value)
        if op is not None and value in region.dims and value not in seen:
            seen.add(value)
            work += [] if op.name == "stablehlo.dot_general" else op.operands
    return [product for product in region.products if product.op.results[0] in seen]


class _Queries:
    """A block of queries: what their rows of scores are reduced to, and sums over keys."""

    def __init__(self, tiles: ScoreTiles, sweeps: Sweeps, rows: Rows) -> None:
        self.tiles, self.plan, self.region = tiles, tiles.plan, tiles.region
        self.sweeps, self.stored = sweeps, rows
        self.known: dict[ir.Value, list[ir.Value]] = {}
        """Values of this lane's two rows."""

    def emit(self) -> None:
        """All of it."""
        last = len(self.sweeps.sweeps) - 1
        for sweep in self.sweeps.sweeps[:last]:
            if sweep.reductions:
                self._reduce(sweep.reductions)
            for value in sweep.rows:
                if value not in self.known:
                    self.known[value] = [self._row(value, i) for i in range(2)]
        self._store_rows()
        if self.plan.shares:
            tiles, scores = self.tiles, [share.sink.scores for share in self.plan.shares]
            products = _behind(scores, self.region, self.known)

            def step(first: ir.Value, stage: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
                sums = tiles.products(products, stage)
                found = tiles.elements(scores, sums, self._rows(), first, sums_to=True)
                return tiles.drained(found, stage, totals)

            store_totals(tiles, tiles.sweep(tiles.no_totals(), step))

    def _rows(self) -> dict[ir.Value, RowOf]:
        return {v: lambda place, known=known: known[place[0]] for v, known in self.known.items()}  # type: ignore[misc]

    def _row(self, value: ir.Value, i: int) -> ir.Value:
        """What is made of a row's values."""
        tiles, plan = self.tiles, self.plan
        row = tiles.within(plan.lead, tiles.lead_at(i), plan.size)
        at = {**tiles.batch, **tiles.where(plan.lead, row)}
        places = [at[d] for d in self.region.dims[value]]
        return tiles.element(value, places, {v: known[i] for v, known in self.known.items()})

    def _reduce(self, reductions: Sequence[ir.Operation]) -> None:
        tiles, f32 = self.tiles, ir.F32Type.get()
        adds = [reducer_of(op) == "stablehlo.add" for op in reductions]
        products = _behind([op.operands[0] for op in reductions], self.region, self.known)
        least = arith.ConstantOp(f32, -math.inf).result
        start = [zero_of(f32) if add else least for add in adds for _ in range(2)]

        def step(first: ir.Value, stage: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            sums, found = tiles.products(products, stage), list(carried)
            for number, (op, add) in enumerate(zip(reductions, adds, strict=True)):
                value = op.operands[0]
                each = tiles.elements([value], sums, self._rows(), first, sums_to=add)[value]
                for place in tiles.places():
                    at = 2 * number + place[0]
                    found[at] = _combined(add, found[at], converted(each[place], f32))
            return found

        totals = tiles.sweep(start, step)
        for number, (op, add) in enumerate(zip(reductions, adds, strict=True)):
            mine = totals[2 * number : 2 * number + 2]
            for offset in (1, 2):
                mine = [_combined(add, value, shuffle_xor(value, offset)) for value in mine]
            of = op.results[0].type.element_type
            self.known[op.results[0]] = [converted(value, of) for value in mine]

    def _store_rows(self) -> None:
        tiles, plan = self.tiles, self.plan
        count = plan.extent(plan.lead)
        for i in range(2):
            row = tiles.lead_at(i)
            mine = equals(modulo(tiles.lane, 4), 0)
            if count % plan.size:
                mine = arith.AndIOp(mine, below(row, count)).result

            def put(i: int = i, row: ir.Value = row) -> None:
                for value, scratch in self.stored.items():
                    buffer = tiles.job.array(tiles.kernel, scratch).buffer
                    store(self.known[value][i], buffer, [tiles.number, row])

            if self.stored:
                when(mine, put)


class _Keys:
    """A block of keys: sums over queries."""

    def __init__(self, tiles: ScoreTiles, rows: Rows) -> None:
        self.tiles, self.plan, self.rows = tiles, tiles.plan, rows

    def emit(self) -> None:
        """All of it."""
        tiles, plan = self.tiles, self.plan
        scores = [share.sink.scores for share in plan.shares]

        def step(first: ir.Value, stage: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
            sums = tiles.products(plan.products, stage)
            rows = {value: self._row_of(scratch, first) for value, scratch in self.rows.items()}
            found = tiles.elements(scores, sums, rows, first, sums_to=True)
            return tiles.drained(found, stage, totals)

        store_totals(tiles, tiles.sweep(tiles.no_totals(), step))

    def _row_of(self, scratch: Scratch, first: ir.Value) -> RowOf:
        tiles, plan = self.tiles, self.plan
        array = tiles.job.array(tiles.kernel, scratch)
        found: dict[tuple[int, int], ir.Value] = {}

        def row(place: tuple[int, int, int]) -> ir.Value:
            _, n, j = place
            if (n, j) not in found:
                number = tiles.within(plan.moving, tiles.moving_at(first, n, j), plan.step)
                found[n, j] = array[Scalar(tiles.number), Scalar(number)].value
            return found[n, j]

        return row


def store_totals(tiles: ScoreTiles, totals: Sequence[ir.Value]) -> None:
    """Write what the sinks added up to their results."""
    plan, begin = tiles.plan, 0
    count = plan.extent(plan.lead)
    for share in plan.shares:
        end = begin + share.fragments
        for i in range(2):
            row = tiles.lead_at(i)
            write = functools.partial(_store_row, tiles, share, totals[begin:end], i, row)
            if count % plan.size:
                when(below(row, count), write)
            else:
                write()
        begin = end


def _store_row(
    tiles: ScoreTiles, share: Share, totals: Sequence[ir.Value], i: int, row: ir.Value
) -> None:
    sink = share.sink
    buffer = tiles.job.array(tiles.kernel, sink.result).buffer
    element = ir.MemRefType(buffer.type).element_type
    at = {**tiles.batch, **tiles.where(tiles.plan.lead, row)}
    for n, values in enumerate(totals):
        for j in range(2):
            if 8 * n >= share.width:
                continue
            column = plus(times(modulo(tiles.lane, 4), 2), share.first + 8 * n + j)
            value = converted(vector.ExtractOp(values, [], [i, j]).result, element)
            where = {**at, tiles.region.width: column}
            put = functools.partial(store, value, buffer, [where[d] for d in sink.dims])
            if 8 * (n + 1) > share.width:
                when(below(column, sink.other.width), put)
            else:
                put()


def _combined(add: bool, a: ir.Value, b: ir.Value) -> ir.Value:
    return (arith.AddFOp if add else arith.MaximumFOp)(a, b).result
