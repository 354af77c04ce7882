"""Decide what a program demands of its arguments' sizes, once these are known.

    stablehlo.custom_call @shape_assertion(%true, ...)    ->   nothing
    stablehlo.custom_call @shape_assertion(%false, ...)   ->   error: [custom_call] <its message>

`jax.export` writes these calls into programs with symbolic sizes. One whose condition is not a
constant yet is an error too: sizes that only the data decide are not supported.
example: test/passes/stablehlo/decide_shape_assertions.mlir
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lamina.dialects.constants import array_of
from lamina.dialects.vendors import ir
from lamina.passes.base import CompileError, Pass

_TARGET = "shape_assertion"


@dataclass(frozen=True)
class DecideShapeAssertions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            is_call = op.name == "stablehlo.custom_call"
            if is_call and op.attributes["call_target_name"].value == _TARGET:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in found:
            values = [_constant(value) for value in op.operands]
            if values[0] is None:
                raise CompileError.at(op, "asserts something of sizes that are not known")
            if not values[0]:
                raise CompileError.at(op, _message(op, values[1:]))
            op.erase()
            self.count("assertions")


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "stablehlo.constant":
        return None
    return int(array_of(owner.operation))


def _message(op: ir.Operation, values: list[int | None]) -> str:
    """The assertion's own message, whose `{0}` stand for its further operands."""
    if "error_message" not in op.attributes:
        return "an assertion about sizes does not hold"
    text = op.attributes["error_message"].value

    def shown(found: re.Match[str]) -> str:
        position = int(found[1])
        return str(values[position]) if position < len(values) else found[0]

    return re.sub(r"\{(\d+)\}", shown, text)
