"""Make one kernel of each loop or branch whose steps are too small to be worth calls.

    %0:2 = stablehlo.while(...)          %0 = call @fused_while_0(%x)
    ... uses of %0#1               ->
                                         func.func private @fused_while_0(%x) attributes {
                                           lamina.kind = "control", lamina.reason = "..."}

The kernel holds the whole op with its regions; the backend fuses and plans it by itself and
generates one function, so that a step makes no calls, counters live in registers and small arrays
on the stack. Arrays that a loop carries are marked `lamina.inout`: it updates them in place.
Constants and iotas go in, other values from outside become arguments.

How long it takes on the one core it uses is noted as `lamina.alone_ns`, a step's time where the number
of steps is not known.

A loop over lanes (`lamina.lanes`), whose steps may run at the same time, keeps that mark, with how
many steps make a task; all that it carries is an argument that it updates.

An op qualifies when none of its inner ops is estimated to take more than `max_cost` nanoseconds
(work worth threads of its own, or a library's), when there are no more than `max_ops` of them and
none has an effect or is a custom call. For GPUs (`gpu`), `lamina.form` on the kernel says how it is
done (`step_form.py`), and ops that neither a thread nor a block does are in the way, too. Otherwise
the reason is left on the op, and what is inside it is looked at. `max-cost=0` turns the pass off. Who
does a module's matrix products (`lamina.matrix_products`) holds for its kernels, too.

example: test/passes/stablehlo/fusion/outline_control.mlir
"""

from __future__ import annotations

from math import inf

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import (
    ALONE_NS,
    FORM,
    INOUT,
    KIND,
    LANES,
    MATRIX_PRODUCTS,
    REASON,
    TRIP_COUNT,
    integer_of,
)
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import read_instead
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import CONSTANT, CONTROL, made_by, size_of
from lamina.passes.stablehlo.analysis.kernel_functions import Kernels
from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.passes.stablehlo.loops.step_cost import Refusal, Step, step_of
from lamina.passes.stablehlo.loops.step_form import form_of

_MOST_TASKS = 64  # shape: of a loop over lanes: so many that threads end together where lanes differ
_WORTH_UPDATING = 64  # shape: elements of a carried array below which a copy costs nothing


class OutlineControl(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.case", "stablehlo.if", "stablehlo.while"))

    max_cost: float = 2 * REFERENCE.task_ns
    max_ops: int = 256  # code
    gpu: bool = False

    def run(self, module: ir.Module) -> None:
        if not self.max_cost:
            return
        kernels = Kernels(module)
        for op in [inner.operation for inner in module.body.operations]:
            if op.name == "func.func" and op.regions[0].blocks:
                if KIND not in op.attributes:
                    self._block(op.regions[0].blocks[0], kernels)
        self.count("kernels", len(kernels))

    def _block(self, block: ir.Block, kernels: Kernels) -> None:
        for op in [inner.operation for inner in block.operations]:
            if op.name not in CONTROL:
                continue
            try:
                step, form = self._decide(op)
            except Refusal as refusal:
                op.attributes[REASON] = ir.StringAttr.get(str(refusal))
                for region in op.regions:
                    self._block(region.blocks[0], kernels)
            else:
                _outline(op, kernels, step, form)

    def _decide(self, op: ir.Operation) -> tuple[Step, str]:
        if self.gpu and LANES in op.attributes:  # which was a loop over lanes for this alone
            return step_of(op, inf, 1 << 30), "lanes"
        step = step_of(op, self.max_cost, self.max_ops)
        return step, form_of(op) if self.gpu else ""


def _reason(op: ir.Operation, step: Step) -> str:
    what = op.name.removeprefix("stablehlo.")
    often = ""
    if TRIP_COUNT in op.attributes:
        often = f", {integer_of(op, TRIP_COUNT)} times"
    of = "step" if what == "while" else "branch"
    ops = "1 op" if step.ops == 1 else f"{step.ops} ops"
    return (
        f"{what} of {ops}, about {max(1, round(step.cost))} ns a {of}{often}: too small for calls"
    )


def _outline(op: ir.Operation, kernels: Kernels, step: Step, form: str) -> None:
    """Replace an op by a call of a kernel that holds it."""
    steps = op.attributes[LANES].value if LANES in op.attributes else 0
    updated = {
        number: value
        for number, value in enumerate(op.operands)
        if op.name == "stablehlo.while" and _is_updated(number, value, bool(steps))
    }
    returned = [
        number
        for number, result in enumerate(op.results)
        if number in updated or next(iter(result.uses), None) is not None
    ]
    others = [value for number, value in enumerate(op.operands) if number not in updated]
    others = list(dict.fromkeys([*others, *fuse_ops.captured(op)]))
    read = [value for value in others if not _goes_in(value)]
    arguments = [*updated.values(), *read]
    results = [op.results[number] for number in returned]
    with kernels.insertion_point(), op.location:
        function, block = hlo.function(
            "", [v.type for v in arguments], [v.type for v in results], "private"
        )
    attributes = function.attributes
    attributes[KIND] = ir.StringAttr.get("control")
    attributes[REASON] = ir.StringAttr.get(_reason(op, step))
    of_module = function.parent.attributes
    if MATRIX_PRODUCTS in of_module:
        attributes[MATRIX_PRODUCTS] = of_module[MATRIX_PRODUCTS]
    trips = integer_of(op, TRIP_COUNT, 1)
    if op.name == "stablehlo.while" and not steps and not form:
        attributes[ALONE_NS] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), int(step.cost * trips)
        )
    if form:
        attributes[FORM] = ir.StringAttr.get(form)
    if steps:
        grain = max(1, steps // _MOST_TASKS)
        attributes[LANES] = ir.DenseI64ArrayAttr.get([steps, grain])
    if updated:
        marks = [{INOUT: _i32(returned.index(number))} for number in updated]
        marks += [{} for _ in read]
        attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(mark) for mark in marks])
    with ir.InsertionPoint(block) as end, op.location:
        inside = dict(zip(read, list(block.arguments)[len(updated) :]))
        for value in others:
            if value not in inside:
                inside[value] = value.owner.operation.clone(end).operation.results[0]
        moved = op.clone(end).operation
        for number, argument in zip(updated, block.arguments):
            moved.operands[number] = argument
        read_instead(moved, inside)
        hlo.return_([moved.results[number] for number in returned])
    callee = kernels.add(function, op.name.removeprefix("stablehlo."))
    with ir.InsertionPoint(op), op.location:
        call = hlo.call(callee, arguments, [v.type for v in results])
    for old, new in zip(results, call):
        old.replace_all_uses_with(new)
    op.erase()


def _is_updated(number: int, value: ir.Value, is_over_lanes: bool) -> bool:
    """Whether a carry is an argument of the kernel that it overwrites."""
    if is_over_lanes:
        return number > 0  # the first counts the steps
    return size_of(value.type) >= _WORTH_UPDATING and not _goes_in(value)


def _goes_in(value: ir.Value) -> bool:
    """Whether the kernel makes a value itself: a constant, or the numbers of places."""
    if made_by(value, "stablehlo.iota") is not None:
        return True
    constant = made_by(value, CONSTANT)
    return constant is not None and fuse_ops.is_clonable_constant(constant)


def _i32(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)
