"""Make tokens that nothing but other tokens need arrays without elements.

    %t = create_token; %u = after_all %t, %t     ->     constants of tensor<0xi1>

They may still pass through loops and branches. Programs with ops that truly order effects (infeed,
outfeed, send, recv), and with tokens among main's arguments or results, are left alone:
check-supported refuses them.
example: test/passes/stablehlo/canonicalize/drop_tokens.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass

_TOKEN = "!stablehlo.token"
_MAKERS = ("stablehlo.create_token", "stablehlo.after_all")


class DropTokens(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        makers: list[ir.Operation] = []
        values: list[ir.Value] = []
        stuck = False

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal stuck
            tokens = [r for r in op.results if str(r.type) == _TOKEN]
            for region in op.regions:
                for block in region.blocks:
                    tokens += [a for a in block.arguments if str(a.type) == _TOKEN]
            if op.name in _MAKERS:
                makers.append(op)
            elif tokens and op.name not in ("stablehlo.while", "stablehlo.if", "stablehlo.case"):
                stuck = True
            elif op.name == "func.return" and any(str(v.type) == _TOKEN for v in op.operands):
                stuck = True
            else:
                values.extend(tokens)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        if stuck:
            return
        empty = ir.RankedTensorType.get([0], ir.IntegerType.get_signless(1))
        for value in values:
            value.set_type(empty)
        for op in makers:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(hlo.full(False, [0], np.dtype(bool)))
        for op in reversed(makers):
            op.erase()
            self.count("tokens")
