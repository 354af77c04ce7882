"""Reading bufferised ops as the making of a padded copy: what is copied where, and what is around it.

    fill %p with %c; copy %x into %p[1, 1] [14, 14] [1, 1]
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import ir
from lamina.passes.linalg.analysis.structure import (
    Generic,
    filled_value,
    is_generic_on_buffers,
    is_temporary,
    outputs_of,
    root_buffer,
)
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record


class Padding(Record):
    """`source` lies in the padded buffer from `starts` on, `steps` apart; elsewhere is `value`.

    `ops` made the padded buffer and are not needed where nobody else reads it.
    """

    source: ir.Value
    value: ir.Value
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    ops: tuple[ir.Operation, ...]
    converted: ir.Block | None = None
    """What is done on each element of the source first: one op and its yield; None for nothing."""

    @property
    def conversion(self) -> ir.Operation | None:
        """That op."""
        return None if self.converted is None else self.converted.operations[0].operation

    @property
    def is_zero(self) -> bool:
        """Whether the value is the constant zero."""
        owner = self.value.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
            return False
        value = owner.operation.attributes["value"]
        return str(value).split(" ")[0] in ("0", "0.000000e+00", "false")


def find_padding(buffer: ir.Value, reader: Generic) -> Padding | None:
    """What a temporary is a padded copy of, if it was made for this reader alone."""
    if not is_temporary(buffer):
        return None
    users = [u.owner.operation for u in buffer.uses if u.owner.operation.name != "memref.dealloc"]
    users = [user for user in users if user != reader.op]
    fills = [user for user in users if filled_value(user) is not None]
    views = [user for user in users if user.name == "memref.subview"]
    if len(users) != 2 or len(fills) != 1 or len(views) != 1:
        return None
    (view,) = views
    copies = [use.owner.operation for use in view.results[0].uses]
    if len(copies) != 1 or not _is_element_wise(copies[0], view.results[0]):
        return None
    converts = _converts(copies[0])
    if not converts and not _is_copy(copies[0]):
        return None
    dynamic = ir.ShapedType.get_dynamic_size()
    starts = tuple(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))
    steps = tuple(ir.DenseI64ArrayAttr(view.attributes["static_strides"]))
    rank = len(ir.MemRefType(buffer.type).shape)
    source = copies[0].operands[0]
    if dynamic in (*starts, *steps) or len(ir.MemRefType(source.type).shape) != rank:
        return None
    if 0 in ir.MemRefType(source.type).shape or _is_written_after(source, copies[0], reader.op):
        return None
    value = filled_value(fills[0])
    assert value is not None
    ops = (fills[0], copies[0])
    if converts:
        return Padding(source, value, starts, steps, ops, copies[0].regions[0].blocks[0])
    made = _conversion_of(source, copies[0])
    if made is None or _is_written_after(made.operands[0], made, reader.op):
        return Padding(source, value, starts, steps, ops)
    block = made.regions[0].blocks[0]
    return Padding(made.operands[0], value, starts, steps, (*ops, made), block)


def _conversion_of(buffer: ir.Value, reader: ir.Operation) -> ir.Operation | None:
    """The generic that makes a temporary from another buffer by one op on each element, for this
    reader alone."""
    if not is_temporary(buffer):
        return None
    users = [u.owner.operation for u in buffer.uses if u.owner.operation.name != "memref.dealloc"]
    others = [user for user in users if user != reader]
    if len(users) != 2 or len(others) != 1 or not _is_element_wise(others[0], buffer):
        return None
    return others[0] if _converts(others[0]) else None


def _converts(op: ir.Operation) -> bool:
    """Whether an element-wise generic does one op on each element."""
    block = op.regions[0].blocks[0]
    operations = [view.operation for view in block.operations]
    if len(operations) != 2 or list(operations[0].operands) != [block.arguments[0]]:
        return False
    return operations[1].operands[0] == operations[0].results[0]


def _is_copy(op: ir.Operation) -> bool:
    block = op.regions[0].blocks[0]
    return (
        len(block.operations) == 1
        and block.operations[0].operation.operands[0] == block.arguments[0]
    )


def _is_element_wise(op: ir.Operation, target: ir.Value) -> bool:
    """Whether a generic makes each element of a buffer from that of one other."""
    if not is_generic_on_buffers(op) or list(
        ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    ) != [1, 1]:
        return False
    source, written = op.operands
    maps = [ir.AffineMapAttr(a).value for a in op.attributes["indexing_maps"]]
    return (
        written == target
        and isinstance(source.type, ir.MemRefType)
        and maps[0] == maps[1]
        and maps[0].is_permutation
    )


def _is_written_after(buffer: ir.Value, copy: ir.Operation, reader: ir.Operation) -> bool:
    """Whether any op between may change the source; only generics and copies write here, and the
    reader's own output is new."""
    root = root_buffer(buffer)
    between = False
    for view in reader.block.operations:
        op = view.operation
        if op == copy:
            between = True
        elif op == reader:
            return any(root_buffer(v) == root for v in _written(op))
        elif between and any(root_buffer(value) == root for value in _written(op)):
            return True
    return False


def _written(op: ir.Operation) -> list[ir.Value]:
    if is_generic_on_buffers(op):
        return outputs_of(op)
    return [op.operands[1]] if op.name == "memref.store" else []


def bytes_of(buffer: ir.Value) -> int:
    """How many bytes a buffer has."""
    return math.prod(ir.MemRefType(buffer.type).shape) * element_bytes_of(buffer)


def element_bytes_of(buffer: ir.Value) -> int:
    """How many bytes an element of a buffer has."""
    return element_bytes(ir.MemRefType(buffer.type).element_type)
