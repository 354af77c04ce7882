"""Emitting the inside of a block of a transposing copy: square tiles transposed in registers.

A copy that walks one buffer along its rows strides through the other: each element would cost a
cache line. A tile is loaded row by row from the one, transposed by shuffles, and stored row by row
to the other; the last tiles are shifted back to end where the array does, and done twice in part.
Arithmetic on an element is done on the vectors on the way. Few rows are dealt instead (`interleaving`).

A tile has 16 bytes of each row, the lanes that a processor shuffles within by one instruction: they
are loaded to their places in whole vectors. Square tiles are no faster, and twice as much to compile.

Lines of a large result go past the caches: a plain store first reads what it overwrites, line by line
from far apart rows, which takes four fifths of the time where no cache holds the result any more.
Its tiles are square, as of rows so far apart no cache would hold what is left of their lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from lamina.dialects.vendors import arith, ir, memref, vector
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import for_steps, if_else, index
from lamina.passes.emit.transposition import LANE_BYTES, transposed_in_lanes
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.linalg.analysis.structure import (
    Generic,
    coefficient,
    is_buffer,
    stride_along,
    strides_of,
)
from lamina.passes.linalg.vectors.shuffles import shuffled, transposed
from lamina.passes.linalg.vectors.vector_body import on_vectors
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.schedule.candidates import SQUARE_BLOCK
from lamina.passes.schedule.interleaving import Interleaving, emit_interleaved
from lamina.passes.schedule.nest import Tile

_MOST_ROWS = 16  # shape: of a tile: each takes a register
_LEAST_ROWS = 4  # shape
_PAST_CACHES = 4  # second caches, which a result fills
_LEAST_LINES = 64  # shape: of a block, which waits for its stores
_SEQUENTIAL = 7  # an order of LLVM's
_BLOCK_PAST_CACHES = (32, 512)
"""Of a transposing copy: few rows are read on and on, and two or four lines written of each."""

Indices = Callable[[ir.AffineMap], list[ir.Value]]
"""The indices of a map at the current position."""


def is_transposing_copy(generic: Generic, outer: int, inner: int) -> bool:
    """Whether a generic copies its one input, contiguous along `outer`, to `inner`-contiguous, with
    arithmetic on each element that vectors have, too."""
    if len(generic.inputs) != 1 or len(generic.outputs) != 1 or any(generic.reductions):
        return False
    block = generic.body
    *computing, _ = (op.operation for op in block.operations)
    if not all(op.name.startswith("arith.") and len(op.results) == 1 for op in computing):
        return False
    if list(block.arguments[1].uses):
        return False
    source, target = generic.inputs[0].type, generic.outputs[0].type
    if not isinstance(source, ir.MemRefType) or isinstance(source.element_type, ir.ComplexType):
        return False
    is_read = _is_row(source, generic.input_maps[0], outer) or _is_read_backwards(generic, outer)
    return is_read and _is_row(target, generic.output_maps[0], inner)


def tile_of(generic: Generic) -> Tile | None:
    """The kernel that does blocks of a transposing copy, and the blocks that suit it; None for any other op, and for
    one that is too small."""
    if len(generic.inputs) != 1 or len(generic.outputs) != 1 or any(generic.reductions):
        return None
    outer = _contiguous(generic.inputs[0], generic.input_maps[0])
    inner = _contiguous(generic.outputs[0], generic.output_maps[0])
    if outer is None or inner is None or outer == inner:
        return None
    how = deals(generic, outer, inner)
    if how is not None:
        return Tile(outer, inner, how.blocks)
    if min(generic.extents[outer], generic.extents[inner]) < _LEAST_ROWS:
        return None
    if not is_transposing_copy(generic, outer, inner):
        return None
    if abs(stride_along(generic.inputs[0], generic.input_maps[0], inner)) < 2:
        return None
    if goes_past_caches(generic, outer, inner):
        lines, rows = _BLOCK_PAST_CACHES
        return Tile(outer, inner, ((inner, lines), (outer, rows)))
    return Tile(outer, inner, ((outer, SQUARE_BLOCK), (inner, SQUARE_BLOCK)))


def _contiguous(value: ir.Value, map_: ir.AffineMap) -> int | None:
    """The dimension along which an operand is contiguous, in either direction."""
    if not is_buffer(value):
        return None
    strides = strides_of(value.type, map_)
    return next((d for d, stride in enumerate(strides) if abs(stride) == 1), None)


def deals(generic: Generic, outer: int, inner: int) -> Interleaving | None:
    """How a transposing copy deals rows, if it does."""
    if not is_transposing_copy(generic, outer, inner) or _is_read_backwards(generic, outer):
        return None
    return Interleaving.of(generic, outer, inner)


def goes_past_caches(generic: Generic, outer: int, inner: int) -> bool:
    """Whether a transposing copy writes a large result of which its tiles' rows are whole lines."""
    blocks = min(generic.extents[d] for d in (outer, inner)) >= _LEAST_LINES
    if not (blocks and is_transposing_copy(generic, outer, inner)):
        return False
    target = ir.MemRefType(generic.outputs[0].type)
    (*strides, _), offset = target.get_strides_and_offset()
    width, machine = element_bytes(target.element_type), machine_of(generic.op)
    return (
        _side(generic, (outer, inner)) * width % machine.line_bytes == 0
        and math.prod(target.shape) * width >= _PAST_CACHES * machine.l2_bytes
        and offset == 0
        and all(stride > 0 and stride * width % machine.line_bytes == 0 for stride in strides)
    )


