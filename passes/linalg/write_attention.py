"""Attention in blocks that stay in cache: scores of some queries and some keys at a time.

    %o = dot_general(softmax(score(dot_general %q, %k)), %v)        (a kernel of kind `attention`)

becomes loops over blocks of queries, which are tasks. For some keys after the other the scores are
computed transposed, a vector holding one key's for 16 queries, so that softmax needs no sums across
lanes; then what the program does to them (scale, mask, bias). Kept for each query are the highest
score so far, the sum of exponentials relative to it, and the sum of these times v: when the highest
grows, both sums are scaled down. (Milakov and Gimelshein, Online normalizer calculation for softmax,
2018; Dao, FlashAttention-2, 2023.) No more than a block of scores is in memory.

Leaves other functions alone. Takes what `stablehlo-outline-attention{whole=16}` makes.

example: test/passes/linalg/write_attention.mlir
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, memref
from lamina.dialects.vendors import math as math_
from lamina.passes.base import Pass
from lamina.passes.linalg.affine_indices import indices
from lamina.passes.linalg.group_packing import turned
from lamina.passes.linalg.parallel import split
from lamina.passes.linalg.register_blocks import (
    Block,
    Factor,
    emit_block,
    load_vector,
    moved,
    repeat,
    store_vector,
)
from lamina.passes.loops import for_steps, for_tasks, index, load, store
from lamina.passes.stablehlo.attention_shape import AttentionShape, attention_of
from lamina.passes.stablehlo.elements import element_of

KIND = "attention"
_QUERIES = 32  # of a block
_KEYS = 64  # of a step, roughly
_NANOSECONDS = 0.02  # of a score's two products, for each number of the width

Position = dict[int, ir.Value]


@dataclass(frozen=True)
class WriteAttention(Pass):
    """See the module's docstring."""

    vector_bits: int = 512
    parallel_cost: float = 30_000.0
    task_cost: float = 10_000.0

    def run(self, module: ir.Module) -> None:
        for op in [inner.operation for inner in module.body.operations]:
            attributes = op.attributes
            if op.name == "func.func" and "lamina.kind" in attributes:
                if ir.StringAttr(attributes["lamina.kind"]).value == KIND:
                    with op.location:
                        _Writer(module, op, self).write()
                    op.erase()
                    self.count("written")


