"""The machine that a module is for, as its attribute `lamina.machine`; see machine.py."""

from __future__ import annotations

from typing import Any

from lamina.dialects.attributes import MACHINE
from lamina.dialects.vendors import ir
from lamina.passes.framework.machine import KEY, REFERENCE, Machine

_read: dict[str, Machine] = {}  # by their keys


def write_machine(module: ir.Module, machine: Machine) -> None:
    """Let a module say that it is for a machine. (To read the text takes a third of the time of making the
    attributes.)"""
    _read[machine.key] = machine
    with module.context:
        module.operation.attributes[MACHINE] = ir.Attribute.parse(machine.text)


def machine_of(op: ir.Module | ir.Operation) -> Machine:
    """The machine that the module around an op is for. Raises ValueError for a dictionary that is none's."""
    top = op.operation
    while top.parent is not None:
        top = top.parent.operation
    if MACHINE not in top.attributes:
        return REFERENCE
    found = ir.DictAttr(top.attributes[MACHINE])
    key = ir.StringAttr(found[KEY]).value if KEY in found else ""
    if key not in _read:
        machine = Machine.described({entry.name: _value(entry.attr) for entry in found if entry.name != KEY})
        key = _read.setdefault(machine.key, machine).key
    return _read[key]


def _value(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return list(attribute)
    return ir.IntegerAttr(attribute).value
