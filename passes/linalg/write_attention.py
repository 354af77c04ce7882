"""Attention in blocks that stay in cache: scores of some queries and some keys at a time.

    %o = dot_general(softmax(score(dot_general %q, %k)), %v)        (a kernel of kind `attention`)

becomes loops over blocks of queries, which are tasks. For some keys after the other the scores are
computed transposed, a vector holding one key's for 16 queries, so that softmax needs no sums across
lanes; then what the program does to them (scale, mask, bias). Kept for each query are the highest
score so far, the sum of exponentials relative to it, and the sum of these times v: when the highest
grows, both sums are scaled down. (Milakov and Gimelshein, Online normalizer calculation for softmax,
2018; Dao, FlashAttention-2, 2023.) No more than a block of scores is in memory. Keys that a mask of
positions hides from all queries of a block, as a causal one does half of them, are left out.

Leaves other functions alone. Takes what `stablehlo-outline-attention{whole=16}` makes.

example: test/passes/linalg/write_attention.mlir
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir
from lamina.dialects.vendors import math as math_
from lamina.passes.base import Pass
from lamina.passes.linalg.affine_indices import indices
from lamina.passes.linalg.attention_blocks import (
    Blocks,
    Position,
    array,
    block_of,
    constant,
    each,
    for_both,
    functions_of_kind,
    is_f32,
    narrowed,
    on_buffers,
    plus,
    zeros,
)
from lamina.passes.linalg.attention_mask import Mask, blocks_in_sight
from lamina.passes.linalg.parallel import split
from lamina.passes.linalg.register_blocks import Factor, load_vector, repeat
from lamina.passes.loops import for_steps, for_tasks, index, load, store
from lamina.passes.scalars import Scalar
from lamina.passes.stablehlo.attention_shape import AttentionShape, attention_of
from lamina.passes.stablehlo.elements import element_of

KIND = "attention"
_QUERIES = 32  # of a block
_KEYS = 64  # of a step, roughly
_NANOSECONDS = 0.02  # of a score's two products, for each number of the width


@dataclass(frozen=True)
class WriteAttention(Pass):
    """See the module's docstring."""

    vector_bits: int = 512
    parallel_cost: float = 30_000.0
    task_cost: float = 10_000.0

    def run(self, module: ir.Module) -> None:
        for function in functions_of_kind(module, KIND):
            with function.location:
                _Writer(function, self).write()
            function.erase()
            self.count("written")


