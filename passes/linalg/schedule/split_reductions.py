"""Split a large reduction with few results into chunks that can run as tasks.

    s = init + sum over i < 4096 of x[i]
becomes
    p[c] = sum over j < 64 of x[64 * c + j];  s = init + sum over c of p[c]

For bufferised `linalg.generic`s with one output whose combiner is a known associative operation,
when there is work for several cores and the results are too few to share it out.
The number of chunks depends on the shape alone, so results don't depend on the number of threads. A
dimension whose extent has no divisor between 4 and the number wanted is not split.

What adds up the chunks' results moves to where the sum is read: several reductions of an array stand side
by side then, and share the loop over the chunks (`schedule-generics`), each of which is in cache for all of them.

example: test/passes/linalg/schedule/split_reductions.mlir
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import in_block
from lamina.passes.linalg.analysis.parallel import is_worth_splitting, total_cost
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_buffer,
    is_dense,
    make_copy,
    make_generic,
    read_generic,
)

_LEAST_TASKS = 4  # rounding
_NEUTRAL = {
    "arith.addf": -0.0, "arith.addi": 0, "arith.mulf": 1.0, "arith.muli": 1, "arith.ori": 0,
    "arith.xori": 0, "arith.andi": -1, "arith.maximumf": -math.inf, "arith.minimumf": math.inf,
    "arith.maxui": 0, "arith.minui": -1,
}  # fmt: skip
_SIGNED = {"arith.maxsi": "least", "arith.minsi": "largest"}


class SplitReductions(Pass):
    """See the module's docstring."""

    chunks: int = 64
    chunk_elements: int = 16384
    """What a chunk has at most where that makes more of them, which `most-chunks` bounds."""
    most_chunks: int = 1024  # rounding

    def run(self, module: ir.Module) -> None:
        last_steps: list[ir.Operation] = []
        for op in reducing_on_buffers(module):
            generic = read_generic(op)
            if op.parent.name != "func.func" or not self._wants_splitting(generic):
                continue
            for dimension in range(generic.rank):
                last = self._split(generic, dimension) if generic.reductions[dimension] else None
                if last is not None:
                    last_steps.append(last)
                    self.count("split")
                    break
        for last in last_steps:
            move_to_reader(last)

    def _wants_splitting(self, generic: Generic) -> bool:
        results = math.prod(
            n for n, reduced in zip(generic.extents, generic.reductions, strict=True) if not reduced
        )
        return (
            results < _LEAST_TASKS
            and len(generic.outputs) == 1
            and 0 not in generic.extents
            and is_worth_splitting(total_cost(generic))
            and combiner_of(generic) is not None
            and not any(op.operation.name == "linalg.index" for op in generic.body.operations)
        )

    def _split(self, generic: Generic, dimension: int) -> ir.Operation | None:
        """Split a reduction, if that is possible, and return what adds up the chunks' results."""
        extent = generic.extents[dimension]
        wanted = math.prod(generic.extents) // self.chunk_elements
        wanted = max(self.chunks, min(wanted, self.most_chunks))
        chunks = next((n for n in range(wanted, 3, -1) if extent % n == 0), None)
        maps = (*generic.input_maps, *generic.output_maps)
        if chunks is None or not all(_is_plain(map_, dimension) for map_ in maps):
            return None
        if not all(is_dense(value) for value in generic.inputs if is_buffer(value)):
            return None
        with ir.InsertionPoint(generic.op), generic.op.location:
            last = _rewrite(generic, dimension, chunks)
        generic.op.erase()
        return last


def move_to_reader(last: ir.Operation) -> None:
    """Put the step that completes a result in front of the next op that touches it."""
    result = last.operands[1]
    first = None
    for use in result.uses:
        user = in_block(use.owner.operation, last.block)
        if last.is_before_in_block(user) and (first is None or user.is_before_in_block(first)):
            first = user
    last.move_before(first or last.block.operations[len(last.block.operations) - 1].operation)


def _rewrite(generic: Generic, dimension: int, chunks: int) -> ir.Operation:
    combiner = combiner_of(generic)
    assert combiner is not None
    output = generic.outputs[0]
    element = output.type.element_type
    partial_type = ir.MemRefType.get([chunks, *output.type.shape], element)
    partial = memref.AllocOp(partial_type, [], []).result
    neutral = arith.ConstantOp(element, neutral_of(combiner, element)).result
    make_copy(neutral, partial)
    inputs, maps = [], []
    for value, map_ in zip(generic.inputs, generic.input_maps, strict=True):
        places = [p for p, e in enumerate(map_.results) if _is_dimension(e, dimension)]
        inputs.append(_expanded(value, places[0], chunks) if places else value)
        maps.append(_with_chunk(map_, generic.rank, places[0] if places else None))
    out_map = _with_chunk(generic.output_maps[0], generic.rank, None)
    chunk = ir.AffineDimExpr.get(0)
    out_map = ir.AffineMap.get(generic.rank + 1, 0, [chunk, *out_map.results])
    first = make_generic(inputs, [partial], [*maps, out_map], [False, *generic.reductions])
    _move_body(generic.body, first)
    return add_up(partial, output, combiner)


