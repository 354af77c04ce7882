"""Scores of a block in registers, by tensor cores: products of tiles in shared memory, what is made of
them element by element, and products that use them up.

A block has rows of its own, of queries or of keys, 16 for a warp, and takes some of the other side at a
time. A lane has elements as sums of `mma.sync` lie: of rows r and r + 8, in columns 2 c and 2 c + 1 of
each eight. In that order they are a left factor again, for what uses them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import cast, index
from lamina.passes.emit.scalars import Scalar
from lamina.passes.kernels.cpu.attention.mask import Bounds, tile_bounds
from lamina.passes.kernels.gpu.attention.score_mask import blind_queries, keys_in_sight, mask_of
from lamina.passes.kernels.gpu.attention.score_plan import Plan, Share
from lamina.passes.kernels.gpu.attention.tiles import Operands, Tile, arena_of, padded, whole
from lamina.passes.kernels.gpu.device.job import Job, signless
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    barrier,
    below,
    gpu_id,
    positions,
    strided,
    when,
    zero_of,
)
from lamina.passes.kernels.gpu.gemm.copies import AsyncCopies, TileShape
from lamina.passes.kernels.gpu.gemm.fragments import (
    Groups,
    fragment,
    interleaved,
    multiply_add,
    part,
    rounded,
)
from lamina.passes.kernels.gpu.gemm.operand import modulo, over, plus, times
from lamina.passes.stablehlo.analysis.elements import element_of
from lamina.passes.stablehlo.attention.score_region import Operand, Product

Element = tuple[int, int, int]
"""Of a lane: which of its rows, which eight columns, and which of two there."""
RowOf = Callable[[Element], ir.Value]
Carried = Callable[[ir.Value, ir.Value, list[ir.Value]], Sequence[ir.Value]]

class ScoreTiles:
    """Emits what a block does."""

    def __init__(self, job: Job, kernel: Kernel, plan: Plan) -> None:
        self.job, self.kernel, self.plan, self.region = job, kernel, plan, plan.region
        extents = self.region.extents
        count = -(-plan.extent(plan.lead) // plan.size)
        batches = [extents[d] for d in self.region.batch]
        self.number, tile = positions(gpu_id("block_id"), [math.prod(batches), count])
        self.batch = dict(zip(self.region.batch, positions(self.number, batches)))
        self.mask = mask_of(self.region)
        if self.mask is not None and plan.by_rows:  # the last queries see most: they begin first
            tile = arith.SubIOp(index(count - 1), tile).result
        self.first = times(tile, plan.size)
        thread = gpu_id("thread_id")
        self.lane, self.warp = modulo(thread, WARP), over(thread, WARP)
        arena, offset = arena_of(kernel, plan.shared), 0
        operands = Operands(job, kernel, extents, self.batch, 2 * plan.size)
        self.tiles: dict[Operand, Tile] = {}
        for operand, (rows, size, stages) in plan.tiles.items():
            dims = dict(enumerate(operand.dims))
            self.tiles[operand] = operands.tile(
                operand.value, dims, rows, operand.width, (size, padded(operand.width)), arena, offset, stages
            )
            offset += plan.bytes_of(operand)
        self.moving = [self.tiles[o] for o, (_, _, n) in plan.tiles.items() if n == plan.stages and
                       plan.tiles[o][0] == plan.moving]  # fmt: skip
        self.sweeps = 0
        self.steps = -(-plan.extent(plan.moving) // plan.step)
        self.low, self.high = self._in_sight()

    def _in_sight(self) -> tuple[ir.Value, ir.Value]:
        """The first step in which a mask shows anything, and the one after the last."""
        plan, region, steps = self.plan, self.region, self.steps
        if self.mask is None or steps == 1:
            return index(0), index(steps)
        at = {d: (Scalar(value), Scalar(value)) for d, value in self.batch.items()}

        def bounds(dims: Sequence[int], first: Scalar, size: int) -> dict[int, Bounds]:
            extents = [region.extents[d] for d in dims]
            return dict(zip(dims, tile_bounds(first, size, extents)))

        at |= bounds(plan.lead, Scalar(self.first), plan.size)
        if plan.by_rows:
            return index(0), keys_in_sight(self.mask, at, region, plan.step).value
        low = blind_queries(
            self.mask, at, steps, region, lambda n: bounds(plan.moving, n * plan.step, plan.step)
        )
        return low.value, index(steps)

    # ---- the loop over the other side ------------------------------------------------------------
    def sweep(self, carried: Sequence[ir.Value], body: Carried) -> list[ir.Value]:
        """What `body(first of the other side, stage, carried)` gives, over all of the other side."""
        plan, groups = self.plan, Groups()
        if self.sweeps == 0:
            for operand, (dims, _, _) in plan.tiles.items():
                if dims == plan.lead:
                    self._fill(self.tiles[operand], index(0), self.first)
        elif plan.stages > 1 and (self.mask is not None or self.steps % plan.stages):
            barrier()  # the last step may still be read where the first one goes
        self.sweeps += 1
        for tile in self.tiles.values():
            if isinstance(tile, AsyncCopies) and tile.token is not None:
                groups.token = groups.token or tile.token
        if plan.stages > 1:
            self._fill_moving(groups, modulo(self.low, plan.stages), times(self.low, plan.step))
            groups.commit()

        def step(number: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            first, stage = times(number, plan.step), modulo(number, plan.stages)
            if plan.stages > 1:
                following = plus(number, 1)
                groups.wait(0)
                barrier()
                when(
                    arith.CmpIOp(arith.CmpIPredicate.ult, following, self.high).result,
                    lambda: self._fill_moving(
                        groups, modulo(following, plan.stages), times(following, plan.step)
                    ),
                )
                groups.commit()
            else:
                barrier()
                self._fill_moving(groups, stage, first)
                groups.commit()
                groups.wait(0)
                barrier()
            return body(first, stage, carried)

        return strided(self.low, self.high, 1, list(carried), step)

    def _fill_moving(self, groups: Groups, stage: ir.Value, first: ir.Value) -> None:
        for tile in self.moving:
            self._fill(tile, stage, first)
            if isinstance(tile, AsyncCopies):
                groups.token = groups.token or tile.token

    def _fill(self, tile: Tile, stage: ir.Value, first: ir.Value) -> None:
        tile.operand.begin = first
        tile.fill(stage, index(0))

    # ---- scores ----------------------------------------------------------------------------------
    def products(
        self, wanted: Sequence[Product], stage: ir.Value
    ) -> dict[ir.Value, list[ir.Value]]:
        """Sums of products, by value: fragments of eight columns each."""
        zero = zero_of(ir.F32Type.get())
        none = vector.FromElementsOp(ir.VectorType.get([2, 2], zero.type), [zero] * 4).result
        mine, found = times(self.warp, 16), {}
        for product in wanted:
            left_of, right_of = self.plan.lead_of(product), self.plan.moving_of(product)
            a, b = self.tiles[left_of], self.tiles[right_of]
            tf32 = a.shape.bytes == 4
            sums = [none] * (self.plan.step // 8)
            for k in range(0, whole(left_of.width), 32 // a.shape.bytes):
                left = _rounded(
                    fragment(a.buffer, a.shape, self.lane, index(0), mine, 0, k, True), tf32
                )
                for column in range(0, self.plan.step, 16):
                    both = _rounded(
                        fragment(b.buffer, b.shape, self.lane, stage, index(0), column, k, False), tf32
                    )
                    for half in range(2):
                        n = column // 8 + half
                        sums[n] = multiply_add(left, part(both, 2 * half), sums[n], tf32)
            found[product.op.results[0]] = sums
        return found

    def places(self) -> list[Element]:
        """All elements of a lane."""
        return [(i, n, j) for i in range(2) for n in range(self.plan.step // 8) for j in range(2)]

    def lead_at(self, i: int) -> ir.Value:
        """The row of the block's side, which may be beyond the last."""
        mine = plus(times(self.warp, 16), over(self.lane, 4))
        return plus(plus(self.first, mine), 8 * i)

    def moving_at(self, first: ir.Value, n: int, j: int) -> ir.Value:
        """That of the other side."""
        return plus(plus(first, times(modulo(self.lane, 4), 2)), 8 * n + j)

    def within(self, dims: Sequence[int], number: ir.Value, size: int) -> ir.Value:
        """A row's number, that of the last one beyond it; tiles are of `size`."""
        extent = self.plan.extent(dims)
        if extent % size:
            number = arith.MinUIOp(number, index(extent - 1)).result
        return number

    def where(self, dims: Sequence[int], number: ir.Value) -> dict[int, ir.Value]:
        """A row's position among the scores' dimensions."""
        return dict(zip(dims, positions(number, [self.region.extents[d] for d in dims])))

    def elements(
        self, wanted: Sequence[ir.Value], sums: Mapping[ir.Value, Sequence[ir.Value]],
        rows: Mapping[ir.Value, RowOf], first: ir.Value, *, sums_to: bool,
    ) -> dict[ir.Value, dict[Element, ir.Value]]:  # fmt: skip
        """Elements of values of scores, by place. `rows`: values of the region's rows that are
        known. Beyond the last of the other side they are zero, or the least of all unless
        `sums_to` something."""
        plan = self.plan
        found: dict[ir.Value, dict[Element, ir.Value]] = {value: {} for value in wanted}
        uneven = bool(plan.extent(plan.moving) % plan.step)
        for i, n, j in self.places():
            lead = self.within(plan.lead, self.lead_at(i), plan.size)
            beyond = self.moving_at(first, n, j)
            moving = self.within(plan.moving, beyond, plan.step)
            at = {**self.batch, **self.where(plan.lead, lead), **self.where(plan.moving, moving)}
            made = {
                value: converted(vector.ExtractOp(each[n], [], [i, j]).result, value.type.element_type)
                for value, each in sums.items()
            }
            made |= {value: row((i, n, j)) for value, row in rows.items()}
            for value in wanted:
                places = [at[d] for d in self.region.dims[value]]
                made[value] = self.element(value, places, made)
                result = made[value]
                if uneven:
                    inside = below(beyond, plan.extent(plan.moving))
                    least = zero_of(result.type) if sums_to else _least(result.type)
                    result = arith.SelectOp(inside, result, least).result
                found[value][i, n, j] = result
        return found

    def element(
        self, value: ir.Value, places: Sequence[ir.Value], made: Mapping[ir.Value, ir.Value]
    ) -> ir.Value:
        """An element of a value of the region, from those at the same place."""

        def load(of: ir.Value, position: Sequence[ir.Value]) -> ir.Value:
            if of in made:
                return made[of]
            return self.job.array(self.kernel, of)[[Scalar(p) for p in position]].value

        found = element_of(value, places, {}, load, made)
        return cast(found, signless(found.type))

    # ---- what uses scores up ---------------------------------------------------------------------
    def no_totals(self) -> list[ir.Value]:
        """Of all sinks, before the first step."""
        zero = zero_of(ir.F32Type.get())
        none = vector.FromElementsOp(ir.VectorType.get([2, 2], zero.type), [zero] * 4).result
        return [none] * sum(share.fragments for share in self.plan.shares)

    def drained(
        self, elements: Mapping[ir.Value, Mapping[Element, ir.Value]], stage: ir.Value,
        totals: Sequence[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """The sinks' totals with what some scores add to them."""
        found: list[ir.Value] = []
        for share in self.plan.shares:
            mine = list(totals[len(found) : len(found) + share.fragments])
            found += self._add(share, elements[share.sink.scores], stage, mine)
        return found

    def _add(
        self, share: Share, scores: Mapping[Element, ir.Value], stage: ir.Value,
        totals: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        tile = self.tiles[share.sink.other]
        shape = tile.shape
        turned = TileShape(shape.depth, shape.edge, shape.bytes, not shape.by_depth, shape.copied)
        element = ir.MemRefType(tile.buffer.type).element_type
        if shape.bytes == 4:
            type_ = ir.VectorType.get([4, 1], element)
            for n in range(self.plan.step // 8):
                parts = [scores[i, n, j] for j in range(2) for i in range(2)]
                left = rounded(vector.FromElementsOp(type_, parts).result)
                for place in range(len(totals)):
                    column = share.first + 8 * place
                    right = interleaved(tile.buffer, turned, self.lane, stage, column, 8 * n)
                    totals[place] = multiply_add(left, rounded(right), totals[place], True)
            return totals
        type_ = ir.VectorType.get([4, 2], element)
        for n in range(0, self.plan.step // 8, 2):
            parts = [
                _pieces(scores[i, n + half, j], element)
                for half in range(2) for i in range(2) for j in range(2)
            ]  # fmt: skip
            lefts = [vector.FromElementsOp(type_, list(same)).result for same in zip(*parts)]
            for column in range(0, 8 * len(totals), 16):
                both = fragment(
                    tile.buffer, turned, self.lane, stage, index(0), share.first + column, 8 * n, False
                )
                for half in range(2):
                    place = column // 8 + half
                    for left in lefts:
                        totals[place] = multiply_add(left, part(both, 2 * half), totals[place])
        return totals


def _pieces(score: ir.Value, element: ir.Type) -> list[ir.Value]:
    """A score as a sum of numbers of the type that tensor cores multiply: three for one of f32, the
    least significant first, whose sum is exact."""
    if score.type == element:
        return [score]
    found = []
    f32 = score.type
    for _ in range(3):
        piece = arith.TruncFOp(element, score).result
        found.append(piece)
        rest = arith.SubFOp(score, arith.ExtFOp(f32, piece).result).result
        is_number = arith.CmpFOp(arith.CmpFPredicate.ORD, rest, rest).result  # not of infinities
        score = arith.SelectOp(is_number, rest, zero_of(f32)).result
    return found[::-1]


def _rounded(found: ir.Value, tf32: bool) -> ir.Value:
    return rounded(found) if tf32 else found


def converted(value: ir.Value, type_: ir.Type) -> ir.Value:
    """A float as one of another type."""
    if value.type == type_:
        return value
    wider = ir.FloatType(type_).width > ir.FloatType(value.type).width
    return (arith.ExtFOp if wider else arith.TruncFOp)(type_, value).result


def _least(type_: ir.Type) -> ir.Value:
    return arith.ConstantOp(type_, -math.inf).result
