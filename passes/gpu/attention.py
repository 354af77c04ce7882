"""Attention in one kernel, by tensor cores, or for f32 by threads (`attention_simt.py`).

Of a block's 64 queries four warps have 16 each. For 64 keys after the other they multiply q and k^T, do to the scores
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
from lamina.passes.gpu.attention_mask import Mask, blocks_in_sight, tile_bounds
from lamina.passes.gpu.attention_simt import write_attention_simt
from lamina.passes.gpu.fragments import Groups, fragment, multiply_add, part
from lamina.passes.gpu.job import Job
from lamina.passes.gpu.kernels import Kernel
from lamina.passes.gpu.product import Factor, Product
from lamina.passes.gpu.product_block import Arena
from lamina.passes.gpu.product_copies import AsyncCopies, RegisterCopies, TileShape
from lamina.passes.gpu.product_operand import Bounds, Operand, modulo, over, plus, times
from lamina.passes.gpu.scalar_ops import element_at
from lamina.passes.gpu.scalars import Scalar
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
from lamina.passes.linalg.structure import Generic
from lamina.passes.loops import index, store
from lamina.passes.stablehlo.attention import Attention
from lamina.passes.stablehlo.attention_shape import AttentionShape, attention_of

_THREADS = 128
_QUERIES = _KEYS = 64  # of a block, and of a step


def write_attention(job: Job) -> None:
    """The kernel of a function that `stablehlo-outline-attention` made; the job's op is its last."""
    attention, order = attention_of(job.op)
    shape = AttentionShape(attention, order)
    if isinstance(attention.product.operands[0].type.element_type, ir.F32Type):
        return write_attention_simt(job, attention, shape)
    blocks = math.prod(shape.extents[d] for d in shape.batch) * -(-shape.queries // _QUERIES)
    job.launch(blocks, _THREADS, lambda kernel: _Block(job, kernel, attention, shape).emit())


def _product(shape: AttentionShape, of: Sequence[Mapping[int, int]], width: int, reduced: int) -> Product:
    """The scores (reduced over widths) or the values (over keys) as a product of two buffers."""
    extents = (*shape.extents, width)
    maps = [
        ir.AffineMap.get(
            shape.rank + 1, 0, [ir.AffineDimExpr.get(dims[d]) for d in range(len(dims))]
        )
        for dims in of
    ]
    generic = Generic(
        None, (), (), tuple(maps), (), tuple(d == reduced for d in range(shape.rank + 1)), extents
    )  # type: ignore[arg-type]
    none = Factor(0, None, maps[0], (), None, ())  # type: ignore[arg-type]
    return Product(generic, none, none, None, None, shape.batch, (reduced,))  # type: ignore[arg-type]


class _Block:
    """Emits one block's work."""

    def __init__(
        self, job: Job, kernel: Kernel, attention: Attention, shape: AttentionShape
    ) -> None:
        self.job, self.kernel, self.attention, self.shape = job, kernel, attention, shape
        q_at = attention.queries_operand
        q, k = attention.product.operands[q_at], attention.product.operands[1 - q_at]
        v = attention.values.operands[1 - attention.probabilities_operand]
        self.element = job.array(kernel, q).element
        tiles = -(-shape.queries // _QUERIES)
        number, tile = positions(
            gpu_id("block_id"), [math.prod(shape.extents[d] for d in shape.batch), tiles]
        )
        extents = [shape.extents[d] for d in shape.batch]
        self.batch = dict(zip(shape.batch, positions(number, extents)))
        self.mask = Mask.of(attention)
        if self.mask is not None:  # the last queries see most: they begin first
            tile = arith.SubIOp(index(tiles - 1), tile).result
        self.first = times(tile, _QUERIES)
        thread = gpu_id("thread_id")
        self.lane, self.warp = modulo(thread, WARP), over(thread, WARP)

        width, value_width = _padded(shape.width), _padded(shape.value_width)
        size = 2
        sizes = [_QUERIES * width * size, _KEYS * width * size, _KEYS * value_width * size]
        arena = Arena(kernel, sum(sizes))
        scores = _product(shape, (shape.of_q, shape.of_k), shape.width, shape.rank)
        values = _product(shape, (shape.of_v,), shape.value_width, shape.keys_dim)
        k_bounds = Bounds(shape.keys, shape.width, bool(shape.keys % _KEYS), shape.width != width)
        q_bounds = Bounds(shape.queries, shape.width, bool(shape.queries % _QUERIES), shape.width != width)
        v_bounds = Bounds(shape.value_width, shape.keys, shape.value_width != value_width, bool(shape.keys % _KEYS))
        self.q = self._tile(scores, 0, q, shape.rows, q_bounds, (_QUERIES, width), arena, 0)
        self.k = self._tile(scores, 1, k, (shape.keys_dim,), k_bounds, (_KEYS, width), arena, sizes[0])
        self.v = self._tile(
            values, 0, v, (shape.rank,), v_bounds, (value_width, _KEYS), arena, sizes[0] + sizes[1]
        )  # fmt: skip
        self.width, self.value_width = width, value_width

    def _tile(
        self, product: Product, number: int, value: ir.Value, along: tuple[int, ...], bounds: Bounds,
        edge_and_depth: tuple[int, int], arena: Arena, offset: int,
    ) -> AsyncCopies | RegisterCopies:  # fmt: skip
        buffer = self.job.array(self.kernel, value).buffer
        factor = Factor(number, buffer, product.generic.input_maps[number], (), buffer, along)
        operand = Operand(product, factor, {}, self.batch, index(0), bounds, ())
        shape = TileShape.of(product, factor, *edge_and_depth, self.element, ())
        tile = arena.view(offset, [1, *shape.shape], self.element)
        copies = AsyncCopies if shape.copied else RegisterCopies
        return copies(operand, shape, tile, _THREADS)

    # ---- the loop over keys ----------------------------------------------------------------------
    def emit(self) -> None:
        f32 = ir.F32Type.get()
        groups = Groups()
        self.q.operand.begin = self.first
        _start(self.q, index(0))
        _start(self.k, index(0))
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
            first = times(number, _KEYS)
            groups.wait(0)
            barrier()
            _start(self.v, first)
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
            self.k.operand.begin = times(following, _KEYS)
            when(_is_below(following, steps), lambda: _start(self.k, index(0)))
            groups.commit()
            return [*highest, *sums, *self._add_values(powers, totals)]

        carried = strided(
            index(0), steps, 1, [least, least, zero, zero, *([none] * columns)], step
        )
        self._finish(carried[2:4], carried[4:])

    def _steps(self) -> ir.Value:
        """How many steps it takes: blocks of keys at the end that no query sees are left out."""
        shape = self.shape
        steps = -(-shape.keys // _KEYS)
        if self.mask is None or steps == 1:
            return index(steps)
        at = {d: (Scalar(value), Scalar(value)) for d, value in self.batch.items()}
        rows = [shape.extents[d] for d in shape.rows]
        at |= zip(shape.rows, tile_bounds(Scalar(self.first), _QUERIES, rows))
        return blocks_in_sight(self.mask, at, shape.keys_dim, shape.keys, _KEYS).value

    def _scores(self, first: ir.Value) -> list[list[list[ir.Value]]]:
        """The scores of this lane: by row (of two), fragment, and column (of two)."""
        zero = zero_of(ir.F32Type.get())
        none = vector.FromElementsOp(ir.VectorType.get([2, 2], zero.type), [zero] * 4).result
        sums = [none] * (_KEYS // 8)
        mine = times(self.warp, 16)
        for k in range(0, self.width, 16):
            left = fragment(self.q.buffer, self.q.shape, self.lane, index(0), mine, k, True)
            for key in range(0, _KEYS, 16):
                both = fragment(
                    self.k.buffer, self.k.shape, self.lane, index(0), index(key), k, False
                )
                for half in range(2):
                    place = key // 8 + half
                    sums[place] = multiply_add(left, part(both, 2 * half), sums[place])
        row = plus(plus(self.first, mine), over(self.lane, 4))
        column = plus(first, times(modulo(self.lane, 4), 2))
        found = []
        for i in range(2):
            query = plus(row, 8 * i)
            if self.shape.queries % _QUERIES:
                query = arith.MinUIOp(query, index(self.shape.queries - 1)).result
            at = self._rows_at(query)
            found.append([
                [
                    self._score(sums[n], i, j, at, plus(column, 8 * n + j)) for j in range(2)
                ]
                for n in range(_KEYS // 8)
            ])  # fmt: skip
        return found

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
        inside = below(key, shape.keys) if shape.keys % _KEYS else None
        if inside is not None:
            key = arith.MinUIOp(key, index(shape.keys - 1)).result
        product = self.attention.product.results[0]
        raw = _converted(raw, product.type.element_type)
        where = {**at, shape.keys_dim: key}
        places = [where[d] for d in range(shape.rank)]
        found = element_at(self.job, self.kernel, self.attention.scores, places, {product: raw})
        found = _converted(found, ir.F32Type.get())
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
        type_ = ir.VectorType.get([4, 2], self.element)
        for key in range(0, _KEYS, 16):
            # Sums' registers are a left factor's: rows, then the halves of 16 keys.
            n = key // 8
            parts = [
                arith.TruncFOp(self.element, powers[i][n + half][j]).result
                for half in range(2) for i in range(2) for j in range(2)
            ]  # fmt: skip
            left = vector.FromElementsOp(type_, parts).result
            for column in range(0, self.value_width, 16):
                both = fragment(
                    self.v.buffer, self.v.shape, self.lane, index(0), index(column), key, False
                )
                for half in range(2):
                    place = column // 8 + half
                    totals[place] = multiply_add(left, part(both, 2 * half), totals[place])
        return totals

    def _finish(self, sums: Sequence[ir.Value], totals: Sequence[ir.Value]) -> None:
        """Divide by the sums, and store."""
        shape = self.shape
        result = self.job.op.results[0]
        buffer = self.job.array(self.kernel, result).buffer
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
                        column = plus(times(modulo(self.lane, 4), 2), 8 * n + j)
                        value = vector.ExtractOp(values, [], [i, j]).result
                        value = _converted(
                            arith.DivFOp(value, total).result, result.type.element_type
                        )
                        where = {**at, shape.rank: column}
                        place = [where[d] for d in shape.result]

                        def put(value: ir.Value = value, place: list[ir.Value] = place) -> None:
                            store(value, buffer, place)

                        if 8 * (n + 1) > shape.value_width:
                            when(below(column, shape.value_width), put)
                        else:
                            put()

            if shape.queries % _QUERIES:
                when(below(row, shape.queries), write)
            else:
                write()


def _start(tile: AsyncCopies | RegisterCopies, first_depth: ir.Value) -> None:
    tile.put(index(0), tile.read(index(0), first_depth))


def _is_below(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, b).result


def _padded(width: int) -> int:
    """The least power of two that holds a width, and 16 at least."""
    return max(16, 1 << (width - 1).bit_length())


def _constant(value: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), value).result


def _converted(value: ir.Value, type_: ir.Type) -> ir.Value:
    if value.type == type_:
        return value
    wider = ir.FloatType(type_).width > ir.FloatType(value.type).width
    return (arith.ExtFOp if wider else arith.TruncFOp)(type_, value).result


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

