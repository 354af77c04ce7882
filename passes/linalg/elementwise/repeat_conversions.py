"""Give each factor of a product its own conversion, where one conversion is both factors'.

    %0 = linalg.generic {arith.extf} ins(%x)          %0 = linalg.generic {arith.extf} ins(%x)
    %1 = linalg.generic {...} ins(%0, %0)       ->    %1 = linalg.generic {arith.extf} ins(%x)
                                                      %2 = linalg.generic {...} ins(%0, %1)
Fusion takes only what has one use: x times its own transpose would be done on a converted copy in
memory, where tensor cores take x as it is. Conversions that another op uses, too, are left alone.

example: test/passes/linalg/elementwise/repeat_conversions.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_CONVERSIONS = ("arith.extf", "arith.extsi")


class RepeatConversions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "linalg.generic"):
            if not _is_conversion(op):
                continue
            uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
            if len(uses) == 2 and uses[0][0] == uses[1][0]:
                user, place = uses[0]
                with ir.InsertionPoint(user):
                    user.operands[place] = op.clone().operation.results[0]
                self.count("conversions")


def _is_conversion(op: ir.Operation) -> bool:
    body = op.regions[0].blocks[0].operations
    return len(op.results) == 1 and len(body) == 2 and body[0].operation.name in _CONVERSIONS
