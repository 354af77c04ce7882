"""Ops that follow each other and can be done block by block together."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.dialects.vendors import ir
from lamina.passes.linalg.structure import HARMLESS, is_buffer, is_generic_on_buffers, is_temporary


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


def erase(ops: Iterable[ir.Operation]) -> None:
    """Erase ops on buffers, and the temporaries that nothing uses then."""
    ops = list(ops)
    buffers = {value for op in ops for value in op.operands if is_buffer(value)}
    for op in ops:
        op.erase()
    for buffer in buffers:
        if is_temporary(buffer) and not list(buffer.uses):
            buffer.owner.erase()
