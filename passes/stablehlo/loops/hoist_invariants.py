"""Compute what every step of a loop computes again once, before the loop.

    stablehlo.while(%i, %x) do {            %t = stablehlo.transpose %w
      %t = stablehlo.transpose %w     ->    stablehlo.while(%i, %x) do {
      %y = stablehlo.dot %x, %t               %y = stablehlo.dot %x, %t

Moved are ops without effects that read nothing of the loop and are worth an array to keep: those
that rearrange or reduce arrays, contractions, functions of tens of instructions, and what makes the indices
and updates of a scatter, which is stored for it; and with them what they need. What a kernel computes along
the way stays: broadcasts, constants, sums. Conditions
are left alone, and so are branches, which may not run, and loops, which may not end.

example: test/passes/stablehlo/loops/hoist_invariants.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import CONSTANT, COSTLY, TERMINATORS, is_pure, size_of
from lamina.passes.stablehlo.fusion.fuse_ops import captured

_WORTH = COSTLY | frozenset(
    f"stablehlo.{name}"
    for name in "transpose reverse reduce dot_general convolution gather scatter sort cholesky "
    "triangular_solve concatenate pad reduce_window fft".split()
)
_MOST_BYTES = REFERENCE.l3_bytes // 2  # of one result: more would be a burden on memory
_SCATTER = "stablehlo.scatter"
_LEAST_STORED = 64  # shape: elements
_FREE = frozenset((CONSTANT, "stablehlo.broadcast_in_dim", "stablehlo.iota"))
_CALLS = frozenset(("stablehlo.custom_call", "func.call"))


class HoistInvariants(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.while",))

    def run(self, module: ir.Module) -> None:
        loops: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "stablehlo.while":
                loops.append(op)
            return ir.WalkResult.ADVANCE

        # Inner ones first: what leaves them may leave the outer ones, too.
        module.operation.walk(visit, ir.WalkOrder.POST_ORDER)
        for loop in loops:
            self.count("ops", _hoist(loop))


def _hoist(loop: ir.Operation) -> int:
    block = loop.regions[1].blocks[0]
    varying: set[ir.Value] = set(block.arguments)
    makers: dict[ir.Value, ir.Operation] = {}
    wanted: list[ir.Operation] = []
    for view in block.operations:
        op = view.operation
        if _depends(op, varying):
            varying.update(op.results)
            if op.name == _SCATTER:
                stored = (maker for value in op.operands if (maker := makers.get(value)) is not None)
                wanted += (maker for maker in stored if _is_worth_storing(maker))
            continue
        makers.update(dict.fromkeys(op.results, op))
        if op.name in _WORTH and all(_is_kept(result) for result in op.results):
            wanted.append(op)
    moved: dict[ir.Operation, None] = {}
    for op in wanted:
        _move(op, loop, makers, moved)
    return len(moved)


def _depends(op: ir.Operation, varying: set[ir.Value]) -> bool:
    if op.name in TERMINATORS or op.name in _CALLS or not is_pure(op):
        return True
    read = [*op.operands, *(captured(op) if len(op.regions) else ())]
    return any(value in varying for value in read)


def _is_worth_storing(op: ir.Operation) -> bool:
    return op.name not in _FREE and all(
        _is_kept(result) and size_of(result.type) >= _LEAST_STORED for result in op.results
    )


def _is_kept(value: ir.Value) -> bool:
    of = value.type
    return isinstance(of, ir.RankedTensorType) and size_of(of) * 8 <= _MOST_BYTES


def _move(
    op: ir.Operation,
    loop: ir.Operation,
    makers: dict[ir.Value, ir.Operation],
    moved: dict[ir.Operation, None],
) -> None:
    """Put an op before the loop, after what it needs of the loop's body."""
    work = [(op, False)]
    while work:
        at, ready = work.pop()
        if at in moved:
            continue
        if ready:
            at.move_before(loop)
            moved[at] = None
            continue
        work.append((at, True))
        read = [*at.operands, *(captured(at) if len(at.regions) else ())]
        work += [(makers[value], False) for value in read if value in makers]
