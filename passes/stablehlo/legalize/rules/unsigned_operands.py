"""Convert unsigned operands of a contraction to the integer type of its result.

    dot_general %a, %b : (ui8, ui8) -> i32    ->    dot_general (convert %a), (convert %b)

Within a contraction upstream widens every integer as if it had a sign. Looks at `dot_general`
and `convolution`. Leaves alone those whose operands have the result's type or a sign, and
those with floating-point results: the rule of contractions converts the operands of these.

example: test/passes/stablehlo/legalize/rules/unsigned_operands.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.legalize.rules.rule import Rule


def _widens(op: ir.Operation) -> bool:
    wanted = op.results[0].type.element_type
    if not isinstance(wanted, ir.IntegerType):
        return False
    elements = [operand.type.element_type for operand in op.operands]
    return any(_is_unsigned(of) and of != wanted for of in elements)


def _widen(op: ir.Operation) -> None:
    wanted = op.results[0].type
    for position, operand in enumerate(list(op.operands)):
        if operand.type.element_type != wanted.element_type:
            op.operands[position] = hlo.convert(operand, dtype_of(wanted))


def _is_unsigned(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and ir.IntegerType(element).is_unsigned


RULE = Rule(("stablehlo.dot_general", "stablehlo.convolution"), _widens, _widen)
