"""Replace each `linalg.generic` without dimensions by its scalar body.

StableHLO regions compute on tensors of one element; after legalisation each of their ops is a
generic with no loops. Its inputs become `tensor.extract`, its results `tensor.from_elements`;
canonicalisation then removes both between neighbours, and no buffer is left for a scalar. Generics
with dimensions are left alone.

example: test/passes/linalg/elementwise/inline_scalar_generics.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import extract, scalar_tensor
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops


class InlineScalarGenerics(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        found = [
            op
            for op in find_ops(module, "linalg.generic")
            if len(op.results) and not len(op.attributes["iterator_types"])
        ]
        for op in found:
            _inline(op)
        self.count("inlined", len(found))


def _inline(generic: ir.Operation) -> None:
    block = generic.regions[0].blocks[0]
    with ir.InsertionPoint(generic), generic.location:
        for argument, operand in zip(block.arguments, generic.operands, strict=True):
            if len(list(argument.uses)):
                is_tensor = isinstance(operand.type, ir.RankedTensorType)
                argument.replace_all_uses_with(extract(operand, []) if is_tensor else operand)
        operations = [op.operation for op in block.operations]
        for op in operations[:-1]:
            op.move_before(generic)
        for result, value in zip(generic.results, operations[-1].operands, strict=True):
            result.replace_all_uses_with(scalar_tensor(value))
    generic.erase()
