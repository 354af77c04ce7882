"""Let an element-wise generic write where an operand lay that nobody reads afterwards.

    %1 = linalg.generic ins(%0, %s) outs(%e) { yield div(%in, %s) }
becomes
    %1 = linalg.generic ins(%s) outs(%0) { yield div(%out, %s) }

so that, where %1 is a result, %0 is written there at once and needs no memory of its own. For
operands that other element-wise generics made, of the result's type and read at the same index.
Leaves alone what reads its output, has several, or updates an argument.

example: test/passes/linalg/elementwise/overwrite_operands.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import in_block
from lamina.passes.linalg.analysis.reducing import reduced_dimensions
from lamina.passes.linalg.analysis.structure import Generic, generics_together, read_generic


class OverwriteOperands(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in generics_together(module):
            if reduced_dimensions(op) or len(op.results) != 1:
                continue
            if isinstance(op.results[0].type, ir.RankedTensorType):
                generic = read_generic(op)
                number = _overwritten(generic)
                if number is not None:
                    _overwrite(generic, number)
                    self.count("overwriting")


def _overwritten(generic: Generic) -> int | None:
    """Which input's place the result can take."""
    if list(generic.body.arguments[len(generic.inputs)].uses):
        return None
    if any(op.operation.name == "tensor.extract" for op in generic.body.operations):
        return None
    if _has_a_place(generic):
        return None
    for number, (value, map_) in enumerate(zip(generic.inputs, generic.input_maps, strict=True)):
        if (
            value.type == generic.op.results[0].type
            and map_ == generic.output_maps[0]
            and not isinstance(value.owner, ir.Block)
            and value.owner.name == "linalg.generic"
            and not reduced_dimensions(value.owner)
            and _is_last_reader(generic, value)
        ):
            return number
    return None


def _has_a_place(generic: Generic) -> bool:
    """Whether the result overwrites another input, an argument that it updates: from elsewhere it would
    have to be copied there."""
    destinations = [
        use.owner.operands[1]
        for use in generic.op.results[0].uses
        if use.owner.name == "bufferization.materialize_in_destination"
    ]
    return any(value in generic.inputs for value in destinations)


def _is_last_reader(generic: Generic, value: ir.Value) -> bool:
    """Whether all other users are other ops before this one, none of which returns the value."""
    reads = 0
    for use in value.uses:
        user = in_block(use.owner.operation, generic.op.block)
        if user == generic.op:
            reads += 1
        elif user.name != "linalg.generic" or not user.is_before_in_block(generic.op):
            return False
    return reads == 1


def _overwrite(generic: Generic, number: int) -> None:
    op, body = generic.op, generic.body
    body.arguments[number].replace_all_uses_with(body.arguments[len(generic.inputs)])
    body.erase_argument(number)
    operands = [value for at, value in enumerate(generic.inputs) if at != number]
    maps = [map_ for at, map_ in enumerate(generic.input_maps) if at != number]
    maps = [ir.AffineMapAttr.get(map_) for map_ in (*maps, generic.output_maps[0])]
    with ir.InsertionPoint(op), op.location:
        new = remade(
            op, [op.results[0].type], [*operands, generic.inputs[number]], regions=1,
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 1]),
            indexing_maps=ir.ArrayAttr.get(maps),
        )  # fmt: skip
    body.append_to(new.regions[0])
    op.results[0].replace_all_uses_with(new.result)
    op.erase()
