"""Say what becomes of NaN in a format that has none.

    stablehlo.reduce_precision %x, format = e5m0   ->   the same, but infinity where %x is NaN

A format without mantissa bits can't tell NaN from infinity; upstream's lowering leaves NaN as it
is. Leaves every other format alone.
example: test/passes/stablehlo/legalize/define_reduce_precision.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass


class DefineReducePrecision(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "stablehlo.reduce_precision" and not op.attributes["mantissa_bits"].value:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in found:
            x, result = op.operands[0], op.results[0]
            with ir.InsertionPoint.after(op), op.location:
                infinity = hlo.full(np.inf, shape_of(x.type), dtype_of(x.type))
                chosen = hlo.select(hlo.compare(x, x, "NE"), infinity, result)
            result.replace_all_uses_except(chosen, chosen.owner.operation)
            self.count("formats without NaN")
