"""What a `linalg.generic` says of itself, read once into Python: operands, maps, iterators,
extents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lamina.dialects.context import cached_with_context
from lamina.dialects.vendors import ir, memref
from lamina.passes.framework.find import find_ops, is_inside

HARMLESS = ("arith.", "complex.", "index.", "memref.alloc", "memref.cast", "memref.collapse_shape",
            "memref.expand_shape", "memref.get_global", "memref.reinterpret_cast",
            "memref.subview", "memref.view")  # fmt: skip
"""How ops begin that touch no memory."""

PART = "lamina.part"
"""An attribute of an op that does a part of what was one op, in a task: what it reads from outside
of that is the same in all tasks."""


class Generic(NamedTuple):
    """A `linalg.generic`: its operands with their maps, and the extent of each dimension of its
    iteration space."""

    op: ir.Operation
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    input_maps: tuple[ir.AffineMap, ...]
    output_maps: tuple[ir.AffineMap, ...]
    reductions: tuple[bool, ...]
    extents: tuple[int, ...]

    @property
    def body(self) -> ir.Block:
        return self.op.regions[0].blocks[0]

    @property
    def rank(self) -> int:
        return len(self.reductions)


def read_generic(op: ir.Operation) -> Generic:
    """Reads a `linalg.generic` on static shapes; ValueError where an extent is dynamic."""
    attributes = op.attributes
    inputs = ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"])[0]
    operands = tuple(op.operands)
    maps, reductions, extents = _space(
        attributes["indexing_maps"],
        attributes["iterator_types"],
        tuple([value.type for value in operands]),
    )
    return Generic(
        op, operands[:inputs], operands[inputs:], maps[:inputs], maps[inputs:], reductions, extents
    )


def places_of(map_: ir.AffineMap) -> list[int]:
    """The dimensions that a map names; -1 for another expression."""
    return [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in map_.results]


@cached_with_context(1024)
def _places_along(map_: ir.AffineMap, dimension: int) -> frozenset[int]:
    return frozenset(place for place, d in enumerate(places_of(map_)) if d == dimension)


@cached_with_context(1024)  # most have that of many others, and each pass reads them anew
def _space(
    indexing: ir.ArrayAttr, iterators: ir.ArrayAttr, types: tuple[ir.Type, ...]
) -> tuple[tuple[ir.AffineMap, ...], tuple[bool, ...], tuple[int, ...]]:
    """The maps of a generic on operands of these types, which of its dimensions it reduces, and their
    extents."""
    maps = tuple(part.value for part in indexing)
    reductions = reductions_of(iterators)
    return maps, reductions, _extents(types, maps, len(reductions))


@cached_with_context(256)
def reductions_of(iterators: ir.ArrayAttr) -> tuple[bool, ...]:
    """Which dimensions a generic with these iterator types reduces."""
    kinds = str(iterators)  # all at once: each has a name to look up
    return tuple("reduction" in kind for kind in kinds.split(",")) if "<" in kinds else ()


def _extents(
    types: tuple[ir.Type, ...], maps: tuple[ir.AffineMap, ...], rank: int
) -> tuple[int, ...]:
    extents: list[int | None] = [None] * rank
    for of, map_ in zip(types, maps, strict=True):
        if not len(map_.results):
            continue
        for size, position in zip(ir.ShapedType(of).shape, places_of(map_), strict=True):
            if position >= 0 and extents[position] is None:
                extents[position] = size
    if any(extent is None or extent < 0 for extent in extents):
        raise ValueError("a linalg.generic with a dynamic or unnamed extent")
    return tuple(extents)  # type: ignore[arg-type]


def make_generic(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    reductions: Sequence[bool],
    results: Sequence[ir.Type] = (),
) -> ir.Operation:
    """A `linalg.generic` without a body yet, bufferised if it has no results."""
    kinds = [
        ir.Attribute.parse(f"#linalg.iterator_type<{'reduction' if r else 'parallel'}>")
        for r in reductions
    ]
    return ir.Operation.create(
        "linalg.generic",
        results=list(results),
        operands=[*inputs, *outputs],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
            "iterator_types": ir.ArrayAttr.get(kinds),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(outputs)]),
        },
        regions=1,
    )


def clone_on(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Operation:
    """The same op on other operands."""
    copy = op.clone().operation
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    return copy


def make_copy(value: ir.Value, into: ir.Value) -> ir.Operation:
    """`linalg.copy`, or `linalg.fill` of a scalar, on tensors or on buffers."""
    on_tensors = isinstance(into.type, ir.RankedTensorType)
    is_array = isinstance(value.type, ir.ShapedType)  # a complex number has an element type, too
    kinds = [value.type.element_type if is_array else value.type, into.type.element_type]
    op = ir.Operation.create(
        "linalg.copy" if is_array else "linalg.fill",
        results=[into.type] if on_tensors else [],
        operands=[value, into],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
        regions=1,
    )
    block = op.regions[0].blocks.append(*kinds)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
    return op


def subview(
    buffer: ir.Value, offsets: Sequence[ir.Value | int], sizes: Sequence[int]
) -> ir.Value:
    """The part of a buffer that begins at these indices."""
    type_ = ir.MemRefType(buffer.type)
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    static = [dynamic if isinstance(at, ir.Value) else at for at in offsets]
    if dynamic in (offset, *static):
        offset = dynamic
    else:
        offset += sum(at * stride for at, stride in zip(static, strides, strict=True))
    layout = ir.StridedLayoutAttr.get(offset, list(strides))
    return memref.SubViewOp(
        ir.MemRefType.get(list(sizes), type_.element_type, layout),
        buffer, [at for at in offsets if isinstance(at, ir.Value)], [], [],
        static, list(sizes), [1] * len(sizes),
    ).result  # fmt: skip


def part_of(
    value: ir.Value,
    map_: ir.AffineMap,
    at: Mapping[int, ir.Value],
    size: Mapping[int, int],
) -> ir.Value:
    """What a part of an op's iteration space, which begins at and has these sizes (dimensions not
    named are whole), reaches of an operand that is indexed by dimensions and constants."""
    if not is_buffer(value):
        return value
    offsets: list[ir.Value | int] = []
    sizes = []
    for d, extent in zip(places_of(map_), ir.MemRefType(value.type).shape, strict=True):
        offsets.append(at.get(d, 0))
        sizes.append(size.get(d, extent))
    is_whole = not any(isinstance(offset, ir.Value) for offset in offsets)
    return value if is_whole else subview(value, offsets, sizes)


class Access(NamedTuple):
    """One operand of a generic that is a buffer: how it is indexed, whether it is written."""

    buffer: ir.Value
    map: ir.AffineMap
    writes: bool

    def places_of(self, dimension: int) -> frozenset[int]:
        """The buffer's dimensions whose index is just this dimension of the iteration space."""
        return _places_along(self.map, dimension)