class _Writer:
    """Writes the function on buffers that takes the place of one."""

    def __init__(self, function: ir.Operation, options: WriteAttention) -> None:
        block = function.regions[0].blocks[0]
        *_, last, end = (op.operation for op in block.operations)
        assert end.operands[0] == last.results[0], "an attention kernel ends with its one result"
        self._function, self._options = function, options
        self._attention, order = attention_of(last)
        self._shape = shape = AttentionShape(self._attention, order)
        self._result = last.results[0]
        self._query = shape.rows[-1]
        self._around = (*shape.batch, *shape.rows[:-1])
        self._queries = min(_QUERIES, shape.extents[self._query])
        self._keys = block_of(shape.keys, _KEYS)
        self._blocks = Blocks(shape.rank, options.vector_bits // 32)

    def write(self) -> None:
        block, self._buffers = on_buffers(self._function, [self._result])
        with ir.InsertionPoint(block):
            self._tasks()
            ir.Operation.create("func.return")

    def _operand(self, of: dict[int, int], value: ir.Value, shifts: dict[int, int]) -> Factor:
        """An operand by dimensions of scores, places within a block added to some of these."""
        return self._blocks.factor(self._buffers[value], [of[d] for d in range(len(of))], shifts)

    def _key_rows(
        self, of: dict[int, int], value: ir.Value, at: Position, keys: int, copy: ir.Value | None
    ) -> Factor:
        """Keys' rows of an operand as f32: as they are, or in a copy."""
        blocks, dim = self._blocks, self._shape.keys_dim
        if copy is None:
            return self._operand(of, value, {dim: blocks.key})
        width = ir.MemRefType(copy.type).shape[1]
        blocks.rows(self._operand(of, value, {}), copy, at, (dim, keys), width)
        return blocks.factor(copy, (blocks.key, blocks.width))

    # ---- blocks of queries ---------------------------------------------------------------------
    def _tasks(self) -> None:
        shape, queries = self._shape, self._shape.extents[self._query]
        blocks = math.ceil(queries / self._queries)
        counts = [*(shape.extents[d] for d in self._around), blocks]
        scores = math.prod(counts) * self._queries * shape.keys
        cost = scores * (shape.width + shape.value_width) / 2 * _NANOSECONDS
        tasks, grain = split(counts, cost, self._options.parallel_cost, self._options.task_cost)

        def task(values: list[ir.Value]) -> None:
            first = arith.MulIOp(values[-1], index(self._queries)).result
            if queries % self._queries:
                # The last block does some queries of the one before again, and gets the same.
                first = arith.MinUIOp(first, index(queries - self._queries)).result
            at = dict(zip(self._around, values, strict=False)) | {self._query: first}
            self._block(at)

        for_tasks(counts, tasks, grain, task)

    def _block(self, at: Position) -> None:
        shape, n = self._shape, self._queries
        self._q, self._scores = array(shape.width, n), array(self._keys, n)
        self._totals = array(n, shape.value_width)
        # Of 16 bits: for all steps, also for the last one, which may have fewer keys.
        attention = self._attention
        q_at = attention.queries_operand
        q, k = attention.product.operands[q_at], attention.product.operands[1 - q_at]
        v = attention.values.operands[1 - attention.probabilities_operand]
        self._k, self._v = (
            None if is_f32(self._buffers[of]) else array(self._keys, width)
            for of, width in ((k, shape.width), (v, shape.value_width))
        )
        self._top, self._origin, self._factor, self._sum = (array(n) for _ in range(4))
        self._blocks.turn(
            self._operand(shape.of_q, q, {}), self._q, at, (self._query, n), shape.width
        )
        least, zero = constant(-math.inf), constant(0.0)

        def begin(r: ir.Value) -> None:
            store(least, self._top, [r])
            store(zero, self._sum, [r])
            for_steps(
                index(0), index(shape.value_width), 1, lambda c: store(zero, self._totals, [r, c])
            )

        for_steps(index(0), index(n), 1, begin)
        each(shape.keys, self._keys, lambda k, size: self._step(at, k, size), self._end(at))
        self._finish(at)

    def _end(self, at: Position) -> ir.Value | None:
        """Before which key all are that the block's queries see; None where that is not known."""
        shape, mask = self._shape, Mask.of(self._attention)
        if mask is None:
            return None
        bounds = {d: (Scalar(at[d]), Scalar(at[d])) for d in self._around}
        first = Scalar(at[self._query])
        bounds[self._query] = (first, first + (self._queries - 1))
        blocks = blocks_in_sight(mask, bounds, shape.keys_dim, shape.keys, self._keys)
        return (blocks * self._keys).value

    # ---- a block of keys -----------------------------------------------------------------------
    def _step(self, at: Position, first: ir.Value, keys: int) -> None:
        shape, attention, blocks = self._shape, self._attention, self._blocks
        at = {**at, shape.keys_dim: first}
        k = self._key_rows(
            shape.of_k, attention.product.operands[1 - attention.queries_operand], at, keys, self._k
        )
        q = blocks.factor(self._q, (blocks.width, blocks.query))
        scores = blocks.factor(self._scores, (blocks.key, blocks.query))
        blocks.product(
            (k, q), scores, (blocks.key, keys), (blocks.query, self._queries),
            (blocks.width, shape.width), at, zeros,
        )  # fmt: skip
        self._score(at, keys)
        self._exponentials(keys)
        v = self._key_rows(
            shape.of_v, attention.values.operands[1 - attention.probabilities_operand],
            at, keys, self._v,
        )  # fmt: skip
        totals = blocks.factor(self._totals, (blocks.query, blocks.width))

        def scaled(place: Position, type_: ir.VectorType) -> ir.Value:
            before = load_vector(self._totals, totals.at(place), type_)
            by = load(self._factor, [place[blocks.query]])
            return arith.MulFOp(before, repeat(by, type_)).result

        blocks.product(
            (scores, v), totals, (blocks.query, self._queries), (blocks.width, shape.value_width),
            (blocks.key, keys), at, scaled,
        )  # fmt: skip

    def _score(self, at: Position, keys: int) -> None:
        """Scores as softmax takes them, and the highest of them, from what q k^T is."""
        shape, attention = self._shape, self._attention
        product = attention.product.results[0]
        changes = attention.scores != product

        def load_of(value: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
            return load(self._buffers[value], place)

        def one(k: ir.Value, r: ir.Value) -> None:
            score = load(self._scores, [k, r])
            if changes:
                where = {**at, self._query: plus(at[self._query], r)}
                where[shape.keys_dim] = plus(at[shape.keys_dim], k)
                places = [where[d] for d in range(shape.rank)]
                score = element_of(attention.scores, places, {product: score}, load_of)
                store(score, self._scores, [k, r])
            top = load(self._origin, [r])
            higher = arith.CmpFOp(arith.CmpFPredicate.OGT, score, top).result
            store(arith.SelectOp(higher, score, top).result, self._origin, [r])

        for_steps(
            index(0), index(self._queries), 1,
            lambda r: store(load(self._top, [r]), self._origin, [r]),
        )  # fmt: skip
        for_both(index(keys), self._queries, one)

    def _exponentials(self, keys: int) -> None:
        """Exponentials in place of scores, and what sums so far are to be multiplied by."""
        least, zero = constant(-math.inf), constant(0.0)

        def correct(r: ir.Value) -> None:
            top = load(self._origin, [r])
            # Where all scores are -inf so far, any finite number does.
            is_least = arith.CmpFOp(arith.CmpFPredicate.OEQ, top, least).result
            origin = arith.SelectOp(is_least, zero, top).result
            by = math_.exp(arith.SubFOp(load(self._top, [r]), origin).result)
            store(top, self._top, [r])
            store(origin, self._origin, [r])
            store(by, self._factor, [r])
            store(arith.MulFOp(load(self._sum, [r]), by).result, self._sum, [r])

        def power(k: ir.Value, r: ir.Value) -> None:
            difference = arith.SubFOp(load(self._scores, [k, r]), load(self._origin, [r])).result
            found = math_.exp(difference)
            store(found, self._scores, [k, r])
            store(arith.AddFOp(load(self._sum, [r]), found).result, self._sum, [r])

        for_steps(index(0), index(self._queries), 1, correct)
        for_both(index(keys), self._queries, power)

    def _finish(self, at: Position) -> None:
        shape = self._shape
        result = ir.AffineMap.get(
            shape.rank + 3, 0, [ir.AffineDimExpr.get(d) for d in shape.result]
        )

        def row(r: ir.Value) -> None:
            one_over = arith.DivFOp(constant(1.0), load(self._sum, [r])).result
            where = {**at, self._query: plus(at[self._query], r)}

            def one(c: ir.Value) -> None:
                value = arith.MulFOp(load(self._totals, [r, c]), one_over).result
                target = self._buffers[self._result]
                store(narrowed(value, target), target, indices(result, {**where, self._blocks.width: c}))

            for_steps(index(0), index(shape.value_width), 1, one)

        for_steps(index(0), index(self._queries), 1, row)

