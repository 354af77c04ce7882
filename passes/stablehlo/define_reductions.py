"""Bring reductions into the form upstream lowers: operands of the type that the body computes on.

StableHLO lets a body compute, and the results be, in a wider type than the operands' elements:
`reduce`, `reduce_window`. The operands are converted first. Optimisation barriers go: within one
kernel nothing is left to keep apart. Leaves all other ops alone.

example: test/passes/stablehlo/define_reductions.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.find import find_ops


@dataclass(frozen=True)
class DefineReductions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.reduce", "stablehlo.reduce_window"):
            count = len(op.results)
            for position in range(count):
                operand, init = op.operands[position], op.operands[count + position]
                wanted = op.regions[0].blocks[0].arguments[position].type.element_type
                with ir.InsertionPoint(op), op.location:
                    for place, value in ((position, operand), (count + position, init)):
                        if value.type.element_type != wanted:
                            dtype = dtype_of(ir.RankedTensorType.get([], wanted))
                            op.operands[place] = hlo.convert(value, dtype)
                            self.count("converted")
        for op in find_ops(module, "stablehlo.optimization_barrier"):
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.erase()
