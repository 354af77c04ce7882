"""Bodies of generics done on vectors instead of elements."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.dialects.vendors import ir, vector
from lamina.passes.copies import remade
from lamina.passes.memref.plain_loop import has_vectors


def can_be_on_vectors(body: ir.Block) -> bool:
    """Whether a body's ops are element-wise ones that vectors have."""
    *computing, _ = (op.operation for op in body.operations)
    return all(
        len(op.results) == 1
        and not len(op.regions)
        and (op.name == "arith.constant" or has_vectors(op.name))
        for op in computing
    )


def on_vectors(
    body: ir.Block, given: Mapping[ir.Value, ir.Value], lanes: int
) -> list[ir.Value]:
    """What a body yields at the ambient place, for these arguments; scalars are the same in all
    lanes."""
    now = dict(given)

    def wide(type_: ir.Type) -> ir.Type:
        return ir.VectorType.get([lanes], type_)

    def vector_of(operand: ir.Value) -> ir.Value:
        value = now.get(operand, operand)
        if not isinstance(value.type, ir.VectorType):
            value = now[operand] = vector.BroadcastOp(wide(value.type), value).result
        return value

    *computing, end = (op.operation for op in body.operations)
    for op in computing:
        of = op.results[0].type
        if op.name == "arith.constant":
            now[op.results[0]] = remade(op, [of], []).result
            continue
        operands = [vector_of(operand) for operand in op.operands]
        now[op.results[0]] = remade(op, [wide(of)], operands).result
    return [vector_of(value) for value in end.operands]
