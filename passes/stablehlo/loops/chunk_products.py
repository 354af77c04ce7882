"""Do the product whose rows a loop reads for a few steps at a time, where the loop needs them.

    %p = dot_general %xs, %u                 while(%o, ...) do {
    while(%i, %h) do {                         %p = dot_general %xs[4 * %o : 4 * %o + 4], %u
      %x = %p[%i]                     ->       while(%j, %i, %h) do {
      ...                                        %x = %p[%j]
    }                                            ...
                                               }
                                             }

Some steps' rows stay in cache, where all rows would be an array as long as the loop: of a network of
long short-term memory four times its result. Only where the loop is one kernel before and after
(`stablehlo-outline-control`), nobody else reads the product, which has `least-bytes` or more, and the
number of steps divides.

example: test/passes/stablehlo/loops/chunk_products.mlir
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import TRIP_COUNT
from lamina.dialects.types import byte_size
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import find_ops
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import DotNumbers, defining, made_by
from lamina.passes.stablehlo.loops.loop_slices import CountedLoop
from lamina.passes.stablehlo.loops.step_cost import Refusal, cost_of, step_of

_SIZES = range(4, 9)  # steps of a chunk; those of few are faster

_Products: TypeAlias = dict[ir.Operation, list[tuple[ir.Operation, ir.Value]]]
"""Of each product the ops that read rows of it, and at which index."""


class ChunkProducts(Pass):
    """The pass `stablehlo-chunk-products`."""

    least_bytes: int = REFERENCE.l2_bytes // 8
    most_bytes: int = REFERENCE.l1_bytes // 3
    """Of a chunk, which goes on the stack."""
    max_cost: float = 2 * REFERENCE.task_ns
    max_ops: int = 250  # code: a few less than a kernel may have

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.while"):
            loop = CountedLoop.of(op)
            if loop is not None:
                products = self._products(loop)
                size = self._chunk(loop, products)
                if size:
                    _in_chunks(loop, products, size)
                    self.count("products", len(products))

    def _products(self, loop: CountedLoop) -> _Products:
        """The products before a loop of which it alone reads rows, and where it does."""
        rows: _Products = defaultdict(list)
        for view in loop.body.operations:
            op = view.operation
            found = loop.row_read(op) if op.name == "stablehlo.dynamic_slice" else None
            dot = found and made_by(found.array, "stablehlo.dot_general")
            if found and dot and dot.block == loop.op.block and self._is_worth_it(dot):
                rows[dot].append((op, found.index))
        return {
            dot: reads
            for dot, reads in rows.items()
            if len(list(dot.results[0].uses)) == len(reads)
            and len({index for _, index in reads}) == 1
        }

    def _is_worth_it(self, dot: ir.Operation) -> bool:
        """Whether rows are made of rows of the first factor, and less is kept without the product."""
        numbers, bytes_ = DotNumbers.of(dot), byte_size(dot.results[0].type)
        if numbers.lhs_batch or 0 in numbers.lhs_contracting or bytes_ < self.least_bytes:
            return False
        return defining(dot.operands[0]) is None or 2 * byte_size(dot.operands[0].type) <= bytes_

    def _chunk(self, loop: CountedLoop, products: _Products) -> int:
        """How many steps to do at a time; 0 if the loop is to stay."""
        if not products:
            return 0
        try:
            step_of(loop.op, self.max_cost, self.max_ops)
        except Refusal:
            return 0
        row = sum(byte_size(dot.results[0].type) for dot in products) // loop.steps
        cost = max(cost_of(dot) for dot in products) / loop.steps
        for size in _SIZES:
            if size * row <= self.most_bytes and size * cost <= self.max_cost:
                if loop.steps % size == 0:
                    return size
        return 0


def _in_chunks(loop: CountedLoop, products: _Products, size: int) -> None:
    """Put a loop over chunks around a loop, and its products into it."""
    old, chunks = loop.op, loop.steps // size
    count = len(old.operands)

    def below(most: int) -> Callable[..., ir.Value]:
        return lambda step, *_: hlo.compare(step, _number(most), "LT")

    def chunk(number: ir.Value, *carried: ir.Value) -> list[ir.Value]:
        parts = {dot: _part(dot, number, size, chunks, _is_reversed(loop, reads))
                 for dot, reads in products.items()}  # fmt: skip

        def step(place: ir.Value, *carried: ir.Value) -> list[ir.Value]:
            known = dict(zip(loop.body.arguments, carried, strict=True))
            for dot, reads in products.items():
                at = place
                if _is_reversed(loop, reads):
                    at = hlo.subtract(_number(size - 1), place)
                for op, _ in reads:
                    shape = list(op.results[0].type.shape)
                    starts = [at, *([_number(0)] * (len(shape) - 1))]
                    known[op.results[0]] = hlo.dynamic_slice(parts[dot], starts, shape)
            *ops, end = (view.operation for view in loop.body.operations)
            for op in ops:
                if op.results[0] not in known:
                    copied(op, known)
            return [_next(place), *(known.get(value, value) for value in end.operands)]

        inner = hlo.while_([_number(0), *carried], below(size), step)
        inner[0].owner.attributes[TRIP_COUNT] = _i64(size)
        return [_next(number), *inner[1:]]

    with ir.InsertionPoint(old), old.location:
        outer = hlo.while_([_number(0), *old.operands], below(chunks), chunk)
        outer[0].owner.attributes[TRIP_COUNT] = _i64(chunks)
    for number in range(count):
        old.results[number].replace_all_uses_with(outer[number + 1])
    old.erase()
    for dot in products:
        dot.erase()


def _part(dot: ir.Operation, number: ir.Value, size: int, chunks: int, backwards: bool) -> ir.Value:
    """The rows of a product that a chunk reads."""
    lhs, rhs = dot.operands
    if backwards:
        number = hlo.subtract(_number(chunks - 1), number)
    shape = [size, *list(lhs.type.shape)[1:]]
    start = hlo.multiply(number, _number(size))
    rows = hlo.dynamic_slice(lhs, [start, *([_number(0)] * (len(shape) - 1))], shape)
    of = dot.results[0].type
    return ir.Operation.create(
        "stablehlo.dot_general",
        results=[ir.RankedTensorType.get([size, *list(of.shape)[1:]], of.element_type)],
        operands=[rows, rhs],
        attributes={name: dot.attributes[name] for name in dot.attributes},
    ).result


def _is_reversed(loop: CountedLoop, reads: list[tuple[ir.Operation, ir.Value]]) -> bool:
    return reads[0][1] != loop.counter


def _number(value: int) -> ir.Value:
    return hlo.constant(np.int32(value))


def _next(step: ir.Value) -> ir.Value:
    return hlo.add(step, _number(1))


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