class _Writer:
    """Writes the function on buffers that takes the place of one."""

    def __init__(self, module: ir.Module, function: ir.Operation, options: WriteAttention) -> None:
        block = function.regions[0].blocks[0]
        *_, last, end = (op.operation for op in block.operations)
        assert end.operands[0] == last.results[0], "an attention kernel ends with its one result"
        self._function, self._module, self._options = function, module, options
        self._attention, order = attention_of(last)
        self._shape = shape = AttentionShape(self._attention, order)
        self._result = last.results[0]
        self._lanes = options.vector_bits // 32
        self._query = shape.rows[-1]
        self._around = (*shape.batch, *shape.rows[:-1])
        self._queries = min(_QUERIES, shape.extents[self._query])
        steps = math.ceil(shape.keys / _KEYS)
        self._keys = math.ceil(shape.keys / steps)
        # Beside the dimensions of scores and the width: places within a block.
        self._width, self._local_query, self._local_key = (shape.rank + i for i in range(3))

    def write(self) -> None:
        old = self._function
        arguments = list(old.regions[0].blocks[0].arguments)
        types = [_buffer_type(v.type) for v in (*arguments, self._result)]
        attributes = {name: old.attributes[name] for name in old.attributes if name != "arg_attrs"}
        attributes.pop("res_attrs", None)
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        with ir.InsertionPoint(old):
            new = ir.Operation.create("func.func", regions=1, attributes=attributes)
        block = ir.Block.create_at_start(new.regions[0], types)
        *buffers, self._target = block.arguments
        self._buffers = dict(zip(arguments, buffers, strict=True))
        with ir.InsertionPoint(block):
            self._tasks()
            ir.Operation.create("func.return")

    def _operand(self, of: Mapping[int, int], value: ir.Value, shift: int | None = None) -> Factor:
        """An operand by dimensions of scores, `shift` added to that of keys."""
        expressions = [ir.AffineDimExpr.get(of[d]) for d in range(len(of))]
        if shift is not None:
            keys = self._shape.keys_dim
            expressions = [
                e + ir.AffineDimExpr.get(shift) if of[d] == keys else e
                for d, e in enumerate(expressions)
            ]
        return Factor(self._buffers[value], ir.AffineMap.get(self._shape.rank + 3, 0, expressions))

    def _local(self, buffer: ir.Value, *dims: int) -> Factor:
        expressions = [ir.AffineDimExpr.get(d) for d in dims]
        return Factor(buffer, ir.AffineMap.get(self._shape.rank + 3, 0, expressions))

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
        self._q, self._scores = _array(shape.width, n), _array(self._keys, n)
        self._totals = _array(n, shape.value_width)
        self._top, self._origin, self._factor, self._sum = (_array(n) for _ in range(4))
        self._turn_queries(at)
        least, zero = _constant(-math.inf), _constant(0.0)

        def begin(r: ir.Value) -> None:
            store(least, self._top, [r])
            store(zero, self._sum, [r])
            for_steps(
                index(0), index(shape.value_width), 1, lambda c: store(zero, self._totals, [r, c])
            )

        for_steps(index(0), index(n), 1, begin)
        rest = shape.keys % self._keys
        whole = index(shape.keys - rest)
        for_steps(index(0), whole, self._keys, lambda k: self._step(at, k, self._keys))
        if rest:
            self._step(at, whole, rest)
        self._finish(at)

    def _turn_queries(self, at: Position) -> None:
        """Queries with the width outermost."""
        shape, attention = self._shape, self._attention
        q = self._operand(shape.of_q, attention.product.operands[attention.queries_operand])
        type_ = ir.VectorType.get([self._lanes], ir.F32Type.get())
        together = shape.of_q[len(shape.of_q) - 1] == self._width
        if not together:

            def row(c: ir.Value) -> None:
                def one(r: ir.Value) -> None:
                    where = {**at, self._query: _sum(at[self._query], r), self._width: c}
                    store(load(q.buffer, q.at(where)), self._q, [c, r])

                for_steps(index(0), index(self._queries), 1, one)

            for_steps(index(0), index(shape.width), 1, row)
            return

        def square(r: ir.Value, c: ir.Value) -> None:
            where = {**at, self._query: _sum(at[self._query], r), self._width: c}
            rows = [
                load_vector(q.buffer, q.at(moved(where, self._query, i)), type_)
                for i in range(self._lanes)
            ]
            for i, column in enumerate(turned(rows)):
                store_vector(column, self._q, [_sum(c, index(i)), r])

        for_steps(
            index(0), index(self._queries), self._lanes,
            lambda r: for_steps(
                index(0), index(shape.width), self._lanes, lambda c: square(r, c)
            ),
        )  # fmt: skip

    # ---- a block of keys -----------------------------------------------------------------------
    def _step(self, at: Position, first: ir.Value, keys: int) -> None:
        shape, attention = self._shape, self._attention
        at = {**at, shape.keys_dim: first}
        k = self._operand(
            shape.of_k, attention.product.operands[1 - attention.queries_operand], self._local_key
        )
        q = self._local(self._q, self._width, self._local_query)
        scores = self._local(self._scores, self._local_key, self._local_query)
        zero = _constant(0.0)
        self._product(
            (k, q), scores, (self._local_key, keys), (self._local_query, self._queries),
            (self._width, shape.width), at, lambda place, type_: repeat(zero, type_),
        )  # fmt: skip
        self._score(at, keys)
        self._exponentials(keys)
        p = self._local(self._scores, self._local_key, self._local_query)
        v = self._operand(
            shape.of_v,
            attention.values.operands[1 - attention.probabilities_operand],
            self._local_key,
        )
        totals = self._local(self._totals, self._local_query, self._width)

        def scaled(place: Position, type_: ir.VectorType) -> ir.Value:
            before = load_vector(self._totals, totals.at(place), type_)
            by = load(self._factor, [place[self._local_query]])
            return arith.MulFOp(before, repeat(by, type_)).result

        self._product(
            (p, v), totals, (self._local_query, self._queries), (self._width, shape.value_width),
            (self._local_key, keys), at, scaled,
        )  # fmt: skip

    def _product(
        self, factors: tuple[Factor, Factor], target: Factor, row: tuple[int, int],
        column: tuple[int, int], reduced: tuple[int, int], at: Position,
        initial: Callable[[Position, ir.VectorType], ir.Value],
    ) -> None:  # fmt: skip
        """target[row, column] = initial + the sum of products; each of these dimensions with its
        extent."""
        vectors, most = (2, 14) if self._lanes >= 16 else (2, 5)
        (row_dim, rows), (column_dim, columns) = row, column
        blocks = math.ceil(rows / most)
        size = math.ceil(rows / blocks)
        full = (rows - blocks * (size - 1)) * size
        extents = [0] * (self._shape.rank + 3)
        extents[reduced[0]] = reduced[1]
        step = vectors * self._lanes
        whole = columns // step * step

        def block(i: ir.Value, j: ir.Value, rows: int, widths: tuple[int, ...]) -> None:
            where = {**at, row_dim: i, column_dim: j}
            shape = Block(row_dim, column_dim, (reduced[0],), rows, widths, ir.F32Type.get())
            places = [
                (moved(moved(where, row_dim, r), column_dim, start), type_)
                for r, start, type_ in shape.places()
            ]
            found = emit_block(shape, factors, extents, where, [initial(*p) for p in places])
            for value, (place, _) in zip(found, places, strict=True):
                store_vector(value, target.buffer, target.at(place))

        def columns_of(j: ir.Value, widths: tuple[int, ...]) -> None:
            for low, high, count in ((0, full, size), (full, rows, size - 1)):
                if low < high:
                    for_steps(
                        index(low), index(high), count,
                        lambda i, count=count: block(i, j, count, widths),  # type: ignore[misc]
                    )  # fmt: skip

        if whole:
            for_steps(
                index(0), index(whole), step, lambda j: columns_of(j, (self._lanes,) * vectors)
            )
        if whole < columns:
            columns_of(index(whole), (self._lanes,) * ((columns - whole) // self._lanes))

    def _each_score(self, keys: int, body: Callable[[ir.Value, ir.Value], None]) -> None:
        for_steps(
            index(0), index(keys), 1,
            lambda k: for_steps(index(0), index(self._queries), 1, lambda r: body(k, r)),
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
                where = {**at, self._query: _sum(at[self._query], r)}
                where[shape.keys_dim] = _sum(at[shape.keys_dim], k)
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
        self._each_score(keys, one)

    def _exponentials(self, keys: int) -> None:
        """Exponentials in place of scores, and what sums so far are to be multiplied by."""
        least, zero = _constant(-math.inf), _constant(0.0)

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
        self._each_score(keys, power)

    def _finish(self, at: Position) -> None:
        shape = self._shape
        result = ir.AffineMap.get(
            shape.rank + 3, 0, [ir.AffineDimExpr.get(d) for d in shape.result]
        )

        def row(r: ir.Value) -> None:
            one_over = arith.DivFOp(_constant(1.0), load(self._sum, [r])).result
            where = {**at, self._query: _sum(at[self._query], r)}

            def one(c: ir.Value) -> None:
                value = arith.MulFOp(load(self._totals, [r, c]), one_over).result
                store(value, self._target, indices(result, {**where, self._width: c}))

            for_steps(index(0), index(shape.value_width), 1, one)

        for_steps(index(0), index(self._queries), 1, row)


def _array(*shape: int) -> ir.Value:
    type_ = ir.MemRefType.get(list(shape), ir.F32Type.get())
    return memref.AllocOp(type_, [], []).result


def _sum(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.AddIOp(a, b).result


def _constant(value: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), value).result


def _buffer_type(type_: ir.Type) -> ir.MemRefType:
    element = type_.element_type
    if isinstance(element, ir.IntegerType):
        element = ir.IntegerType.get_signless(element.width)
    return ir.MemRefType.get(list(type_.shape), element)


