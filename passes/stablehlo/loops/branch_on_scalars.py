"""Compute what a scalar selects only in the steps of a loop that select it.

    stablehlo.while(%x) do {                     stablehlo.while(%x) do {
      %y = remainder %x, %n                        %r = stablehlo.if %p {
      %z = multiply %y, %y                  ->       %y = remainder %x, %n
      %r = select %p, %z, %x : tensor<i1>            %z = multiply %y, %y
                                                     return %z
                                                   } else { return %x }

A `select` by one boolean takes all of one operand. What only that operand needs moves into the branch that
takes it, from both sides, where that saves at least `least_ns` nanoseconds and as many as there are elements:
a branch is a kernel of its own, and cheap ops are better done on the way. Leaves alone selections outside
of loops, which are done once, those of elements, and those of scalars.

example: test/passes/stablehlo/loops/branch_on_scalars.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops, in_block
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import CONTROL, defining, in_order, is_pure, size_of
from lamina.passes.stablehlo.fusion.fuse_ops import captured
from lamina.passes.stablehlo.loops.step_cost import COSTLY_NS, cost_of

_SELECT = "stablehlo.select"
_MOST_OPS = 256  # search


class BranchOnScalars(Pass):
    """The pass `stablehlo-branch-on-scalars`."""

    only_with = frozenset(("stablehlo.while",))

    least_ns: float = REFERENCE.task_ns / 5

    def run(self, module: ir.Module) -> None:
        for loop in find_ops(module, "stablehlo.while"):
            block = loop.regions[1].blocks[0]
            selects = [op.operation for op in block.operations if op.operation.name == _SELECT]
            for select in reversed(selects):  # users first: others may move with them
                if select.block == block and self._pays(select):
                    _branch(select, block)
                    self.count("branches")

    def _pays(self, select: ir.Operation) -> bool:
        shape = select.results[0].type.shape
        if not shape or select.operands[0].type.shape:
            return False
        least = max(self.least_ns, size_of(select.results[0].type) * COSTLY_NS)
        return any(_cost(_needed_only_by(select, side)) >= least for side in (1, 2))


def _cost(ops: list[ir.Operation]) -> float:
    return sum(float("inf") if op.name in CONTROL else cost_of(op) for op in ops)


def _needed_only_by(select: ir.Operation, side: int) -> list[ir.Operation]:
    """The pure ops of the block that nothing needs but this operand, in order."""
    kept = {select: None}
    predicate, *sides = select.operands
    outside = {defining(value) for value in (predicate, sides[2 - side])}
    work = [sides[side - 1]]
    while work and len(kept) <= _MOST_OPS:
        op = defining(work.pop())
        if op is None or op in kept or op in outside or op.block != select.block or not is_pure(op):
            continue
        if all(in_block(use.owner.operation, select.block) in kept for r in op.results for use in r.uses):
            kept[op] = None
            work += [*op.operands, *(captured(op) if len(op.regions) else ())]
    del kept[select]
    return in_order(kept)


def _branch(select: ir.Operation, block: ir.Block) -> None:
    sides = [_needed_only_by(select, side) for side in (1, 2)]
    predicate, *values = select.operands
    with ir.InsertionPoint(select), select.location:
        [result] = hlo.if_(
            predicate, lambda: [values[0]], lambda: [values[1]], [select.results[0].type]
        )
    for ops, region in zip(sides, result.owner.regions, strict=True):
        end = region.blocks[0].operations[-1].operation
        for op in ops:
            op.move_before(end)
    select.results[0].replace_all_uses_with(result)
    select.erase()