def accesses(generic: Generic) -> list[Access]:
    """The buffers among a generic's operands."""
    reads = zip(generic.inputs, generic.input_maps, strict=True)
    writes = zip(generic.outputs, generic.output_maps, strict=True)
    found = [Access(value, map_, False) for value, map_ in reads if is_buffer(value)]
    return found + [Access(value, map_, True) for value, map_ in writes]


def loaded_buffers(generic: Generic) -> list[ir.Value]:
    """The buffers that a generic's body loads from at indices it computes."""
    return [op.operands[0] for op in find_ops(generic.op, "memref.load")]


def loads(generic: Generic) -> list[Access]:
    """What a generic's body loads: where an index is a dimension of the iteration space the map names
    it, where it is computed the map has a constant."""
    found = []
    for op in find_ops(generic.op, "memref.load"):
        at = [_index_of(value) for value in list(op.operands)[1:]]
        results = [ir.AffineConstantExpr.get(0) if d is None else ir.AffineDimExpr.get(d) for d in at]
        found.append(Access(op.operands[0], ir.AffineMap.get(generic.rank, 0, results), False))
    return found


def _index_of(value: ir.Value) -> int | None:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "linalg.index":
        return None
    return int(ir.IntegerAttr(value.owner.operation.attributes["dim"]).value)


def root_buffer(value: ir.Value) -> ir.Value:
    """The buffer that a chain of views looks at."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name in ("memref.alloc", "memref.alloca", "memref.get_global"):
            break
        if not len(op.operands) or not is_buffer(op.operands[0]):
            break
        value = op.operands[0]
    return value


def generics_together(module: ir.Module) -> list[ir.Operation]:
    """The generics on functions' own level that are not alone in their block, in order."""
    found: list[ir.Operation] = []
    for function in module.body.operations:
        for region in function.operation.regions:
            for block in region.blocks:
                generics = [
                    op.operation for op in block.operations if op.operation.name == "linalg.generic"
                ]
                found += generics if len(generics) > 1 else ()
    return found


def is_generic_on_buffers(op: ir.Operation) -> bool:
    """Whether an op is a bufferised `linalg.generic`."""
    return op.name == "linalg.generic" and not len(op.results)


def outputs_of(op: ir.Operation) -> list[ir.Value]:
    """What a `linalg.generic` writes."""
    inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
    return list(op.operands)[inputs:]


def generics_on_buffers(module: ir.Module) -> list[ir.Operation]:
    """Every bufferised `linalg.generic` of a module, in order of their text."""
    return [op for op in find_ops(module, "linalg.generic") if not len(op.results)]


def is_temporary(buffer: ir.Value) -> bool:
    """Whether a buffer is one that its function allocates."""
    return not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name == "memref.alloc"


def sole_fill(
    generic: Generic, output: ir.Value, is_fill: Callable[[ir.Operation], bool] | None = None
) -> ir.Operation | None:
    """The only fill of a reduction's output, where it just gives the initial value: what touches it last before the
    generic. `is_fill` says what counts as one."""
    if not any(generic.reductions):
        return None
    fills = _fills_of(generic, output, is_fill or is_fill_of_input)
    return last_fill(generic, output, is_fill) if len(fills) == 1 else None


