"""The parts of a planned module: @main, the kernels it calls, the constants."""

from __future__ import annotations

from collections import Counter

import numpy as np

from lamina.dialects import constants
from lamina.dialects.attributes import COUNTED, KIND, TEAM, TRIP_COUNT, integer_of, string_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.find import ancestors, find_ops


def main_of(planned: ir.Module) -> ir.Operation:
    """The function @main."""
    return ir.SymbolTable(planned.operation)["main"].operation


def kernels_of(planned: ir.Module) -> dict[str, ir.Operation]:
    """Name -> function for the kernels of a planned module."""
    for op in planned.body.operations:
        if op.operation.name == "builtin.module":
            inner = op.operation.regions[0].blocks[0].operations
            return {f.attributes["sym_name"].value: f.operation for f in inner}
    return {}


def is_scalar(kernel: ir.Operation | None) -> bool:
    """Whether a kernel is a few instructions that its callers do themselves."""
    return kernel is not None and string_of(kernel, KIND) == "scalar"


def may_loop_for_long(kernel: ir.Operation) -> bool:
    """Whether a kernel has a loop of which nobody knows how many steps it does."""
    if string_of(kernel, KIND) != "control":
        return False
    return any(map(may_be_long, find_ops(kernel, "stablehlo.while")))


def may_be_long(loop: ir.Operation) -> bool:
    """Whether nobody knows how many steps a loop does. One that counts within another is taken for one
    over some axis."""
    if TRIP_COUNT in loop.attributes:
        return False
    return COUNTED not in loop.attributes or loop.name not in {up.name for up in ancestors(loop)}


def team_of(call: ir.Operation) -> int:
    """The number of the calls in a row that run at the same time as this one; 0 if none does."""
    return integer_of(call, TEAM)


def largest_team(planned: ir.Module) -> int:
    """How many calls run at the same time at most."""
    teams: Counter[int] = Counter()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            teams[team_of(op)] += 1
        return ir.WalkResult.ADVANCE

    main_of(planned).walk(visit)
    del teams[0]
    return max(teams.values(), default=1)


class Constants:
    """The constants of a planned module as arrays, each read once."""

    def __init__(self, planned: ir.Module) -> None:
        self._globals = {
            op.operation.attributes["sym_name"].value: op.operation
            for op in planned.body.operations
            if op.operation.name == "memref.global"
        }
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str) -> np.ndarray:
        """The elements of the constant of this name; with strides of 0 where all are one."""
        if name not in self._arrays:
            op = self._globals[name]
            of = op.attributes["type"].value
            self._arrays[name] = constants.array_in(op, "initial_value", of)
        return self._arrays[name]
