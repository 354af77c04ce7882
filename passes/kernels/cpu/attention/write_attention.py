"""Attention in blocks that stay in cache: scores of some queries and some keys at a time.

    %o = dot_general(softmax(score(dot_general %q, %k)), %v)        (a kernel of kind `attention`)

becomes loops over blocks of queries, which are tasks. For some keys after the other the scores are
computed transposed, a vector holding one key's for 16 queries, so that softmax needs no sums across
lanes; then what the program does to them (scale, mask, bias). Kept for each query are the highest
score so far, the sum of exponentials relative to it, and the sum of these times v: when the highest
grows, both sums are scaled down. (Milakov and Gimelshein, Online normalizer calculation for softmax,
2018; Dao, FlashAttention-2, 2023.) No more than a block of scores is in memory. Keys that a mask of
positions hides from all queries of a block, as a causal one does half of them, are left out.

Products of f32, and of what is widened to that, are done in vectors. Where `features` have `amx-bf16`,
products that the program has of bf16 are done in tile registers. (`vdpbf16ps`, of `avx512bf16`, takes
longer than f32 does on processors that have both: 92 ms for 71. That feature rounds probabilities.)

Leaves other functions alone. Takes what `stablehlo-outline-attention{whole=16}` makes.

example: test/passes/kernels/cpu/attention/write_attention.mlir
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.dialects.vendors import math as math_
from lamina.passes.emit.loops import for_range, for_steps, for_tasks, index, load, store
from lamina.passes.emit.scalars import Scalar
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.attention.blocks import (
    Blocks,
    Position,
    array,
    block_of,
    constant,
    each,
    for_both,
    narrowed,
    on_buffers,
    plus,
    replace_kernels,
)
from lamina.passes.kernels.cpu.attention.mask import Mask, blocks_in_sight
from lamina.passes.kernels.cpu.attention.pairs import PairProducts
from lamina.passes.kernels.cpu.attention.products import LaneProducts, Products, Work
from lamina.passes.kernels.cpu.gemm.register_blocks import load_vector, store_vector
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.stablehlo.analysis.elements import element_of
from lamina.passes.stablehlo.attention.reading import Attention
from lamina.passes.stablehlo.attention.shape import AttentionShape, attention_of

KIND = "attention"
_QUERIES = 32  # of a block
_PARTS = 8  # of so many queries, where a block of values is turned for all of them
_LEAST_TASKS = 16  # shape
_KEYS = 64  # of a step, roughly
_PAIRED_KEYS, _PAIRED_WIDTH = 128, 256  # so many where both widths are not more
_LANES = 16  # a divisor of all numbers of queries


class WriteAttention(Pass):
    """See the module's docstring."""

    features: str = ""
    """Of `amx-bf16`, `avx512bf16`, with `+` between them; others mean nothing here."""
    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        self.count("written", replace_kernels(module, KIND, lambda kernel: _Writer(kernel, self).write()))


