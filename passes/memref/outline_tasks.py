"""Move the body of each `scf.forall` into a task function that runs a range of its iterations.

    scf.forall (%i, %j) in (8, 4) { body } {lamina.grain = 2}
becomes
    func.call @k_parallel_0(%captured...)
    func.func private @k_parallel_0(memref...) attributes {lamina.task = @k_task_0, lamina.range =
    array<i64: 32, 2>} func.func private @k_task_0(%captured..., %low: index, %high: index) {
    scf.for %t = %low to %high { body } }

where iterations are numbered row by row. What the body uses of its surroundings becomes an
argument when it is a dense buffer, and is computed again inside when it is cheap (constants, views,
index arithmetic, loads from arguments that are only read). `llvm-call-task-runner` later gives
`@k_parallel_0` its body. A loop that captures anything else, or has results, is left to run
serially, which a statistic counts: `scf-forall-to-for` follows in the pipeline.

example: test/passes/memref/outline_tasks.mlir
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from lamina.dialects.attributes import RANGE, TASK
from lamina.dialects.vendors import arith, func, ir, scf
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import GRAIN
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import ancestors, find_ops
from lamina.passes.linalg.analysis.structure import is_buffer, is_dense

_RECOMPUTED = (
    "affine.apply", "arith.", "complex.", "index.", "llvm.mlir.constant", "memref.cast",
    "memref.collapse_shape", "memref.expand_shape", "memref.get_global", "memref.load",
    "memref.reinterpret_cast", "memref.subview", "memref.view", "ub.poison",
)  # fmt: skip


class OutlineTasks(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in list(module.body.operations):
            if op.operation.name == "func.func":
                outlined = _outline_function(module, op.operation)
                self.count("loops outlined", sum(outlined))
                self.count("loops left serial", len(outlined) - sum(outlined))


def _outline_function(module: ir.Module, function: ir.Operation) -> list[bool]:
    """For each parallel loop of a function whether it could be outlined."""
    loops = _outermost(find_ops(function, "scf.forall"))  # one inside a task runs serially
    if not loops:
        return []
    found = _used_inside(function, loops)
    used = [found[loop] for loop in loops]  # an erased key may not even be compared with
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return [
        _outline(module, loop, values, f"{name}_task_{number}", f"{name}_parallel_{number}")
        for number, (loop, values) in enumerate(zip(loops, used, strict=True))
    ]


def _outermost(loops: list[ir.Operation]) -> list[ir.Operation]:
    """The loops that are in none of the others."""
    known = set(loops)
    return [loop for loop in loops if known.isdisjoint(ancestors(loop))]


def _used_inside(
    function: ir.Operation, loops: list[ir.Operation]
) -> dict[ir.Operation, dict[ir.Value, list[ir.OpOperand]]]:
    """What each of the loops uses of the values around it, and where: looked up from the values,
    which are fewer than the ops inside."""
    found: dict[ir.Operation, dict[ir.Value, list[ir.OpOperand]]] = {loop: {} for loop in loops}
    around: dict[ir.Block, ir.Operation | None] = {}

    def loop_around(block: ir.Block) -> ir.Operation | None:
        if block not in around:
            owner = block.owner.operation
            is_outside = owner == function
            around[block] = None if is_outside else owner if owner in found else loop_around(owner.block)
        return around[block]

    def note(values: Iterable[ir.Value]) -> None:
        for value in values:
            for use in value.uses:
                loop = loop_around(use.owner.operation.block)
                if loop is not None:
                    found[loop].setdefault(value, []).append(use)

    def visit(block: ir.Block) -> None:
        note(block.arguments)
        for view in block.operations:
            op = view.operation
            note(op.results)
            if op not in found:
                for region in op.regions:
                    for inner in region.blocks:
                        visit(inner)

    visit(function.regions[0].blocks[0])
    return found


def _outline(
    module: ir.Module,
    loop: ir.Operation,
    used: dict[ir.Value, list[ir.OpOperand]],
    task_name: str,
    caller_name: str,
) -> bool:
    found = _captures(used)
    if len(loop.results) or found is None:
        return False
    captured, recomputed = found
    lower, upper, step = (
        list(ir.DenseI64ArrayAttr(loop.attributes[name]))
        for name in ("staticLowerBound", "staticUpperBound", "staticStep")
    )
    sizes = [
        max(0, -(-(high - low) // by)) for low, high, by in zip(lower, upper, step, strict=True)
    ]
    grain = ir.IntegerAttr(loop.attributes[GRAIN]).value if GRAIN in loop.attributes else 1
    index = ir.IndexType.get()
    types = [value.type for value in captured]
    with loop.location:
        with ir.InsertionPoint.at_block_begin(module.body):
            task = func.FuncOp(
                task_name, ir.FunctionType.get([*types, index, index], []), visibility="private"
            )
            caller = func.FuncOp(caller_name, ir.FunctionType.get(types, []), visibility="private")
        caller.attributes[TASK] = ir.FlatSymbolRefAttr.get(task_name)
        caller.attributes[RANGE] = ir.DenseI64ArrayAttr.get([math.prod(sizes), grain])
        with ir.InsertionPoint(loop):
            func.CallOp([], caller_name, captured)
        entry = task.add_entry_block()
        inside = dict(zip(captured, entry.arguments, strict=False))
        with ir.InsertionPoint(entry):
            for op in recomputed:
                copied(op, inside)
            low, high = entry.arguments[len(captured)], entry.arguments[len(captured) + 1]
            run = scf.ForOp(low, high, arith.ConstantOp(index, 1).result)
            func.ReturnOp([])
        with ir.InsertionPoint(run.body):
            end = scf.YieldOp([])
        with ir.InsertionPoint(end):
            inductions = _positions(run.induction_variable, lower, sizes, step)
        body = loop.regions[0].blocks[0]
        for argument, value in zip(body.arguments, inductions, strict=True):
            argument.replace_all_uses_with(value)
        for op in list(body.operations)[:-1]:
            op.operation.move_before(end)
        for value, uses in used.items():
            for use in uses:
                use.owner.operands[use.operand_number] = inside[value]
    loop.erase()
    return True


def _positions(
    number: ir.Value, lower: list[int], sizes: list[int], step: list[int]
) -> list[ir.Value]:
    """The induction variables of iteration `number`, counted row by row."""
    index = ir.IndexType.get()

    def constant(value: int) -> ir.Value:
        return arith.ConstantOp(index, value).result

    positions: list[ir.Value] = []
    for axis in reversed(range(len(sizes))):
        if axis:
            digit = arith.RemUIOp(number, constant(sizes[axis])).result
            number = arith.DivUIOp(number, constant(sizes[axis])).result
        else:
            digit = number
        if step[axis] != 1:
            digit = arith.MulIOp(digit, constant(step[axis])).result
        if lower[axis]:
            digit = arith.AddIOp(digit, constant(lower[axis])).result
        positions.append(digit)
    return positions[::-1]


def _captures(used: Iterable[ir.Value]) -> tuple[list[ir.Value], list[ir.Operation]] | None:
    """The buffers a body takes from outside and the ops to repeat inside; None if these don't do."""
    captured: dict[ir.Value, None] = {}
    recomputed: dict[ir.Operation, None] = {}

    def provide(value: ir.Value) -> bool:
        owner = value.owner
        if not isinstance(owner, ir.Block):
            op = owner.operation
            if op in recomputed:
                return True
            if op.name.startswith(_RECOMPUTED) and not len(op.regions):
                if not all(provide(operand) for operand in op.operands):
                    return False
                recomputed[op] = None
                return True
        captured[value] = None
        return is_buffer(value) and is_dense(value)

    if all(provide(value) for value in used):
        return list(captured), list(recomputed)
    return None
