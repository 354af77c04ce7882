"""Convert unsigned operands of a contraction to the integer type of its result.

    dot_general %a, %b : (ui8, ui8) -> i32    ->    dot_general (convert %a), (convert %b)

Within a contraction upstream widens every integer as if it had a sign. Looks at `dot_general`
and `convolution`. Leaves alone those whose operands have the result's type or a sign, and
those with floating-point results: `stablehlo-define-contractions` converts the operands of these.

example: test/passes/stablehlo/legalize/widen_unsigned_operands.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops


class WidenUnsignedOperands(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.dot_general", "stablehlo.convolution"):
            wanted = op.results[0].type.element_type
            if not isinstance(wanted, ir.IntegerType):
                continue
            elements = [operand.type.element_type for operand in op.operands]
            if not any(_is_unsigned(of) and of != wanted for of in elements):
                continue
            with ir.InsertionPoint(op), op.location:
                for position, of in enumerate(elements):
                    if of != wanted:
                        dtype = dtype_of(op.results[0].type)
                        op.operands[position] = hlo.convert(op.operands[position], dtype)
            self.count("widened")


def _is_unsigned(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and ir.IntegerType(element).is_unsigned
