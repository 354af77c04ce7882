"""Decide what a program demands of its arguments' sizes, once these are known.

    stablehlo.custom_call @shape_assertion(%true, ...)    ->   nothing
    stablehlo.custom_call @shape_assertion(%false, ...)   ->   error: [custom_call] <its message>

`jax.export` writes these calls into programs with symbolic sizes; their operands are computed from
sizes of the arguments. One whose condition depends on more is an error too, since sizes that only
the data decide are not supported; with `leave-open` it stays for later.
example: test/passes/stablehlo/canonicalize/decide_shape_assertions.mlir
"""

from __future__ import annotations

import re

import numpy as np

from lamina.dialects.constants import array_of
from lamina.dialects.types import DYNAMIC
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.stablehlo.canonicalize import fold_evaluate

_TARGET = "shape_assertion"
_WRAPPER = "stablehlo.shape_refinement_operand_wrapper"


class DecideShapeAssertions(Pass):
    """See the module's docstring."""

    leave_open: bool = False

    def run(self, module: ir.Module) -> None:
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            is_call = op.name == "stablehlo.custom_call"
            if is_call and op.attributes["call_target_name"].value == _TARGET:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        known: dict[ir.Value, np.ndarray | None] = {}
        for op in found:
            values = [_value(value, known) for value in op.operands]
            if values[0] is None:
                if self.leave_open:
                    continue
                raise CompileError.at(op, "asserts something of sizes that are not known")
            if not values[0]:
                raise CompileError.at(op, _message(op, values[1:]))
            op.erase()
            self.count("assertions")


def _value(value: ir.Value, known: dict[ir.Value, np.ndarray | None]) -> np.ndarray | None:
    """What constants and static sizes make of a value, or None."""
    if value not in known:
        known[value] = None
        owner = value.owner
        if not isinstance(owner, ir.Block):
            known[value] = _computed(owner.operation, known)
    return known[value]


def _computed(op: ir.Operation, known: dict[ir.Value, np.ndarray | None]) -> np.ndarray | None:
    if op.name == "stablehlo.constant":
        return array_of(op)
    if op.name == "stablehlo.get_dimension_size":
        size = _unwrapped(op.operands[0]).type.shape[op.attributes["dimension"].value]
        return None if size == DYNAMIC else np.array(size, np.int32)
    evaluate = fold_evaluate.EVALUATE.get(op.name)
    if evaluate is None or len(op.results) != 1:
        return None
    operands = [_value(value, known) for value in op.operands]
    if any(operand is None for operand in operands):
        return None
    return fold_evaluate.run(evaluate, op, operands)


def _unwrapped(value: ir.Value) -> ir.Value:
    """An argument whose type has been made static stands behind a wrapper of its former type."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "stablehlo.custom_call":
        if owner.operation.attributes["call_target_name"].value == _WRAPPER:
            return owner.operation.operands[0]
    return value


def _message(op: ir.Operation, values: list[np.ndarray | None]) -> str:
    """The assertion's own message, whose `{0}` stand for its further operands."""
    if "error_message" not in op.attributes:
        return "an assertion about sizes does not hold"
    text = op.attributes["error_message"].value

    def shown(found: re.Match[str]) -> str:
        position = int(found[1])
        return str(values[position]) if position < len(values) else found[0]

    return re.sub(r"\{(\d+)\}", shown, text)
