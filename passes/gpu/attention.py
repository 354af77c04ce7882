"""Attention in one kernel, by tensor cores; of f32 by threads (`attention_simt.py`), unless tf32 will do.

Of a block's 64 queries (of wide heads of f32, 32) warps have 16 each. For as many keys after the other
they multiply q and k^T, do to the scores
what the program does (scale, mask, bias), and keep for each query the highest score so far, the sum
of exponentials relative to it, and the sum of these times v: when the highest grows, both sums are
scaled down. Keys that a mask hides from all queries of the block are left out. While scores are
computed, v's rows are copied into shared memory; while v is multiplied, the next keys. (Dao,
FlashAttention-2, 2023; Milakov and Gimelshein, Online normalizer, 2018.)

The probabilities are rounded as the program rounds them, but before they are divided by their sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.dialects.vendors import math as math_
from lamina.passes.gpu.attention_simt import write_attention_simt
from lamina.passes.gpu.attention_tiles import Operands, Tile, Tiles
from lamina.passes.gpu.fragments import (
    Groups,
    fragment,
    interleaved,
    multiply_add,
    part,
    rounded,
)
from lamina.passes.gpu.job import Job
from lamina.passes.gpu.kernels import Kernel
from lamina.passes.gpu.product_copies import AsyncCopies
from lamina.passes.gpu.product_operand import modulo, over, plus, times
from lamina.passes.gpu.product_tiling import generation
from lamina.passes.gpu.scalar_ops import element_at
from lamina.passes.gpu.score_tiles import converted
from lamina.passes.gpu.threads import (
    WARP,
    barrier,
    below,
    gpu_id,
    positions,
    shuffle_xor,
    strided,
    when,
    zero_of,
)
from lamina.passes.linalg.attention_mask import Mask, blocks_in_sight, tile_bounds
from lamina.passes.loops import index, store
from lamina.passes.scalars import Scalar
from lamina.passes.stablehlo.attention import Attention
from lamina.passes.stablehlo.attention_shape import AttentionShape, attention_of
from lamina.passes.stablehlo.note_tf32 import asks_for_tf32


def write_attention(job: Job, arch: str) -> None:
    """The kernel of a function that `stablehlo-outline-attention` made; the job's op is its last."""
    attention, order = attention_of(job.op)
    shape = AttentionShape(attention, order)
    element = attention.product.operands[0].type.element_type
    products = (attention.product, attention.values)
    tf32 = generation(arch) >= 80 and all(map(asks_for_tf32, products))
    if isinstance(element, ir.F32Type) and not tf32:
        return write_attention_simt(job, attention, shape)
    tiles = Tiles.of(shape, element)
    batches = math.prod(shape.extents[d] for d in shape.batch)
    blocks = batches * tiles.parts * -(-shape.queries // tiles.queries)
    job.launch(
        blocks, tiles.threads, lambda kernel: _Block(job, kernel, attention, shape, tiles).emit()
    )


class _Block:
    """Emits one block's work."""

    def __init__(
        self, job: Job, kernel: Kernel, attention: Attention, shape: AttentionShape, tiles: Tiles
    ) -> None:
        self.job, self.kernel, self.attention, self.shape = job, kernel, attention, shape
        q_at = attention.queries_operand
        q, k = attention.product.operands[q_at], attention.product.operands[1 - q_at]
        v = attention.values.operands[1 - attention.probabilities_operand]
        self.element = job.array(kernel, q).element
        self.is_tf32 = isinstance(self.element, ir.F32Type)
        count = -(-shape.queries // tiles.queries)
        batches = math.prod(shape.extents[d] for d in shape.batch)
        number, part, tile = positions(gpu_id("block_id"), [batches, tiles.parts, count])
        extents = [shape.extents[d] for d in shape.batch]
        self.batch = dict(zip(shape.batch, positions(number, extents)))
        self.mask = Mask.of(attention)
        if self.mask is not None:  # the last queries see most: they begin first
            tile = arith.SubIOp(index(count - 1), tile).result
        self.first = times(tile, tiles.queries)
        thread = gpu_id("thread_id")
        self.lane, self.warp = modulo(thread, WARP), over(thread, WARP)

        self.tiles = tiles
        operands = Operands(job, kernel, shape.extents, self.batch, tiles.threads)
        arena, places = tiles.arena(kernel), tiles.offsets
        keys, width = tiles.keys, tiles.width
        self.q = operands.tile(
            q, shape.of_q, shape.rows, shape.width, (tiles.queries, width), arena, places[0]
        )
        self.k = operands.tile(
            k, shape.of_k, (shape.keys_dim,), shape.width, (keys, width), arena, places[1]
        )
        self.v = operands.turned(
            v, shape.of_v, shape.keys_dim, shape.value_width, (tiles.value_width, keys), arena, places[2]
        )
        # Beyond these are zeros.
        self.width, self.value_width = -(-shape.width // 16) * 16, tiles.columns(shape)
        self.first_column = times(part, self.value_width)
        self.v.operand.begin = self.first_column

    # ---- the loop over keys ----------------------------------------------------------------------
    def emit(self) -> None:
        f32 = ir.F32Type.get()
        groups = Groups()
        self.q.operand.begin = self.first
        self.q.fill(index(0), index(0))
        self.k.fill(index(0), index(0))
        for tile in (self.q, self.k, self.v):
            if isinstance(tile, AsyncCopies):
                groups.token = groups.token or tile.token
        groups.commit()
        zero, least = zero_of(f32), _constant(-math.inf)
        none = vector.FromElementsOp(ir.VectorType.get([2, 2], f32), [zero] * 4).result
        columns = self.value_width // 8
        steps = self._steps()

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            highest, sums, totals = carried[:2], carried[2:4], carried[4:]
            first = times(number, self.tiles.keys)
            groups.wait(0)
            barrier()
            self.v.fill(index(0), first)
            if isinstance(self.v, AsyncCopies):
                groups.token = groups.token or self.v.token
            groups.commit()
            scores = self._scores(first)
            highest, scaled, powers = self._powers(scores, highest)
            sums = [
                arith.AddFOp(arith.MulFOp(old, by).result, _sum(powers[i])).result
                for i, (old, by) in enumerate(zip(sums, scaled))
            ]
            totals = [_scaled(total, scaled) for total in totals]
            groups.wait(0)
            barrier()
            following = plus(number, 1)
            self.k.operand.begin = times(following, self.tiles.keys)
            when(_is_below(following, steps), lambda: self.k.fill(index(0), index(0)))
            groups.commit()
            return [*highest, *sums, *self._add_values(powers, totals)]

        carried = strided(
            index(0), steps, 1, [least, least, zero, zero, *([none] * columns)], step
        )
        self._finish(carried[2:4], carried[4:])

    def _steps(self) -> ir.Value:
        """How many steps it takes: blocks of keys at the end that no query sees are left out."""
        shape, tiles = self.shape, self.tiles
        steps = -(-shape.keys // tiles.keys)
        if self.mask is None or steps == 1:
            return index(steps)
        at = {d: (Scalar(value), Scalar(value)) for d, value in self.batch.items()}
        rows = [shape.extents[d] for d in shape.rows]
        at |= zip(shape.rows, tile_bounds(Scalar(self.first), tiles.queries, rows))
        return blocks_in_sight(self.mask, at, shape.keys_dim, shape.keys, tiles.keys).value

    def _scores(self, first: ir.Value) -> list[list[list[ir.Value]]]:
        """The scores of this lane: by row (of two), fragment, and column (of two)."""
        zero = zero_of(ir.F32Type.get())
        none = vector.FromElementsOp(ir.VectorType.get([2, 2], zero.type), [zero] * 4).result
        sums = [none] * (self.tiles.keys // 8)
        mine = times(self.warp, 16)
        for k in range(0, self.width, 32 // self.tiles.bytes):
            left = self._fragment(self.q, mine, 0, k, True)
            for key in range(0, self.tiles.keys, 16):
                both = self._fragment(self.k, index(0), key, k, False)
                for half in range(2):
                    place = key // 8 + half
                    sums[place] = multiply_add(left, part(both, 2 * half), sums[place], self.is_tf32)
        row = plus(plus(self.first, mine), over(self.lane, 4))
        column = plus(first, times(modulo(self.lane, 4), 2))
        found = []
        for i in range(2):
            query = plus(row, 8 * i)
            if self.shape.queries % self.tiles.queries:
                query = arith.MinUIOp(query, index(self.shape.queries - 1)).result
            at = self._rows_at(query)
            found.append([
                [
                    self._score(sums[n], i, j, at, plus(column, 8 * n + j)) for j in range(2)
                ]
                for n in range(self.tiles.keys // 8)
            ])  # fmt: skip
        return found

    def _fragment(
        self, tile: Tile, row: ir.Value, further: int, k: int, rows_first: bool
    ) -> ir.Value:
        found = fragment(tile.buffer, tile.shape, self.lane, index(0), row, further, k, rows_first)
        return rounded(found) if self.is_tf32 else found

    def _rows_at(self, query: ir.Value) -> dict[int, ir.Value]:
        shape = self.shape
        rows = positions(query, [shape.extents[d] for d in shape.rows])
        return {**self.batch, **dict(zip(shape.rows, rows))}

    def _score(
        self, fragment: ir.Value, i: int, j: int, at: Mapping[int, ir.Value], key: ir.Value
    ) -> ir.Value:
        """One score as softmax takes it, in f32; the least of all beyond the last key."""
        shape = self.shape
        raw = vector.ExtractOp(fragment, [], [i, j]).result
        inside = below(key, shape.keys) if shape.keys % self.tiles.keys else None
        if inside is not None:
            key = arith.MinUIOp(key, index(shape.keys - 1)).result
        product = self.attention.product.results[0]
        raw = converted(raw, product.type.element_type)
        where = {**at, shape.keys_dim: key}
        places = [where[d] for d in range(shape.rank)]
        found = element_at(self.job, self.kernel, self.attention.scores, places, {product: raw})
        found = converted(found, ir.F32Type.get())
        if inside is None:
            return found
        return arith.SelectOp(inside, found, _constant(-math.inf)).result

    def _powers(
        self, scores: list[list[list[ir.Value]]], highest: Sequence[ir.Value]
    ) -> tuple[list[ir.Value], list[ir.Value], list[list[list[ir.Value]]]]:
        """The highest scores so far, what sums so far are to be multiplied by, and exponentials."""
        tops, scaled, powers = [], [], []
        for row, before in zip(scores, highest, strict=True):
            top = before
            for pair in row:
                for score in pair:
                    top = arith.MaximumFOp(top, score).result
            for offset in (1, 2):
                top = arith.MaximumFOp(top, shuffle_xor(top, offset)).result
            # Where all scores are -inf so far, any finite number does.
            is_least = arith.CmpFOp(arith.CmpFPredicate.OEQ, top, _constant(-math.inf)).result
            origin = arith.SelectOp(is_least, _constant(0.0), top).result
            scaled.append(math_.exp(arith.SubFOp(before, origin).result))
            powers.append([
                [math_.exp(arith.SubFOp(score, origin).result) for score in pair] for pair in row
            ])  # fmt: skip
            tops.append(top)
        return tops, scaled, powers

    def _add_values(
        self, powers: list[list[list[ir.Value]]], totals: list[ir.Value]
    ) -> list[ir.Value]:
        totals = list(totals)
        if self.is_tf32:
            return self._add_values_tf32(powers, totals)
        type_ = ir.VectorType.get([4, 2], self.element)
        for key in range(0, self.tiles.keys, 16):
            # Sums' registers are a left factor's: rows, then the halves of 16 keys.
            n = key // 8
            parts = [
                arith.TruncFOp(self.element, powers[i][n + half][j]).result
                for half in range(2) for i in range(2) for j in range(2)
            ]  # fmt: skip
            left = vector.FromElementsOp(type_, parts).result
            for column in range(0, self.value_width, 16):
                both = self._fragment(self.v, index(0), column, key, False)
                for half in range(2):
                    place = column // 8 + half
                    totals[place] = multiply_add(left, part(both, 2 * half), totals[place])
        return totals

    def _add_values_tf32(
        self, powers: list[list[list[ir.Value]]], totals: list[ir.Value]
    ) -> list[ir.Value]:
        type_ = ir.VectorType.get([4, 1], self.element)
        for n in range(self.tiles.keys // 8):
            # Of eight keys the even ones first: so they lie in the sums' registers.
            parts = [powers[i][n][j] for j in range(2) for i in range(2)]
            left = rounded(vector.FromElementsOp(type_, parts).result)
            for column in range(0, self.value_width, 8):
                right = interleaved(
                    self.v.buffer, self.v.shape, self.lane, index(0), column, 8 * n
                )
                totals[column // 8] = multiply_add(left, rounded(right), totals[column // 8], True)
        return totals

    def _finish(self, sums: Sequence[ir.Value], totals: Sequence[ir.Value]) -> None:
        """Divide by the sums, and store."""
        shape = self.shape
        result = self.job.op.results[0]
        buffer = self.job.array(self.kernel, result).buffer
        last = (self.tiles.parts - 1) * self.value_width
        for i in range(2):
            total = sums[i]
            for offset in (1, 2):
                total = arith.AddFOp(total, shuffle_xor(total, offset)).result
            row = plus(plus(self.first, times(self.warp, 16)), plus(over(self.lane, 4), 8 * i))

            def write(i: int = i, total: ir.Value = total, row: ir.Value = row) -> None:
                at = self._rows_at(row)
                for n, values in enumerate(totals):
                    for j in range(2):
                        if 8 * n >= shape.value_width:
                            continue
                        within = plus(times(modulo(self.lane, 4), 2), 8 * n + j)
                        column = arith.AddIOp(self.first_column, within).result
                        value = vector.ExtractOp(values, [], [i, j]).result
                        value = converted(
                            arith.DivFOp(value, total).result, result.type.element_type
                        )
                        where = {**at, shape.rank: column}
                        place = [where[d] for d in shape.result]

                        def put(value: ir.Value = value, place: list[ir.Value] = place) -> None:
                            store(value, buffer, place)

                        if last + 8 * (n + 1) > shape.value_width:
                            when(below(column, shape.value_width), put)
                        else:
                            put()

            if shape.queries % self.tiles.queries:
                when(below(row, shape.queries), write)
            else:
                write()


def _is_below(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, b).result


def _constant(value: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), value).result


def _sum(powers: list[list[ir.Value]]) -> ir.Value:
    flat = [power for pair in powers for power in pair]
    total = flat[0]
    for power in flat[1:]:
        total = arith.AddFOp(total, power).result
    return total


def _scaled(fragment: ir.Value, by: Sequence[ir.Value]) -> ir.Value:
    values = [
        arith.MulFOp(vector.ExtractOp(fragment, [], [i, j]).result, by[i]).result
        for i in range(2)
        for j in range(2)
    ]
    return vector.FromElementsOp(fragment.type, values).result

