"""What a `linalg.generic` says of itself, read once into Python: operands, maps, iterators,
extents."""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import ir


@dataclass(frozen=True)
class Generic:
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
    inputs, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    operands = tuple(op.operands)
    maps = tuple(ir.AffineMapAttr(a).value for a in op.attributes["indexing_maps"])
    reductions = tuple("reduction" in str(a) for a in op.attributes["iterator_types"])
    return Generic(
        op, operands[:inputs], operands[inputs:], maps[:inputs], maps[inputs:], reductions,
        _extents(operands, maps, len(reductions)),
    )  # fmt: skip


def generics_on_buffers(module: ir.Module) -> list[ir.Operation]:
    """Every bufferised `linalg.generic` of a module, in order of their text."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "linalg.generic" and not len(op.results):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _extents(
    operands: tuple[ir.Value, ...], maps: tuple[ir.AffineMap, ...], rank: int
) -> tuple[int, ...]:
    extents: list[int | None] = [None] * rank
    for value, map_ in zip(operands, maps, strict=True):
        if not len(map_.results):
            continue
        shape = ir.ShapedType(value.type).shape
        for size, expression in zip(shape, map_.results, strict=True):
            if isinstance(expression, ir.AffineDimExpr):
                position = ir.AffineDimExpr(expression).position
                if extents[position] is None:
                    extents[position] = size
    if any(extent is None or extent < 0 for extent in extents):
        raise ValueError("a linalg.generic with a dynamic or unnamed extent")
    return tuple(extents)  # type: ignore[arg-type]
