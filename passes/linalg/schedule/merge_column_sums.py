"""Reduce columns while their elements are made.

    %e = linalg.generic ins(%x) { yield exp(%in) }             %e, %s = linalg.generic ins(%x)
    %s = linalg.generic ins(%e) { yield add(%out, %in) }   ->      { %v = exp(%in)
                                                                     yield %v, add(%out, %v) }

so that memory is walked once. For element-wise generics and reductions of their result that keep its
last dimension: those go row by row, in the order in which elements are made. Leaves alone
reductions along rows, which find the row in cache, those of few columns, which are split
(`linalg-split-reductions`), results that something reads in between, and those that several reductions read
and nothing else (`linalg-fuse-reductions`).

example: test/passes/linalg/schedule/merge_column_sums.mlir
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.framework.base import Pass
from lamina.passes.linalg.analysis.reducing import reduced_dimensions
from lamina.passes.linalg.analysis.structure import (
    Generic,
    generics_together,
    make_generic,
    read_generic,
)
from lamina.passes.linalg.vectors.vector_body import can_be_on_vectors

_LEAST_ROWS = 32  # rounding: enough for a walk that does several reductions
_LEAST_COLUMNS = 512  # rounding: enough for tasks of some of them each


class MergeColumnSums(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in generics_together(module):
            if not reduced_dimensions(op) or len(op.results) != 1:
                continue
            if isinstance(op.results[0].type, ir.RankedTensorType):
                reduction = read_generic(op)
                producer = _producer(reduction)
                if producer is not None:
                    _merge(producer, reduction)
                    self.count("merged")


def _producer(reduction: Generic) -> Generic | None:
    """The element-wise generic of whose result all columns are reduced, if they can be merged."""
    if len(reduction.inputs) != 1:
        return None
    made = reduction.inputs[0]
    if isinstance(made.owner, ir.Block) or made.owner.name != "linalg.generic":
        return None
    op = made.owner.operation
    if len(op.results) != 1 or op.block != reduction.op.block:
        return None
    producer = read_generic(op)
    identity = ir.AffineMap.get_identity(producer.rank)
    of_input = reduction.input_maps[0]
    if (
        any(producer.reductions)
        or producer.rank < 2
        or producer.output_maps[0] != identity
        or list(producer.body.arguments[len(producer.inputs)].uses)
        or not of_input.is_permutation
        or not all(isinstance(e, ir.AffineDimExpr) for e in reduction.output_maps[0].results)
    ):
        return None
    columns = math.prod(ir.RankedTensorType(reduction.outputs[0].type).shape)
    if columns < _LEAST_COLUMNS:
        return None
    last = ir.AffineDimExpr(list(of_input.results)[-1]).position
    if reduction.reductions[last] or producer.extents[-1] < 2:
        return None
    if _is_read_before(made, reduction.op) or _is_only_reduced(made, producer):
        return None
    return producer


def _is_only_reduced(made: ir.Value, producer: Generic) -> bool:
    """Whether all that reads a value of many rows reduces it: that is done in one walk."""
    readers = {use.owner.operation for use in made.uses}
    if len(readers) < 2 or producer.extents[0] < _LEAST_ROWS or not can_be_on_vectors(producer.body):
        return False
    return all(
        reader.name == "linalg.generic"
        and reader.block == producer.op.block
        and _reduces_on_vectors(read_generic(reader))
        for reader in readers
    )


def _reduces_on_vectors(generic: Generic) -> bool:
    return (
        generic.rank == 2
        and sum(generic.reductions) == 1
        and len(generic.outputs) == 1
        and can_be_on_vectors(generic.body)
    )


def _is_read_before(made: ir.Value, last: ir.Operation) -> bool:
    """Whether anything but `last` uses a value before it."""
    for use in made.uses:
        user = use.owner.operation
        while user.block != last.block:
            user = user.parent.operation
        if user != last and user.is_before_in_block(last):
            return True
    return False


def _merge(producer: Generic, reduction: Generic) -> None:
    # The reduction's dimensions, numbered as the producer's.
    place = {
        ir.AffineDimExpr(e).position: at for at, e in enumerate(reduction.input_maps[0].results)
    }
    kept = [
        ir.AffineExpr.get_dim(place[ir.AffineDimExpr(e).position])
        for e in reduction.output_maps[0].results
    ]
    reduced = [False] * producer.rank
    for dimension, is_reduced in enumerate(reduction.reductions):
        reduced[place[dimension]] = is_reduced
    outputs = [producer.outputs[0], reduction.outputs[0]]
    with ir.InsertionPoint(reduction.op), reduction.op.location:
        merged = make_generic(
            producer.inputs,
            outputs,
            [
                *producer.input_maps,
                producer.output_maps[0],
                ir.AffineMap.get(producer.rank, 0, kept),
            ],
            reduced,
            results=[value.type for value in outputs],
        )
    scalars = [argument.type for argument in producer.body.arguments]
    accumulated = reduction.body.arguments[1]
    body = ir.Block.create_at_start(merged.regions[0], [*scalars, accumulated.type])
    now: dict[ir.Value, ir.Value] = dict(
        zip(producer.body.arguments, body.arguments, strict=False)
    )
    with ir.InsertionPoint(body):
        [value] = _copied(producer.body, now)
        now |= {reduction.body.arguments[0]: value, accumulated: body.arguments[len(scalars)]}
        [total] = _copied(reduction.body, now)
        ir.Operation.create("linalg.yield", operands=[value, total])
    for old, new in zip((producer.op, reduction.op), merged.results, strict=True):
        old.results[0].replace_all_uses_with(new)
    reduction.op.erase()
    producer.op.erase()


def _copied(block: ir.Block, now: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """A body's ops once more, on what `now` says its values are; what it yields."""
    *computing, end = (op.operation for op in block.operations)
    for op in computing:
        copied(op, now)
    return [now.get(value, value) for value in end.operands]
