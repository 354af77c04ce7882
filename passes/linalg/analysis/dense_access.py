"""Where the elements that an op reads or writes lie in a dense buffer, seen as one row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.dialects.builders.buffers import reshaped
from lamina.dialects.context import cached_with_context
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import add, index
from lamina.passes.linalg.analysis.structure import has_constant, is_buffer, is_linear, root_buffer
from lamina.records import Record


class DenseAccess(Record):
    """A dense buffer, and the distance of elements along each dimension of the op."""

    buffer: ir.Value
    offset: int
    strides: tuple[int, ...]
    size: int


def dense_access(value: ir.Value, strides: Sequence[int], map_: ir.AffineMap) -> DenseAccess | None:
    """None for a scalar, or for what is not part of a dense buffer at a known place."""
    if not is_buffer(value):
        return None
    root = root_buffer(value)
    place = _place_in_dense(root.type, value.type, map_)
    return None if place is None else DenseAccess(root, place[0], tuple(strides), place[1])


@cached_with_context(1024)  # most operands are like many others
def _place_in_dense(
    root: ir.Type, view: ir.Type, map_: ir.AffineMap
) -> tuple[int, int] | None:
    """Where a view of a buffer begins for a map, and the size of the buffer."""
    whole, part = ir.MemRefType(root), ir.MemRefType(view)
    element = whole.element_type
    width = getattr(element, "width", 0)
    if isinstance(element, ir.ComplexType) or width < 8 or element != part.element_type:
        return None
    steps, start = whole.get_strides_and_offset()
    dense = [math.prod(whole.shape[n + 1 :]) for n in range(len(whole.shape))]
    part_steps, offset = part.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if list(steps) != dense or start != 0 or dynamic in (offset, *part_steps):
        return None
    for expression, step in zip(map_.results, part_steps, strict=True):
        if isinstance(expression, ir.AffineConstantExpr):
            offset += ir.AffineConstantExpr(expression).value * step
        elif has_constant(expression) or not is_linear(expression):
            return None
    return offset, math.prod(whole.shape)


def bits_of(element: ir.Type) -> int:
    """What a number takes of a vector; an index as much as an i64."""
    return getattr(element, "width", 64)


def flat(buffer: ir.Value) -> ir.Value:
    """A dense buffer as one row."""
    type_ = ir.MemRefType(buffer.type)
    return reshaped(buffer, ir.MemRefType.get([math.prod(type_.shape)], type_.element_type))


def place_in(offset: int, strides: Sequence[int], at: Sequence[ir.Value]) -> ir.Value:
    """Where a block begins in a flat buffer."""
    place = index(offset) if offset else None
    for position, stride in zip(at, strides, strict=True):
        if stride:
            step = position if stride == 1 else arith.MulIOp(position, index(stride)).result
            place = step if place is None else add(place, step)
    return index(0) if place is None else place
