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
from dataclasses import dataclass

from lamina.dialects.vendors import arith, func, ir, scf
from lamina.passes.base import Pass
from lamina.passes.copies import copied, read_instead
from lamina.passes.loops import GRAIN

TASK = "lamina.task"
RANGE = "lamina.range"
_RECOMPUTED = (
    "affine.apply", "arith.", "complex.", "index.", "memref.cast", "memref.collapse_shape",
    "memref.expand_shape", "memref.get_global", "memref.load", "memref.reinterpret_cast",
    "memref.subview", "memref.view", "ub.poison",
)  # fmt: skip


@dataclass(frozen=True)
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
    loops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name != "scf.forall":
            return ir.WalkResult.ADVANCE
        loops.append(op)
        return ir.WalkResult.SKIP  # a forall inside a task runs serially

    function.walk(visit)
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return [
        _outline(module, loop, f"{name}_task_{number}", f"{name}_parallel_{number}")
        for number, loop in enumerate(loops)
    ]


def _outline(module: ir.Module, loop: ir.Operation, task_name: str, caller_name: str) -> bool:
    found = _captures(loop)
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
            read_instead(op.operation, inside)
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


def _captures(loop: ir.Operation) -> tuple[list[ir.Value], list[ir.Operation]] | None:
    """The buffers a body takes from outside and the ops to repeat inside; None if these don't do."""
    captured: dict[ir.Value, None] = {}
    recomputed: dict[ir.Operation, None] = {}
    inner: set[ir.Operation] = set()
    wanted: list[ir.Value] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        inner.add(op)
        wanted.extend(op.operands)
        return ir.WalkResult.ADVANCE

    def provide(value: ir.Value) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block):
            if owner.owner in inner or owner.owner == loop:
                return True
        elif owner in inner or owner in recomputed:
            return True
        elif owner.operation.name.startswith(_RECOMPUTED) and not len(owner.operation.regions):
            if not all(provide(operand) for operand in owner.operation.operands):
                return False
            recomputed[owner.operation] = None
            return True
        captured[value] = None
        return _is_dense_buffer(value)

    for op in loop.regions[0].blocks[0].operations:
        op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if all(provide(value) for value in dict.fromkeys(wanted)):
        return list(captured), list(recomputed)
    return None


def _is_dense_buffer(value: ir.Value) -> bool:
    if not isinstance(value.type, ir.MemRefType):
        return False
    return ir.MemRefType(value.type).affine_map == ir.AffineMap.get_identity(
        ir.MemRefType(value.type).rank
    )