def _is_row(type_: ir.MemRefType, map_: ir.AffineMap, dimension: int) -> bool:
    last = list(map_.results)[-1] if len(map_.results) else None
    return (
        isinstance(last, ir.AffineDimExpr)
        and ir.AffineDimExpr(last).position == dimension
        and _has_rows(type_)
    )


def _is_read_backwards(generic: Generic, dimension: int) -> bool:
    """Whether a generic walks along the rows of its input from their ends."""
    (map_, *_), (source, *_) = generic.input_maps, generic.inputs
    if not len(map_.results) or not _has_rows(source.type):
        return False
    last = list(map_.results)[-1]
    steps = [coefficient(last, d) for d in range(generic.rank)]
    return steps == [-(d == dimension) for d in range(generic.rank)]


def _has_rows(type_: ir.MemRefType) -> bool:
    strides, _ = type_.get_strides_and_offset()
    return bool(strides) and strides[-1] == 1


def emit_transposed_block(
    generic: Generic,
    position: dict[int, ir.Value],
    ends: Mapping[int, ir.Value],
    dimensions: tuple[int, int],
    indices: Indices,
) -> None:
    """Copy one block, from `position` to `ends` along (outer, inner); changes `position`."""
    how = deals(generic, *dimensions)
    if how is not None:
        emit_interleaved(
            generic, how, position, ends[how.long], indices, lambda v: _computed(generic, v)
        )
        return
    if not goes_past_caches(generic, *dimensions):
        _emit_block(generic, position, ends, dimensions, indices, past_caches=False)
        return
    begin = dict(position)

    def block(past_caches: bool) -> tuple[()]:
        position.update(begin)
        _emit_block(generic, position, ends, dimensions, indices, past_caches)
        if past_caches:  # such stores wait for nobody otherwise
            order = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SEQUENTIAL)
            ir.Operation.create("llvm.fence", attributes={"ordering": order})
        return ()

    # Memory of the caller's may begin anywhere.
    address = memref.ExtractAlignedPointerAsIndexOp(generic.outputs[0]).result
    beyond = arith.AndIOp(address, index(machine_of(generic.op).line_bytes - 1)).result
    is_line = arith.CmpIOp(arith.CmpIPredicate.eq, beyond, index(0)).result
    if_else(is_line, lambda: block(True), lambda: block(False), [])