def add_up(
    partial: ir.Value, output: ir.Value, combiner: ir.Operation, dimension: int = 0
) -> ir.Operation:
    """What combines the chunks' results, along a dimension of `partial`, with what a result is so far, in order."""
    element = output.type.element_type
    rank = len(output.type.shape)
    identity = [ir.AffineDimExpr.get(d) for d in range(rank)]
    last = ir.AffineDimExpr.get(rank)
    second = make_generic(
        [partial],
        [output],
        [
            ir.AffineMap.get(rank + 1, 0, [*identity[:dimension], last, *identity[dimension:]]),
            ir.AffineMap.get(rank + 1, 0, identity),
        ],
        [*([False] * rank), True],
    )
    block = second.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        value, accumulator = block.arguments
        attributes = {name: combiner.attributes[name] for name in combiner.attributes}
        total = ir.Operation.create(
            combiner.name, results=[element], operands=[accumulator, value], attributes=attributes
        ).result
        ir.Operation.create("linalg.yield", operands=[total])
    return second


def _move_body(body: ir.Block, into: ir.Operation) -> None:
    block = into.regions[0].blocks.append(*(argument.type for argument in body.arguments))
    for old, new in zip(body.arguments, block.arguments, strict=True):
        old.replace_all_uses_with(new)
    with ir.InsertionPoint(block):
        anchor = ir.Operation.create("linalg.yield")
    operations = [op.operation for op in body.operations]
    for op in operations:
        op.move_before(anchor)
    anchor.erase()


def _expanded(value: ir.Value, place: int, chunks: int) -> ir.Value:
    """The same buffer with one dimension seen as (chunks, elements of a chunk)."""
    shape = list(value.type.shape)
    split = [*shape[:place], chunks, shape[place] // chunks, *shape[place + 1 :]]
    groups: list[list[int]] = []
    for dimension in range(len(shape)):
        start = dimension + (dimension > place)
        groups.append([start, start + 1] if dimension == place else [start])
    result = ir.MemRefType.get(split, value.type.element_type)
    return memref.ExpandShapeOp(result, value, groups, [], static_output_shape=split).result


def _with_chunk(map_: ir.AffineMap, rank: int, place: int | None) -> ir.AffineMap:
    """A map with a new first dimension, which indexes the buffer's new one at `place`."""
    results = [ir.AffineDimExpr.get(ir.AffineDimExpr(e).position + 1) for e in map_.results]
    if place is not None:
        results.insert(place, ir.AffineDimExpr.get(0))
    return ir.AffineMap.get(rank + 1, 0, results)


def combiner_of(generic: Generic) -> ir.Operation | None:
    """The op that adds an element to the accumulator, if it is one that can be split."""
    accumulator = generic.body.arguments[len(generic.inputs)]
    yielded = generic.body.operations[len(generic.body.operations) - 1].operands[0]
    owner = yielded.owner
    if isinstance(owner, ir.Block) or owner.operation.name not in (*_NEUTRAL, *_SIGNED):
        return None
    uses = [use.owner.operation for use in accumulator.uses]
    return owner.operation if uses == [owner.operation] else None


def neutral_of(combiner: ir.Operation, element: ir.Type) -> ir.Attribute:
    """What combined with a value leaves it as it is."""
    if combiner.name in _SIGNED:
        half = 1 << element.width - 1
        return ir.IntegerAttr.get(element, -half if _SIGNED[combiner.name] == "least" else half - 1)
    neutral = _NEUTRAL[combiner.name]
    if isinstance(neutral, float):
        return ir.FloatAttr.get(element, neutral)
    return ir.IntegerAttr.get(element, neutral)


def _is_plain(map_: ir.AffineMap, dimension: int) -> bool:
    """Whether a map only names dimensions, this one at most once."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in map_.results):
        return False
    return sum(_is_dimension(e, dimension) for e in map_.results) <= 1


def _is_dimension(expression: ir.AffineExpr, dimension: int) -> bool:
    return (
        isinstance(expression, ir.AffineDimExpr)
        and ir.AffineDimExpr(expression).position == dimension
    )
