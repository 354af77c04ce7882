"""Where the factors of a dot-product GEMM lie; see `dot_instructions`.

A factor stays as it is where its sum is innermost, or is for the second one to be packed; else it
is copied so that it does, widened or padded on the way where the instruction wants that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import index
from lamina.passes.kernels.cpu.gemm.dot_instructions import TILE_BYTES, Vectors, pointer
from lamina.passes.kernels.cpu.gemm.narrow_products import NarrowFactor, NarrowProduct
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.structure import (
    has_constant,
    make_generic,
    stride_along,
    subview,
)
from lamina.records import Record

Position = Mapping[int, ir.Value]
_SIGN = 128


class Rows(Record):
    """A factor by its strides in bytes: along the dimensions around, along the rows (or columns),
    and along the sum, all of whose dimensions are one here."""

    buffer: ir.Value
    around: Mapping[int, int]
    free: int
    depth: int
    element_bytes: int
    origin: tuple[ir.Value, ir.Value] | None = None
    """Which row and term the buffer begins with, if not the first ones."""

    def address(self, position: Position, free: ir.Value, depth: ir.Value) -> ir.Value:
        """The address of an element."""
        if self.origin is not None:
            free, depth = (
                arith.SubIOp(at, first).result for at, first in zip((free, depth), self.origin, strict=True)
            )
        terms = [(position[d], stride) for d, stride in self.around.items()]
        return pointer(self.buffer, offset([*terms, (free, self.free), (depth, self.depth)]))


def offset(terms: Sequence[tuple[ir.Value, int]]) -> ir.Value:
    """The sum of positions times strides."""
    total = index(0)
    for value, stride in terms:
        if stride:
            scaled = arith.MulIOp(value, index(stride)).result
            total = arith.AddIOp(total, scaled).result
    return total


def rows_in_place(
    factor: NarrowFactor, free: int, around: Sequence[int], reduced: Sequence[int],
    extents: Sequence[int],
) -> Rows | None:  # fmt: skip
    """The factor where it lies; None if its sum is no single stride, or it is a part of a buffer."""
    buffer, map_ = factor.factor.buffer, factor.factor.map
    type_ = ir.MemRefType(buffer.type)
    strides, start = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if start or dynamic in strides or any(has_constant(e) for e in map_.results):
        return None
    size = _bytes_of(type_.element_type)

    def stride(d: int) -> int:
        return stride_along(buffer, map_, d) * size

    inner, step = 1, 0
    for d in reversed([d for d in reduced if extents[d] > 1]):
        if inner > 1 and stride(d) != inner * step:
            return None
        if inner == 1:
            step = stride(d)
        inner *= extents[d]
    return Rows(buffer, {d: stride(d) for d in around if stride(d)}, stride(free), step, size)


def copied_rows(
    factor: NarrowFactor, free: int, around: Sequence[int], reduced: Sequence[int],
    extents: Sequence[int], multiple: int, bits: int = 0, flip: bool = False,
) -> Rows:  # fmt: skip
    """A copy with the sum innermost, as integers of so many `bits` (0: as they are), with their
    sign bits turned if `flip` says so. Its rows have a multiple of so many bytes; what is added is
    zero, and with several dimensions in the sum nothing may have to be."""
    source, map_ = factor.factor.buffer, factor.factor.map
    narrow = ir.MemRefType(source.type).element_type
    element = ir.IntegerType.get_signless(bits) if bits else narrow
    used = [d for d in around if stride_along(source, map_, d)]
    size = _bytes_of(element)
    terms = math.prod(extents[d] for d in reduced)
    padded = math.ceil(terms * size / multiple) * multiple // size
    inner = [d for d in reduced if extents[d] > 1] or list(reduced[:1])
    pads = padded != terms
    order = [*used, free, *inner]
    shape = [extents[d] for d in order]
    whole = shape if not pads else [*shape[:-1], padded]
    assert not pads or len(inner) == 1, "several dimensions are made one first"
    buffer = memref.AllocOp(ir.MemRefType.get(whole, element), [], []).result
    target = buffer
    if pads:
        fill_with_zero(buffer)
        target = subview(buffer, [0] * len(shape), shape)
    places = {d: ir.AffineDimExpr.get(place) for place, d in enumerate(order)}
    unused = ir.AffineConstantExpr.get(0)
    rank = len(order)
    renaming = ir.AffineMap.get(rank, 0, [places.get(d, unused) for d in range(len(extents))])
    reading = ir.AffineMap.get(rank, 0, [e.compose(renaming) for e in map_.results])
    identity = ir.AffineMap.get_identity(rank)
    copy = make_generic([source], [target], [reading, identity], [False] * rank)
    block = copy.regions[0].blocks.append(narrow, element)
    with ir.InsertionPoint(block):
        value: ir.Value = block.arguments[0]
        if flip:
            value = arith.XOrIOp(value, arith.ConstantOp(element, -_SIGN).result).result
        if bits and element != narrow:
            value = (arith.ExtSIOp if factor.signed else arith.ExtUIOp)(element, value).result
        ir.Operation.create("linalg.yield", operands=[value])
    row = padded * size
    steps, stride = {}, row * extents[free]
    for d in reversed(used):
        steps[d] = stride
        stride *= extents[d]
    return Rows(buffer, steps, row, size, size)


def fill_with_zero(buffer: ir.Value) -> None:
    """Write zeros all over a buffer."""
    type_ = ir.MemRefType(buffer.type)
    element, rank = type_.element_type, len(type_.shape)
    is_float = isinstance(element, ir.FloatType)
    zero = arith.ConstantOp(element, 0.0 if is_float else 0).result
    none, identity = ir.AffineMap.get(rank, 0, []), ir.AffineMap.get_identity(rank)
    fill = make_generic([zero], [buffer], [none, identity], [False] * rank)
    block = fill.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])


def first_factor(product: NarrowProduct, unit: str | Vectors) -> Rows:
    """The rows of the first factor, in groups: whole tiles or whole vectors."""
    roles, factor = product.roles, product.a
    multiple = TILE_BYTES if isinstance(unit, str) else 4
    extents = roles.generic.extents
    found = rows_in_place(factor, roles.row, roles.around, roles.reduced, extents)
    words = isinstance(unit, Vectors) and unit.group == 2
    flip = isinstance(unit, Vectors) and bool(unit.flip)
    if found is not None and found.depth == found.element_bytes and not (words or flip):
        if product.depth * found.element_bytes % multiple == 0:
            return found
    return _copied(product, factor, roles.row, multiple, 16 if words else 0, flip)


def second_factor(product: NarrowProduct, unit: str | Vectors) -> Rows:
    """The columns of the second factor, as they can be packed."""
    roles, factor = product.roles, product.b
    extents = roles.generic.extents
    found = rows_in_place(factor, roles.column, roles.around, roles.reduced, extents)
    words = isinstance(unit, Vectors) and unit.group == 2
    if found is not None and not words:
        if found.element_bytes in (found.depth, found.free):
            return found
    return _copied(product, factor, roles.column, 1, 16 if words else 0, False)


def _copied(
    product: NarrowProduct, factor: NarrowFactor, free: int, multiple: int, bits: int, flip: bool
) -> Rows:
    roles = product.roles
    extents = roles.generic.extents
    inner = [d for d in roles.reduced if extents[d] > 1]
    if len(inner) < 2:
        return copied_rows(
            factor, free, roles.around, roles.reduced, extents, multiple, bits, flip
        )
    one = copied_rows(factor, free, roles.around, roles.reduced, extents, 1, bits, flip)
    if one.free % multiple == 0:
        return one
    return _padded(product, one, free, factor, multiple)


def _padded(
    product: NarrowProduct, rows: Rows, free: int, factor: NarrowFactor, multiple: int
) -> Rows:
    """A copy of rows that lie densely, as a factor with one dimension in its sum."""
    around, extents = product.roles.around, product.roles.generic.extents
    shape = list(ir.MemRefType(rows.buffer.type).shape)
    outer = len(rows.around) + 1
    groups = [[i] for i in range(outer)] + [list(range(outer, len(shape)))]
    type_ = ir.MemRefType(rows.buffer.type)
    flat_type = ir.MemRefType.get([*shape[:outer], product.depth], type_.element_type)
    i64 = ir.IntegerType.get_signless(64)
    flat = ir.Operation.create(
        "memref.collapse_shape",
        results=[flat_type],
        operands=[rows.buffer],
        attributes={
            "reassociation": ir.ArrayAttr.get(
                [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in g]) for g in groups]
            )
        },
    ).result
    order = [d for d in around if d in rows.around]
    rank = len(extents)
    depth = rank  # one more dimension than the product has
    map_ = ir.AffineMap.get(rank + 1, 0, [ir.AffineDimExpr.get(d) for d in (*order, free, depth)])
    whole = NarrowFactor(Factor(flat, map_), factor.signed, None)
    return copied_rows(whole, free, around, (depth,), (*extents, product.depth), multiple)


def _bytes_of(element: ir.Type) -> int:
    return 2 if isinstance(element, ir.FloatType) else ir.IntegerType(element).width // 8