class _Writer:
    """Writes the function on buffers that takes the place of one."""

    def __init__(self, function: ir.Operation, options: WriteAttention) -> None:
        block = function.regions[0].blocks[0]
        *_, last, end = (op.operation for op in block.operations)
        assert end.operands[0] == last.results[0], "an attention kernel ends with its one result"
        self._function, self._machine = function, machine_of(function)
        self._attention, order = attention_of(last)
        self._shape = shape = AttentionShape(self._attention, order)
        self._result = last.results[0]
        self._query = shape.rows[-1]
        self._around = (*shape.batch, *shape.rows[:-1])
        self._features = options.features.split("+") if _multiplies_bf16(self._attention) else []
        is_in_pairs = "amx-bf16" in self._features
        self._part = min(_QUERIES, shape.extents[self._query])
        self._parts = self._equal_parts() if is_in_pairs else 1
        self._queries = self._part * self._parts
        has_many = is_in_pairs and shape.width + shape.value_width <= _PAIRED_WIDTH
        self._keys = block_of(shape.keys, _PAIRED_KEYS if has_many else _KEYS)
        self._blocks = Blocks(shape.rank, options.vector_bits // 32)

    def write(self) -> None:
        with on_buffers(self._function, [self._result]) as self._buffers:
            self._tasks()

    def _equal_parts(self) -> int:
        """The parts of a block of queries, of which the last block overlaps the one before it least."""
        shape, part = self._shape, self._part
        queries, around = shape.extents[self._query], math.prod(shape.extents[d] for d in self._around)
        kept = self._machine.l2_bytes // 8 // (2 * shape.width + 4 * shape.value_width)
        most = min(kept, queries, queries * around // _LEAST_TASKS) // part
        counts = range(1, min(max(most, 1), _PARTS) + 1)
        return min(counts, key=lambda n: (math.ceil(queries / (n * part)) * n, -n))

    def _products_of(self) -> Products:
        """How the products of a block of queries are done."""
        attention, buffers, features = self._attention, self._buffers, self._features
        at = attention.queries_operand
        q, k = (buffers[attention.product.operands[i]] for i in (at, 1 - at))
        v = buffers[attention.values.operands[1 - attention.probabilities_operand]]
        work = Work(self._shape, self._blocks, q, k, v, self._part, self._parts, self._keys)
        if "amx-bf16" in features:
            return PairProducts(work, rounds="avx512bf16" in features)
        return LaneProducts(work)

    # ---- blocks of queries ---------------------------------------------------------------------
    def _tasks(self) -> None:
        shape, queries = self._shape, self._shape.extents[self._query]
        blocks = math.ceil(queries / self._queries)
        counts = [*(shape.extents[d] for d in self._around), blocks]
        scores = math.prod(counts) * self._queries * shape.keys
        cost = scores * (shape.width + shape.value_width) * self._machine.multiply_add_ns("f32")
        tasks, grain = split(counts, cost, self._machine)

        def task(values: list[ir.Value]) -> None:
            first = arith.MulIOp(values[-1], index(self._queries)).result
            if queries % self._queries:
                # The last block does some queries of the one before again, and gets the same.
                first = arith.MinUIOp(first, index(queries - self._queries)).result
            at = dict(zip(self._around, values, strict=False)) | {self._query: first}
            self._block(at)

        for_tasks(counts, tasks, grain, task)

    def _block(self, at: Position) -> None:
        shape, parts, n = self._shape, self._parts, self._part
        self._products = self._products_of()
        self._top, self._sum = array(parts, n), array(parts, n)
        self._origin, self._factor = array(n), array(n)
        least, zero = constant(-math.inf), constant(0.0)

        def begin(place: Position) -> None:
            self._products.begin(place)

            def row(r: ir.Value) -> None:
                store(least, self._top, [place[self._blocks.slot], r])
                store(zero, self._sum, [place[self._blocks.slot], r])

            for_steps(index(0), index(n), 1, row)

        def step(key: ir.Value, keys: int) -> None:
            where = {**at, shape.keys_dim: key}
            self._products.take_keys(where, keys)
            self._each_part(where, lambda place: self._step(place, keys))

        self._each_part(at, begin)
        each(shape.keys, self._keys, step, self._end(at))
        self._products.end()
        self._each_part(at, self._finish)

    def _each_part(self, at: Position, body: Callable[[Position], None]) -> None:
        def one(part: ir.Value) -> None:
            first = plus(at[self._query], arith.MulIOp(part, index(self._part)).result)
            body({**at, self._query: first, self._blocks.slot: part})

        for_steps(index(0), index(self._parts), 1, one)

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
    def _step(self, at: Position, keys: int) -> None:
        products = self._products
        probabilities = products.score(at, keys)
        self._score(at, keys)
        self._exponentials(at[self._blocks.slot], probabilities)
        products.add_values(at, keys, self._factor)

    def _score(self, at: Position, keys: int) -> None:
        """Scores as softmax takes them, and the highest of them, from what q k^T is."""
        shape, attention, slot = self._shape, self._attention, at[self._blocks.slot]
        product = attention.product.results[0]
        changes = attention.scores != product

        def load_of(value: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
            return load(self._buffers[value], place)

        def one(k: ir.Value, r: ir.Value) -> None:
            score = load(self._products.scores, [k, r])
            if changes:
                where = {**at, self._query: plus(at[self._query], r)}
                where[shape.keys_dim] = plus(at[shape.keys_dim], k)
                places = [where[d] for d in range(shape.rank)]
                score = element_of(attention.scores, places, {product: score}, load_of)
                store(score, self._products.scores, [k, r])
            top = load(self._origin, [r])
            higher = arith.CmpFOp(arith.CmpFPredicate.OGT, score, top).result
            store(arith.SelectOp(higher, score, top).result, self._origin, [r])

        for_steps(
            index(0), index(self._part), 1,
            lambda r: store(load(self._top, [slot, r]), self._origin, [r]),
        )  # fmt: skip
        for_both(index(keys), self._part, one)

    def _exponentials(self, slot: ir.Value, keys: int) -> None:
        """Exponentials in place of scores, and what sums so far are to be multiplied by."""
        least, zero = constant(-math.inf), constant(0.0)

        def correct(r: ir.Value) -> None:
            top = load(self._origin, [r])
            # Where all scores are -inf so far, any finite number does.
            is_least = arith.CmpFOp(arith.CmpFPredicate.OEQ, top, least).result
            origin = arith.SelectOp(is_least, zero, top).result
            by = math_.exp(arith.SubFOp(load(self._top, [slot, r]), origin).result)
            store(top, self._top, [slot, r])
            store(origin, self._origin, [r])
            store(by, self._factor, [r])
            store(arith.MulFOp(load(self._sum, [slot, r]), by).result, self._sum, [slot, r])

        lanes = min(self._blocks.lanes, _LANES)
        together, type_ = self._products.together, ir.VectorType.get([lanes], ir.F32Type.get())

        def powers(r: ir.Value) -> None:
            origin = load_vector(self._origin, [r], type_)

            def some(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
                found, first = [], arith.MulIOp(at, index(together)).result
                for i in range(together):
                    score = load_vector(self._products.scores, [plus(first, index(i)), r], type_)
                    found.append(math_.exp(arith.SubFOp(score, origin).result))
                    sums = [arith.AddFOp(sums[0], found[-1]).result]
                self._products.put(found, at, r)
                return sums

            before = load_vector(self._sum, [slot, r], type_)
            (total,) = for_range(index(0), index(keys // together), [before], some)
            store_vector(total, self._sum, [slot, r])

        for_steps(index(0), index(self._part), 1, correct)
        for_steps(index(0), index(self._part), lanes, powers)

    def _finish(self, at: Position) -> None:
        shape, blocks, sums = self._shape, self._blocks, self._products.sums(at)
        result = ir.AffineMap.get(
            shape.rank + 3, 0, [ir.AffineDimExpr.get(d) for d in shape.result]
        )

        def row(r: ir.Value) -> None:
            one_over = arith.DivFOp(constant(1.0), load(self._sum, [at[blocks.slot], r])).result
            where = {**at, self._query: plus(at[self._query], r)}

            def one(c: ir.Value) -> None:
                place = {**at, blocks.query: r, blocks.width: c}
                value = arith.MulFOp(load(sums.buffer, sums.at(place)), one_over).result
                target = self._buffers[self._result]
                store(narrowed(value, target), target, indices(result, {**where, blocks.width: c}))

            for_steps(index(0), index(shape.value_width), 1, one)

        for_steps(index(0), index(self._part), 1, row)



def _multiplies_bf16(attention: Attention) -> bool:
    """Whether both products are of bf16."""
    operands = (*attention.product.operands, *attention.values.operands)
    return all(isinstance(v.type.element_type, ir.BF16Type) for v in operands)
