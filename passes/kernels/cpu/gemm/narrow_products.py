"""Reading a bufferised `linalg.generic` as a matrix product of bytes or of bfloat16.

The factors' elements are widened in the body, or were widened to a temporary in front of it: then
the product is one of what that holds.
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import ir, memref
from lamina.passes.emit.copies import copied
from lamina.passes.kernels.cpu.gemm.contraction import (
    WIDENINGS,
    Contraction,
    widenings_in,
    with_roles,
)
from lamina.passes.kernels.cpu.gemm.factor_copies import copy_elements
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_generic_on_buffers,
    is_temporary,
    loaded_buffers,
    make_generic,
    read_generic,
    root_buffer,
)
from lamina.passes.linalg.schedule.tileable import can_be_done_in_parts
from lamina.records import Record

_LEAST_PRODUCTS = 32_768  # shape: a few tiles
_LEAST_COLUMNS, _LEAST_DEPTH = 8, 16  # shape: half a tile
_LEAST_ROWS = {"i8": 3, "bf16": 8}  # fewer bf16 are done as fast in f32
_NARROW = {"i32": "i8", "f32": "bf16"}


class NarrowFactor(Record):
    """A factor as it lies in memory, whether its numbers have a sign, and the op that wrote a
    widened copy, if there is one."""

    factor: Factor
    signed: bool
    widening: ir.Operation | None


class NarrowProduct(Record):
    """A contraction of two dimensions, and others around them, with its factors as they lie in
    memory."""

    roles: Contraction
    a: NarrowFactor
    b: NarrowFactor
    is_turned: bool = False
    """Whether the result is contiguous along the rows, not the columns."""

    @property
    def element(self) -> str:
        """`i8` or `bf16`."""
        return str(ir.MemRefType(self.a.factor.buffer.type).element_type)

    @property
    def element_bytes(self) -> int:
        return 2 if self.element == "bf16" else 1

    @property
    def depth(self) -> int:
        """The number of terms of each sum."""
        return math.prod(self.roles.generic.extents[d] for d in self.roles.reduced)


def read_narrow_product(generic: Generic) -> NarrowProduct | None:
    """What a generic multiplies; None if it does something else, or is too small to be worth it."""
    if len(generic.inputs) != 2 or len(generic.outputs) != 1 or not any(generic.reductions):
        return None
    if math.prod(generic.extents) < _LEAST_PRODUCTS or loaded_buffers(generic):
        return None
    output = generic.outputs[0]
    if not all(isinstance(v.type, ir.MemRefType) for v in (*generic.inputs, output)):
        return None
    element = str(ir.MemRefType(output.type).element_type)
    widenings = widenings_in(generic)
    if element not in _NARROW or widenings is None:
        return None
    factors = []
    for value, map_, widening in zip(generic.inputs, generic.input_maps, widenings, strict=True):
        found = (
            widened_before(generic, Factor(value, map_), generic.op)
            if widening is None
            else NarrowFactor(Factor(value, map_), WIDENINGS[widening], None)
        )
        if found is None:
            return None
        if str(ir.MemRefType(found.factor.buffer.type).element_type) != _NARROW[element]:
            return None
        factors.append(found)
    c = Factor(output, generic.output_maps[0])
    for a, b in (factors, factors[::-1]):
        roles = with_roles(generic, a.factor, b.factor, c)
        if roles is not None:
            product = NarrowProduct(roles, a, b)
            return product if _is_large(roles, product.element) else None
    return None


def _is_large(roles: Contraction, element: str) -> bool:
    extents = roles.generic.extents
    return (
        extents[roles.row] >= _LEAST_ROWS[element]
        and extents[roles.column] >= _LEAST_COLUMNS
        and math.prod(extents[d] for d in roles.reduced) >= _LEAST_DEPTH
    )


def widened_before(product: Generic, factor: Factor, last: ir.Operation) -> NarrowFactor | None:
    """What a factor is a widened copy of, if a generic in front wrote it as that and what that
    reads has not changed up to `last`."""
    buffer = factor.buffer
    if not is_temporary(buffer):
        return None
    users = {use.owner.operation for use in buffer.uses}
    writers = [op for op in users - {product.op} if _writes(op, buffer)]
    if len(writers) != 1 or not is_generic_on_buffers(writers[0]):
        return None
    if writers[0].block != product.op.operation.block:
        return None
    widening = read_generic(writers[0])
    body = [op.operation for op in widening.body.operations]
    if len(widening.inputs) != 1 or len(body) != 2 or body[0].name not in WIDENINGS:
        return None
    if body[0].operands[0] != widening.body.arguments[0] or any(widening.reductions):
        return None
    source, identity = widening.inputs[0], ir.AffineMap.get_identity(widening.rank)
    if widening.output_maps[0] != identity or not isinstance(source.type, ir.MemRefType):
        return None
    if _is_written_between(source, writers[0], last):
        return None
    map_ = ir.AffineMap.get(
        product.rank, 0, [e.compose(factor.map) for e in widening.input_maps[0].results]
    )
    return NarrowFactor(Factor(source, map_), WIDENINGS[body[0].name], writers[0])


def narrow_what_is_made(product: Generic) -> None:
    """Let what makes the factors of a product of f32, and widens bf16 at the end, write that, and another op
    widen it: this may turn out not to be needed."""
    if not _makes_sums_of_bf16(product):
        return
    for value in product.inputs:
        makers = {use.owner.operation for use in value.uses} - {product.op}
        maker = makers.pop() if len(makers) == 1 and is_temporary(value) else None
        if maker is None or not is_generic_on_buffers(maker) or maker.block != product.op.operation.block:
            continue
        generic = read_generic(maker)
        body = [op.operation for op in generic.body.operations]
        if len(body) < 3 or list(generic.outputs) != [value] or not can_be_done_in_parts(generic):
            continue
        end = body[-1].operands[0]
        if body[-2].results[0] == end and body[-2].name == "arith.extf":
            narrow = body[-2].operands[0]
            if isinstance(narrow.type, ir.BF16Type) and not list(generic.body.arguments[-1].uses):
                _narrow(generic, body[-2], value)


def _makes_sums_of_bf16(product: Generic) -> bool:
    """Whether a generic may be a product of bf16, as far as what is not made says."""
    if widenings_in(product) is None or math.prod(product.extents) < _LEAST_PRODUCTS:
        return False
    factors = [Factor(value, map_) for value, map_ in zip(product.inputs, product.input_maps, strict=True)]
    c = Factor(product.outputs[0], product.output_maps[0])
    if not all(isinstance(of.buffer.type, ir.MemRefType) for of in (*factors, c)):
        return False
    if not isinstance(ir.MemRefType(c.buffer.type).element_type, ir.F32Type):
        return False
    roles = [with_roles(product, a, b, c) for a, b in (factors, factors[::-1])]
    return any(of is not None and _is_large(of, "bf16") for of in roles)


def _narrow(generic: Generic, widening: ir.Operation, wide: ir.Value) -> None:
    type_ = ir.MemRefType(wide.type)
    element = widening.operands[0].type
    with ir.InsertionPoint(wide.owner), generic.op.location:
        buffer = memref.AllocOp(ir.MemRefType.get(type_.shape, element), [], []).result
    with ir.InsertionPoint(generic.op), generic.op.location:
        made = make_generic(
            list(generic.inputs), [buffer], [*generic.input_maps, *generic.output_maps], generic.reductions
        )
        old = generic.body
        block = made.regions[0].blocks.append(*(argument.type for argument in list(old.arguments)[:-1]), element)
        known = dict(zip(list(old.arguments)[:-1], list(block.arguments)[:-1], strict=True))
        with ir.InsertionPoint(block):
            for op in list(old.operations)[:-2]:
                copied(op.operation, known)
            end = widening.operands[0]
            ir.Operation.create("linalg.yield", operands=[known.get(end, end)])
        copy_elements(buffer, wide, ir.AffineMap.get_identity(len(type_.shape)))
    generic.op.erase()


def _writes(op: ir.Operation, buffer: ir.Value) -> bool:
    """Whether an op may write a buffer: a generic does so to its outputs, others are not known."""
    return not is_generic_on_buffers(op) or buffer in read_generic(op).outputs


def _is_written_between(buffer: ir.Value, first: ir.Operation, last: ir.Operation) -> bool:
    root, seen = root_buffer(buffer), False
    for op in first.block.operations:
        if op.operation == last:
            return not seen
        if seen and any(
            isinstance(value.type, ir.MemRefType) and root_buffer(value) == root
            and _writes(op.operation, value)
            for value in op.operation.operands
        ):  # fmt: skip
            return True
        seen = seen or op.operation == first
    return True


def erase_unread(makers: set[ir.Operation]) -> None:
    """Erase those of these ops whose results, widened copies or factors, nothing reads."""
    for maker in makers:
        buffer = list(maker.operands)[-1]
        if {use.owner.operation for use in buffer.uses} == {maker}:
            maker.erase()
            buffer.owner.erase()
