"""Branch weights of loops whose trip counts are known.

    ^head(%i: i64):                                      ^head(%i: i64):
      %more = llvm.icmp "slt" %i, %c128                    %more = llvm.icmp "slt" %i, %c128
      llvm.cond_br %more, ^body, ^end                ->    llvm.cond_br %more weights([128, 1]), ^body, ^end

LLVM's register allocator spills what is used least often, and takes an unknown loop to run 32 times: without
weights it holds the constants of a short loop, nested deeper, in the registers that the sums of a long loop beside
it need. A matrix product with tanh of its sums takes half the time with them.

example: test/passes/llvm/weigh_loops.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import made_by

_MOST = 2**31 - 1  # range: that a weight may be
_SIGNED_LESS = 2  # llvm.icmp's predicate "slt"


class WeighLoops(Pass):
    """See the module's docstring."""

    only_with = frozenset(("llvm.cond_br",))

    def run(self, module: ir.Module) -> None:
        for branch in find_ops(module, "llvm.cond_br"):
            if (trips := _trips(branch)) is not None:
                branch.attributes["branch_weights"] = ir.DenseI32ArrayAttr.get([min(trips, _MOST), 1])
                self.count("loops")


def _trips(branch: ir.Operation) -> int | None:
    """How often the loop runs at whose head a branch stands, None where that is not known."""
    compared = made_by(branch.operands[0], "llvm.icmp")
    if compared is None or ir.IntegerAttr(compared.attributes["predicate"]).value != _SIGNED_LESS:
        return None
    counter, bound = compared.operands[0], _constant(compared.operands[1])
    if bound is None or not isinstance(counter, ir.BlockArgument) or counter.owner != branch.block:
        return None
    first = step = None
    for block in branch.block.predecessors:
        value = _handed_over(block, counter)
        if value is None:
            return None
        if (known := _constant(value)) is not None and first is None:
            first = known
        elif (added := made_by(value, "llvm.add")) is not None and added.operands[0] == counter and step is None:
            step = _constant(added.operands[1])
        else:
            return None
    if first is None or step is None or step <= 0:
        return None
    return max(0, -((first - bound) // step))


def _handed_over(block: ir.Block, argument: ir.BlockArgument) -> ir.Value | None:
    """What the end of a block gives an argument of the block that it leads to."""
    end = block.operations[-1].operation
    return end.operands[argument.arg_number] if end.name == "llvm.br" else None


def _constant(value: ir.Value) -> int | None:
    op = made_by(value, "llvm.mlir.constant")
    return None if op is None else ir.IntegerAttr(op.attributes["value"]).value
