"""Give the users of a tuple's elements the elements.

    %t = stablehlo.tuple %a, %b
    %0 = stablehlo.get_tuple_element %t[1]     ->     %b

A tuple that nobody uses any more is erased. Tuples that come from elsewhere are left alone.
example: test/passes/stablehlo/canonicalize/forward_tuples.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass


class ForwardTuples(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        reads: list[ir.Operation] = []
        tuples: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "stablehlo.get_tuple_element":
                reads.append(op)
            elif op.name == "stablehlo.tuple":
                tuples.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        for op in reads:  # in program order: a tuple of tuples is taken apart from outside
            made = op.operands[0].owner
            if not isinstance(made, ir.Block) and made.operation.name == "stablehlo.tuple":
                element = made.operation.operands[op.attributes["index"].value]
                op.results[0].replace_all_uses_with(element)
                op.erase()
                self.count("elements")
        for op in reversed(tuples):
            if not list(op.results[0].uses):
                op.erase()
