"""Compute what a generic extracts from another's result where it is extracted.

    %i = linalg.generic ins(%a) { yield add(%in, %c) }    linalg.generic {
    linalg.generic {                                        %a_at = tensor.extract %a[%n]
      %at = tensor.extract %i[%n]                    ->     %at = add(%a_at, %c)
      ... }                                                 ... }

So the indices of a gather need no array of their own. Leaves alone what isn't element-wise, has more
than `max_ops` ops, or is read otherwise, too: that is in memory anyway.

example: test/passes/linalg/inline_extracted.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.copies import copied
from lamina.passes.linalg.structure import Generic, generics_together, read_generic
from lamina.passes.loops import extract, index

_EXTRACT = "tensor.extract"


@dataclass(frozen=True)
class InlineExtracted(Pass):
    """See the module's docstring."""

    max_ops: int = 24

    def run(self, module: ir.Module) -> None:
        for generic in generics_together(module):
            body = generic.regions[0].blocks[0]
            work = [op.operation for op in body.operations if op.operation.name == _EXTRACT]
            while work:
                op = work.pop()
                producer = self._producer(op.operands[0])
                if producer is not None:
                    work += _inline(op, producer)
                    self.count("inlined")

    def _producer(self, tensor: ir.Value) -> Generic | None:
        """The generic whose result a tensor is, if only extracted elements are wanted of it."""
        if isinstance(tensor.owner, ir.Block) or tensor.owner.name != "linalg.generic":
            return None
        op = tensor.owner.operation
        if len(op.results) != 1 or any(use.owner.name != _EXTRACT for use in tensor.uses):
            return None
        producer = read_generic(op)
        identity = ir.AffineMap.get_identity(producer.rank)
        if any(producer.reductions) or producer.output_maps[0] != identity:
            return None
        if len(producer.body.operations) > self.max_ops or any(
            len(inner.operation.regions) for inner in producer.body.operations
        ):
            return None
        if len(list(producer.body.arguments[len(producer.inputs)].uses)):
            return None
        plain = ir.AffineDimExpr, ir.AffineConstantExpr
        if not all(isinstance(e, plain) for map_ in producer.input_maps for e in map_.results):
            return None
        return producer


def _inline(op: ir.Operation, producer: Generic) -> list[ir.Operation]:
    """Replace an extraction by a copy of what made the element; the extractions made for it."""
    positions = list(op.operands)[1:]
    made: list[ir.Operation] = []
    now: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(op), op.location:
        for argument, tensor, map_ in zip(
            producer.body.arguments, producer.inputs, producer.input_maps, strict=False
        ):
            if not isinstance(tensor.type, ir.RankedTensorType):
                now[argument] = tensor
            elif len(list(argument.uses)):
                now[argument] = extract(tensor, [_position(e, positions) for e in map_.results])
                made.append(now[argument].owner.operation)
        *computing, end = (inner.operation for inner in producer.body.operations)
        for inner in computing:
            if inner.name == "linalg.index":
                now[inner.results[0]] = positions[ir.IntegerAttr(inner.attributes["dim"]).value]
                continue
            copy = copied(inner, now)
            if copy.name == _EXTRACT:
                made.append(copy)
        value = end.operands[0]
        op.results[0].replace_all_uses_with(now.get(value, value))
    op.erase()
    return made


def _position(expression: ir.AffineExpr, positions: list[ir.Value]) -> ir.Value:
    if isinstance(expression, ir.AffineConstantExpr):
        return index(expression.value)
    return positions[ir.AffineDimExpr(expression).position]
