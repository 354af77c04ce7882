"""Swap the operands of each subtraction, or fail.

A pass from outside the tree, for the tests of lamina-opt.
"""


from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass


class SwapOperands(Pass):
    """Does the wrong thing on purpose in three ways."""

    refuse: bool = False
    crash: bool = False
    spoil: bool = False

    def run(self, module: ir.Module) -> None:
        block = module.body.operations[0].operation.regions[0].blocks[0]
        for op in [inner.operation for inner in block.operations]:
            if op.name != "stablehlo.subtract":
                continue
            if self.refuse:
                raise CompileError.at(op, "won't swap", hint="say please")
            if self.crash:
                raise RuntimeError("swapping broke")
            lhs, rhs = op.operands
            op.operands[0], op.operands[1] = rhs, lhs
            if self.spoil:
                op.move_after(block.operations[len(block.operations) - 2].operation)
            self.count("swapped")
