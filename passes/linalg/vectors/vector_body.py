"""Bodies of generics done on vectors instead of elements."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.dialects.vendors import ir, vector
from lamina.passes.emit.copies import remade
from lamina.passes.memref.plain_loop import has_vectors

_KINDS = {
    "arith.addf": "add", "arith.addi": "add", "arith.mulf": "mul", "arith.muli": "mul",
    "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor",
}  # fmt: skip


def across_lanes(combiner: ir.Operation, value: ir.Value, start: ir.Value) -> ir.Value:
    """All lanes of a vector and a start, put together by what combines two."""
    kind = _KINDS.get(combiner.name, combiner.name.removeprefix("arith."))
    attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{kind}>")}
    if "fastmath" in combiner.attributes:
        attributes["fastmath"] = combiner.attributes["fastmath"]
    return ir.Operation.create("vector.reduction", [start.type], [value, start], attributes).result


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