def last_fill(
    generic: Generic, output: ir.Value, is_fill: Callable[[ir.Operation], bool] | None = None
) -> ir.Operation | None:
    """The fill that only gives a reduction's output its initial value, where there may be others, for other values
    that had the same buffer before or have it afterwards."""
    if not any(generic.reductions):
        return None
    users = [use.owner for use in output.uses]
    fills = _fills_of(generic, output, is_fill or is_fill_of_input)
    if not fills or any(len(user.results) and is_buffer(user.results[0]) for user in users):
        return None  # none, or a view may reach the same memory
    last: ir.Operation | None = None
    for op in generic.op.operation.block.operations:
        if op.operation == generic.op:
            return last
        if op.operation in fills:
            last = op.operation
        elif last is not None and any(is_inside(user, op.operation) for user in users):
            last = None
    return None


def _fills_of(
    generic: Generic, output: ir.Value, is_fill: Callable[[ir.Operation], bool]
) -> list[ir.Operation]:
    block = generic.op.operation.block
    users = [use.owner.operation for use in output.uses]
    return [user for user in users if user.block == block and is_fill(user)]


def filled_value(op: ir.Operation) -> ir.Value | None:
    """The one value that a generic writes everywhere, whether it is an input or comes from outside;
    None for any other op."""
    if not is_generic_on_buffers(op):
        return None
    sizes = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    inputs, outputs = sizes[0], sizes[1]
    block = op.regions[0].blocks[0]
    if outputs != 1 or len(block.operations) != 1:
        return None
    value = block.operations[0].operation.operands[0]
    if inputs == 0 and value != block.arguments[0]:
        return value
    if inputs == 1 and value == block.arguments[0] and not is_buffer(op.operands[0]):
        return op.operands[0]
    return None


def is_fill_of_input(op: ir.Operation) -> bool:
    """Whether a generic, on tensors or on buffers, writes one input everywhere, which is a number."""
    if op.name != "linalg.generic" or list(
        ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    ) != [1, 1]:
        return False
    block = op.regions[0].blocks[0]
    return (
        not isinstance(op.operands[0].type, ir.ShapedType)
        and len(block.operations) == 1
        and block.operations[0].operands[0] == block.arguments[0]
    )


def has_constant(expression: ir.AffineExpr) -> bool:
    """Whether an index is more than a sum of multiples of dimensions."""
    if isinstance(expression, ir.AffineConstantExpr):
        return ir.AffineConstantExpr(expression).value != 0
    if isinstance(expression, ir.AffineAddExpr):
        parts = ir.AffineAddExpr(expression)
        return has_constant(parts.lhs) or has_constant(parts.rhs)
    return False


def stride_along(value: ir.Value, map_: ir.AffineMap, dimension: int) -> int:
    """Elements between accesses that follow each other along a dimension; 0 when it isn't used."""
    strides = strides_of(value.type, map_)
    return strides[dimension] if dimension < len(strides) else 0


@cached_with_context(1024)
def strides_of(type_: ir.Type, map_: ir.AffineMap) -> tuple[int, ...]:
    """Elements between accesses that follow each other along each dimension."""
    strides, _ = ir.MemRefType(type_).get_strides_and_offset()
    return tuple(
        sum(
            stride * coefficient(expression, dimension)
            for stride, expression in zip(strides, map_.results, strict=True)
        )
        for dimension in range(map_.n_dims)
    )


def coefficient(expression: ir.AffineExpr, dimension: int) -> int:
    if isinstance(expression, ir.AffineDimExpr):
        return int(ir.AffineDimExpr(expression).position == dimension)
    if isinstance(expression, ir.AffineAddExpr):
        parts = ir.AffineAddExpr(expression)
        return coefficient(parts.lhs, dimension) + coefficient(parts.rhs, dimension)
    if isinstance(expression, ir.AffineMulExpr):
        parts = ir.AffineMulExpr(expression)
        for term, factor in ((parts.lhs, parts.rhs), (parts.rhs, parts.lhs)):
            if isinstance(factor, ir.AffineConstantExpr):
                return ir.AffineConstantExpr(factor).value * coefficient(term, dimension)
    return 0


def is_linear(expression: ir.AffineExpr) -> bool:
    """Whether an index is a sum of multiples of dimensions, all of which `coefficient` knows."""
    if isinstance(expression, ir.AffineAddExpr):
        parts = ir.AffineAddExpr(expression)
        return is_linear(parts.lhs) and is_linear(parts.rhs)
    if isinstance(expression, ir.AffineMulExpr):
        parts = ir.AffineMulExpr(expression)
        return {type(parts.lhs), type(parts.rhs)} == {ir.AffineDimExpr, ir.AffineConstantExpr}
    return isinstance(expression, ir.AffineDimExpr)


def is_dense(buffer: ir.Value) -> bool:
    """Whether a buffer's elements lie row by row, with nothing between them."""
    type_ = ir.MemRefType(buffer.type)
    return bool(type_.affine_map == ir.AffineMap.get_identity(type_.rank))


def is_buffer(value: ir.Value) -> bool:
    """Whether a value is memory, not a scalar."""
    return isinstance(value.type, ir.MemRefType)
