"""Sum along several dimensions that lie behind each other in memory as along one.

    s[b] += x[b, i, j] * y[b, i, j]   for i, j < 12     ->     s[b] += x[b, i] * y[b, i]   for i < 144

whose rows fill vectors, where each of the short ones would end in a sum over lanes. The order of terms
stays. For bufferised `linalg.generic`s on dense buffers from outside; temporaries stay as they are,
since their shapes say which loops can be shared.

example: test/passes/linalg/merge_reductions.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.builders.buffers import reshaped
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.copies import copied
from lamina.passes.find import find_ops
from lamina.passes.linalg.loop_nest import LOOPS
from lamina.passes.linalg.reducing import reduced_dimensions, reducing_on_buffers
from lamina.passes.linalg.structure import (
    Generic,
    is_buffer,
    make_generic,
    places_of,
    read_generic,
)


@dataclass(frozen=True)
class MergeReductions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in reducing_on_buffers(module):
            if reduced_dimensions(op) < 2 or LOOPS in op.attributes or find_ops(op, "linalg.index"):
                continue
            generic = read_generic(op)
            while (pair := _pair(generic)) is not None:
                with ir.InsertionPoint(generic.op), generic.op.location:
                    merged = _merged(generic, *pair)
                generic.op.erase()
                generic = read_generic(merged)
                self.count("merged")


def _pair(generic: Generic) -> tuple[int, int] | None:
    """Two dimensions that are reduced and one to all operands, the outer one first."""
    reduced = [d for d in range(generic.rank) if generic.reductions[d]]
    for outer in reduced:
        for inner in reduced:
            if outer != inner and all(
                _is_one(value, places_of(map_), outer, inner)
                for value, map_ in zip(
                    (*generic.inputs, *generic.outputs),
                    (*generic.input_maps, *generic.output_maps),
                    strict=True,
                )
            ):
                return outer, inner
    return None


def _is_one(value: ir.Value, places: list[int], outer: int, inner: int) -> bool:
    """Whether an operand has both dimensions next to each other, or none."""
    if -1 in places:
        return False
    if outer not in places and inner not in places:
        return True
    if places.count(outer) != 1 or places.count(inner) != 1 or not isinstance(value.owner, ir.Block):
        return False
    type_ = ir.MemRefType(value.type)
    return (
        places.index(outer) + 1 == places.index(inner)
        and type_.affine_map == ir.AffineMap.get_identity(len(places))
    )


def _merged(generic: Generic, outer: int, inner: int) -> ir.Operation:
    def number(d: int) -> int:
        return d - (d > inner)

    operands, maps = [], []
    for value, map_ in zip(
        (*generic.inputs, *generic.outputs), (*generic.input_maps, *generic.output_maps), strict=True
    ):
        places = places_of(map_)
        if is_buffer(value) and inner in places:
            at = places.index(inner)
            shape = list(value.type.shape)
            shape[at - 1 : at + 1] = [shape[at - 1] * shape[at]]
            value = reshaped(value, ir.MemRefType.get(shape, value.type.element_type))
            places.remove(inner)
        kept = [ir.AffineDimExpr.get(number(d)) for d in places]
        operands.append(value)
        maps.append(ir.AffineMap.get(generic.rank - 1, 0, kept))
    count = len(generic.inputs)
    reductions = [r for d, r in enumerate(generic.reductions) if d != inner]
    op = make_generic(operands[:count], operands[count:], maps, reductions)
    body = op.regions[0].blocks.append(*(a.type for a in generic.body.arguments))
    known = dict(zip(generic.body.arguments, body.arguments, strict=True))
    with ir.InsertionPoint(body):
        for step in generic.body.operations:
            copied(step.operation, known)
    return op
