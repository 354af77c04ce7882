"""Do attention for a few queries at a time, where the scores of all would not stay in cache.

    %s = dot_general %q, %k              %o = while (%i = 0, %o = zeros) {
    %p = softmax of %s (a scale,           %qi = dynamic_slice %q, %i
         a mask, a bias before it)   ->    the same ops for the queries of %qi
    %o = dot_general %p, %v                %o = dynamic_update_slice %o, ..., %i }

The softmax of a query needs its own scores alone, so that a part of them is in memory at a time: as
many queries as make scores of `chunk_bytes`. Arrays beside q that have a dimension of queries, such
as a mask, are sliced too, and an iota begins at the first query of the step. Left alone are scores of
less than `least_bytes`, numbers of queries that no such part divides, and what others use: a
gradient does.

example: test/passes/stablehlo/attention/chunk_attention.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import KIND
from lamina.dialects.types import byte_size, dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    CONTROL,
    DotNumbers,
    defining,
    ints,
    splat_of,
)
from lamina.passes.stablehlo.attention.reading import Attention

_LEAST_ROWS = 16  # rounding


class ChunkAttention(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.exponential",))

    chunk_bytes: int = REFERENCE.l3_bytes // 2
    least_bytes: int = REFERENCE.l3_bytes

    def run(self, module: ir.Module) -> None:
        for op in [inner.operation for inner in module.body.operations]:
            if op.name == "func.func" and op.regions[0].blocks:
                if KIND not in op.attributes:
                    self._block(op.regions[0].blocks[0])

    def _block(self, block: ir.Block) -> None:
        for op in [inner.operation for inner in block.operations]:
            if op.name in CONTROL:
                for region in op.regions:
                    self._block(region.blocks[0])
            elif op.name == "stablehlo.dot_general":
                found = Attention.of(op)
                if found is not None:
                    self._chunk(found, block)

    def _chunk(self, found: Attention, block: ir.Block) -> None:
        scores = found.scores.type
        if any(op.block != block for op in (found.product, *found.ops)):
            return
        if not scores.has_static_shape or "complex" in str(scores.element_type):
            return
        dim = _queries_dim(found)
        count = scores.shape[dim]
        bytes_ = byte_size(scores)
        rows = count
        while rows % 2 == 0 and bytes_ * rows > self.chunk_bytes * count:
            rows //= 2
        if bytes_ < self.least_bytes or bytes_ * rows > self.chunk_bytes * count:
            return
        if rows < _LEAST_ROWS:
            return
        with ir.InsertionPoint(found.values), found.values.location:
            result = _loop(found, dim, rows)
        found.values.results[0].replace_all_uses_with(result)
        self.count("loops")


def _queries_dim(found: Attention) -> int:
    """The last dimension of scores that only q has."""
    numbers = DotNumbers.of(found.product)
    batch = len(numbers.lhs_batch)
    lhs = len(numbers.lhs_free(len(found.product.operands[0].type.shape)))
    if found.queries_operand == 0:
        return batch + lhs - 1
    return len(found.scores.type.shape) - 1


def _loop(found: Attention, dim: int, rows: int) -> ir.Value:
    count = found.scores.type.shape[dim]
    of = found.values.results[0].type
    place = _place_in_values(found, dim)
    zero = hlo.constant(np.int32(0))
    one, by, steps = (hlo.constant(np.int32(n)) for n in (1, rows, count // rows))
    inside = {op.results[0] for op in (found.product, found.values, *found.ops)}

    def cond(step: ir.Value, _: ir.Value) -> ir.Value:
        return hlo.compare(step, steps, "LT")

    def body(step: ir.Value, out: ir.Value) -> list[ir.Value]:
        start = hlo.multiply(step, by)
        part = _Part(inside, start, zero, rows).of(found.values.results[0], place)
        starts = [start if d == place else zero for d in range(len(of.shape))]
        return [hlo.add(step, one), hlo.dynamic_update_slice(out, part, starts)]

    return hlo.while_([zero, hlo.full(0, list(of.shape), dtype_of(of))], cond, body)[1]


def _place_in_values(found: Attention, dim: int) -> int:
    numbers = DotNumbers.of(found.values)
    p = found.probabilities_operand
    rank = len(found.scores.type.shape)
    batch = list(numbers.lhs_batch if p == 0 else numbers.rhs_batch)
    if dim in batch:
        return batch.index(dim)
    if p == 0:
        return len(batch) + numbers.lhs_free(rank).index(dim)
    others = len(numbers.lhs_free(len(found.values.operands[0].type.shape)))
    return len(batch) + others + numbers.rhs_free(rank).index(dim)


class _Part:
    """Copies of ops that compute the queries [start, start + rows) of what they did."""

    def __init__(self, inside: set[ir.Value], start: ir.Value, zero: ir.Value, rows: int) -> None:
        self._inside, self._start, self._zero, self._rows = inside, start, zero, rows
        self._made: dict[tuple[ir.Value, int], ir.Value] = {}

    def of(self, value: ir.Value, dim: int | None) -> ir.Value:
        """A value of which dimension `dim` counts queries; as it is where none does."""
        if dim is None:
            return value
        if (value, dim) not in self._made:
            self._made[value, dim] = self._make(value, dim)
        return self._made[value, dim]

    def _make(self, value: ir.Value, dim: int) -> ir.Value:
        shape = list(value.type.shape)
        shape[dim] = self._rows
        op = defining(value)
        splat = splat_of(value) if op is not None and op.name == CONSTANT else None
        if splat is not None:
            return hlo.full(splat, shape, dtype_of(value.type))
        if op is None or value not in self._inside or op.name == CONSTANT:
            starts = [self._start if d == dim else self._zero for d in range(len(shape))]
            return hlo.dynamic_slice(value, starts, shape)
        operands = [self.of(x, _dim_of_operand(op, i, dim)) for i, x in enumerate(op.operands)]
        copy = op.clone().operation
        for number, operand in enumerate(operands):
            copy.operands[number] = operand
        result = copy.results[0]
        result.set_type(ir.RankedTensorType.get(shape, value.type.element_type))
        if op.name == "stablehlo.iota" and ir.IntegerAttr(op.attributes["iota_dimension"]).value == dim:
            first, dtype = self._start, dtype_of(value.type)
            if dtype != np.int32:
                first = hlo.convert(first, dtype)
            return hlo.add(result, hlo.broadcast_in_dim(first, shape, []))
        return result


def _dim_of_operand(op: ir.Operation, number: int, dim: int) -> int | None:
    """Which dimension of an operand counts what dimension `dim` of the result does."""
    shape = list(op.operands[number].type.shape)
    if op.name == "stablehlo.reduce":
        kept = [d for d in range(len(shape)) if d not in ints(op, "dimensions")]
        return kept[dim] if number == 0 else None
    if op.name == "stablehlo.broadcast_in_dim":
        dims = ints(op, "broadcast_dimensions")
        if dim not in dims:
            return None
        own = dims.index(dim)
        return own if shape[own] == op.results[0].type.shape[dim] else None
    if op.name == "stablehlo.dot_general":
        numbers = DotNumbers.of(op)
        ranks = [len(operand.type.shape) for operand in op.operands]
        batches = (numbers.lhs_batch, numbers.rhs_batch)
        frees = (numbers.lhs_free(ranks[0]), numbers.rhs_free(ranks[1]))
        if dim < len(batches[0]):
            return batches[number][dim]
        place = dim - len(batches[0]) - (len(frees[0]) if number else 0)
        return frees[number][place] if 0 <= place < len(frees[number]) else None
    return dim if shape else None
