"""Ops of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

CALL, MANUAL = "stablehlo.custom_call", "sdy.manual_computation"
SHARDING = "sdy.sharding"
"""Of an op: how its results lie."""

_OF_EACH_DEVICE = "xla_ffi_partitioned_python_cpu_callback"


def walk(root: Any) -> Iterator[Any]:
    """All ops in an op, outer ones first."""
    for region in root.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from walk(op.operation)


def target_of(call: Any) -> str:
    """What a custom call calls."""
    return str(call.attributes["call_target_name"].value)


def is_of_each_device(call: Any) -> bool:
    """Whether a custom call is of Python that each device is to call, with its part of the arrays."""
    return target_of(call) == _OF_EACH_DEVICE


def own_ops(module: Any) -> Iterator[Any]:
    """All ops that work on a device's own arrays: in manual computations, and in functions that these call."""
    functions = {op.operation.attributes["sym_name"].value: op.operation
                 for op in module.body.operations if op.operation.name == "func.func"}  # fmt: skip
    entered: set[str] = set()

    def within(root: Any) -> Iterator[Any]:
        for op in walk(root):
            yield op
            if op.name == "func.call":
                name = op.attributes["callee"].value
                if name not in entered:
                    entered.add(name)
                    yield from within(functions[name])

    for op in walk(module.operation):
        if op.name == MANUAL:
            yield from within(op)
