"""Ops that follow each other and can be done block by block together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from lamina.dialects.vendors import ir
from lamina.passes.linalg.analysis.structure import (
    HARMLESS,
    Generic,
    is_buffer,
    is_generic_on_buffers,
    is_temporary,
    read_generic,
)

_Member = TypeVar("_Member")


def members_around(op: ir.Operation, member_of: Callable[[Generic], _Member | None]) -> list[_Member]:
    """What `member_of` makes of an op and its neighbours, up to those of which it makes None; empty where that is
    the op itself."""
    ops = neighbours(op)
    members = [member_of(read_generic(other)) for other in ops]
    number = ops.index(op)
    first = next((n + 1 for n in range(number, -1, -1) if members[n] is None), 0)
    end = next((n for n in range(number, len(members)) if members[n] is None), len(members))
    return [member for member in members[first:end] if member is not None]


def neighbours(op: ir.Operation) -> list[ir.Operation]:
    """The generics that nothing which touches memory keeps apart from one, and itself."""
    together: list[ir.Operation] = []
    for other in (view.operation for view in op.block.operations):
        if is_generic_on_buffers(other):
            together.append(other)
        elif not other.name.startswith(HARMLESS):
            if op in together:
                return together
            together = []
    return together


def changed_in_place(generic: Generic) -> list[ir.Value]:
    """The outputs of which an op reads what was there before."""
    olds = generic.body.arguments[len(generic.inputs) :]
    return [value for value, old in zip(generic.outputs, olds, strict=True) if list(old.uses)]


def is_used_by_none_but(buffer: ir.Value, ops: Iterable[ir.Operation]) -> bool:
    """Whether a buffer is a temporary of these ops alone."""
    return is_temporary(buffer) and {use.owner.operation for use in buffer.uses} <= set(ops)


def erase(ops: Iterable[ir.Operation]) -> None:
    """Erase ops on buffers, and the temporaries that nothing uses then."""
    ops = list(ops)
    buffers = {value for op in ops for value in op.operands if is_buffer(value)}
    for op in ops:
        op.erase()
    for buffer in buffers:
        if is_temporary(buffer) and not list(buffer.uses):
            buffer.owner.erase()
