"""Emitting the inside of a block of a transposing copy: square tiles turned in registers.

A copy that walks one buffer along its rows strides through the other: each element would cost a
cache line. A tile is loaded row by row from the one, transposed by shuffles, and stored row by row
to the other; what does not fill a tile goes element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.linalg.structure import Generic
from lamina.passes.loops import for_steps, index, load, store

_SIDE = 8  # of a tile: as many registers as rows

Indices = Callable[[ir.AffineMap], list[ir.Value]]
"""The indices of a map at the current position."""


def is_transposing_copy(generic: Generic, outer: int, inner: int) -> bool:
    """Whether a generic copies its one input, contiguous along `outer`, to `inner`-contiguous."""
    if len(generic.inputs) != 1 or len(generic.outputs) != 1 or any(generic.reductions):
        return False
    block = generic.body
    if len(block.operations) != 1 or block.operations[0].operands[0] != block.arguments[0]:
        return False
    source, target = generic.inputs[0].type, generic.outputs[0].type
    if not isinstance(source, ir.MemRefType) or isinstance(source.element_type, ir.ComplexType):
        return False
    return _is_row(source, generic.input_maps[0], outer) and _is_row(
        target, generic.output_maps[0], inner
    )


def _is_row(type_: ir.MemRefType, map_: ir.AffineMap, dimension: int) -> bool:
    strides, _ = type_.get_strides_and_offset()
    last = list(map_.results)[-1] if len(map_.results) else None
    return (
        isinstance(last, ir.AffineDimExpr)
        and ir.AffineDimExpr(last).position == dimension
        and bool(strides)
        and strides[-1] == 1
    )


def emit_transposed_block(
    generic: Generic,
    position: dict[int, ir.Value],
    ends: Mapping[int, ir.Value],
    dimensions: tuple[int, int],
    indices: Indices,
) -> None:
    """Copy one block, from `position` to `ends` along (outer, inner); changes `position`."""
    outer, inner = dimensions
    begin = {d: position[d] for d in dimensions}
    whole = {d: _whole_tiles(begin[d], ends[d]) for d in dimensions}
    rest = {d: generic.extents[d] % _SIDE != 0 for d in dimensions}

    def copy(o: ir.Value, i: ir.Value) -> None:
        position[outer], position[inner] = o, i
        value = load(generic.inputs[0], indices(generic.input_maps[0]))
        store(value, generic.outputs[0], indices(generic.output_maps[0]))

    def tiles(o: ir.Value) -> None:
        def tile(i: ir.Value) -> None:
            _turn(generic, position, (outer, o), (inner, i), indices)

        for_steps(begin[inner], whole[inner], _SIDE, tile)
        if rest[inner]:
            past = arith.AddIOp(o, index(_SIDE)).result
            low, high = whole[inner], ends[inner]
            for_steps(
                o, past, 1, lambda row: for_steps(low, high, 1, lambda i: copy(row, i))
            )

    for_steps(begin[outer], whole[outer], _SIDE, tiles)
    if rest[outer]:
        for_steps(
            whole[outer],
            ends[outer],
            1,
            lambda o: for_steps(begin[inner], ends[inner], 1, lambda i: copy(o, i)),
        )


def _turn(
    generic: Generic,
    position: dict[int, ir.Value],
    outer: tuple[int, ir.Value],
    inner: tuple[int, ir.Value],
    indices: Indices,
) -> None:
    element = generic.inputs[0].type.element_type
    row = ir.VectorType.get([_SIDE], element)
    square = ir.VectorType.get([_SIDE, _SIDE], element)
    tile = ir.Operation.create("ub.poison", results=[square]).result
    for number in range(_SIDE):
        position[outer[0]] = outer[1]
        position[inner[0]] = arith.AddIOp(inner[1], index(number)).result
        loaded = vector.LoadOp(row, generic.inputs[0], indices(generic.input_maps[0])).result
        tile = vector.InsertOp(loaded, tile, [], [number]).result
    tile = vector.TransposeOp(square, tile, [1, 0]).result
    for number in range(_SIDE):
        position[outer[0]] = arith.AddIOp(outer[1], index(number)).result
        position[inner[0]] = inner[1]
        turned = vector.ExtractOp(tile, [], [number]).result
        vector.StoreOp(turned, generic.outputs[0], indices(generic.output_maps[0]))


def _whole_tiles(begin: ir.Value, end: ir.Value) -> ir.Value:
    size = arith.SubIOp(end, begin).result
    return arith.AddIOp(begin, arith.AndIOp(size, index(-_SIDE)).result).result