def _emit_block(
    generic: Generic,
    position: dict[int, ir.Value],
    ends: Mapping[int, ir.Value],
    dimensions: tuple[int, int],
    indices: Indices,
    past_caches: bool,
) -> None:
    outer, inner = dimensions
    side = _side(generic, dimensions)
    tile = dict(zip(dimensions, (side, side) if past_caches else _tile(generic, dimensions)))
    begin = {d: position[d] for d in dimensions}

    def transpose(o: ir.Value, i: ir.Value) -> None:
        _transpose_tile(generic, position, (outer, o, tile[outer]), (inner, i, side), indices, past_caches)

    def tiles(dimension: int, body: Callable[[ir.Value], None]) -> None:
        extent, size = generic.extents[dimension], tile[dimension]

        def shifted(at: ir.Value) -> None:
            whole = extent % size == 0
            body(at if whole else arith.MinSIOp(at, index(extent - size)).result)

        for_steps(begin[dimension], ends[dimension], size, shifted)

    # Along the input's rows inside: a few rows are read on, while each line of the output is
    # written whole wherever it is. Past the caches, lines that are neighbours go together.
    if past_caches:
        tiles(outer, lambda o: tiles(inner, lambda i: transpose(o, i)))
    else:
        tiles(inner, lambda i: tiles(outer, lambda o: transpose(o, i)))


def _side(generic: Generic, dimensions: tuple[int, int]) -> int:
    """The side of a tile: whole cache lines, where they are few enough rows; less of what is small."""
    line = machine_of(generic.op).line_bytes
    side = min(_MOST_ROWS, line // element_bytes(generic.inputs[0].type.element_type))
    least = min(generic.extents[d] for d in dimensions)
    while side > least:
        side //= 2
    return side


def _tile(generic: Generic, dimensions: tuple[int, int]) -> tuple[int, int]:
    """Elements of a tile along (outer, inner): a lane of each of the input's rows."""
    side = _side(generic, dimensions)
    return min(side, LANE_BYTES // element_bytes(generic.inputs[0].type.element_type)), side


def _transpose_tile(
    generic: Generic,
    position: dict[int, ir.Value],
    outer: tuple[int, ir.Value, int],
    inner: tuple[int, ir.Value, int],
    indices: Indices,
    past_caches: bool,
) -> None:
    """Copy the tile of (dimension, begin, size) each."""
    (along, first, width), (across, top, height) = outer, inner
    type_ = ir.VectorType.get([width], generic.inputs[0].type.element_type)
    rows = []
    backwards = _is_read_backwards(generic, along)
    last = arith.AddIOp(first, index(width - 1)).result if backwards else first
    for number in range(height):
        position[along] = last  # where the row that is loaded begins
        position[across] = arith.AddIOp(top, index(number)).result
        rows.append(
            vector.LoadOp(type_, generic.inputs[0], indices(generic.input_maps[0])).result
        )
    for number, row in enumerate(_transposed(rows, width)):
        place = width - 1 - number if backwards else number
        position[along] = arith.AddIOp(first, index(place)).result
        position[across] = top
        vector.StoreOp(
            _computed(generic, row),
            generic.outputs[0],
            indices(generic.output_maps[0]),
            nontemporal=past_caches,
            alignment=machine_of(generic.op).line_bytes if past_caches else None,
        )


def _computed(generic: Generic, value: ir.Value) -> ir.Value:
    """What the body makes of an element, or of a vector of them."""
    known = {generic.body.arguments[0]: value}
    if isinstance(value.type, ir.VectorType):
        (result,) = on_vectors(generic.body, known, value.type.shape[0])
        return result
    *computing, end = (op.operation for op in generic.body.operations)
    for op in computing:
        copied(op, known)
    return known.get(end.operands[0], end.operands[0])


def _transposed(rows: list[ir.Value], width: int) -> list[ir.Value]:
    """The columns of 2^m rows of 2^n elements. Vectors of one row out of `width` each are made, and in
    all of their lanes at once a square is transposed."""
    if len(rows) == width:
        return transposed(rows)
    joined = [_joined(rows[number::width], width) for number in range(width)]
    return transposed_in_lanes(joined, width, len(rows), shuffled)


def _joined(parts: list[ir.Value], width: int) -> ir.Value:
    """One vector of 2^n."""
    while len(parts) > 1:
        width *= 2
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [vector.ShuffleOp(*pair, list(range(width))).result for pair in pairs]
    return parts[0]
