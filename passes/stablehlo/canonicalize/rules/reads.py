"""Rules of `stablehlo-simplify` that read a part of what an op makes as that op of parts of its operands.

    %0 = stablehlo.slice %x [0:2000, 1:1999]                 %0 = stablehlo.dynamic_slice %x, %i, %one,
    %1 = stablehlo.dynamic_slice %0, %i, %zero,       ->              sizes = [1, 1998]
             sizes = [1, 1998]

In a loop the first form makes the whole array in each step, of which it reads a row. A part of a view (slice,
reverse, transpose, reshape, broadcast, another part) is a view of a part; of arrays side by side, or with
padding around, it is put together from parts of them; of an element-wise op it is computed where that, and all
else that reads the op's result, is less than half of it. What an outer block made is read as it is: it was
made once for all steps. Starts are clamped as a `dynamic_slice` clamps them before anything is added to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import (
    ELEMENTWISE,
    computes_elements,
    defining,
    ints,
    splat_of,
)
from lamina.passes.stablehlo.analysis.indexed_dims import GATHER, IndexedDims
from lamina.passes.stablehlo.analysis.part import Part
from lamina.passes.stablehlo.analysis.reassociation import grouped_dimensions
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

_PART = "stablehlo.dynamic_slice"
_READS = frozenset((_PART, "stablehlo.slice", GATHER))
_MOST_USES = 32  # search
"""Readers of an array that are looked at."""


@needs_operand_of(
    "slice", "reverse", "transpose", "reshape", "broadcast_in_dim", "pad", "concatenate", "iota",
    "dynamic_slice", *(name.removeprefix("stablehlo.") for name in ELEMENTWISE),
)  # fmt: skip
def _part_of_made(op: ir.Operation) -> ir.Value | None:
    """A part of what an op of the same block makes -> made of parts."""
    producer = defining(op.operands[0])
    if producer is None or producer.block != op.block:
        return None
    make = _MAKERS.get(producer.name)
    part = Part.of(op)
    if not part.can_compute or 0 in part.shape:
        return None
    if make is not None:
        return make(producer, part)
    return _of_elements(producer, part) if computes_elements(producer) else None


def _of_slice(producer: ir.Operation, part: Part) -> ir.Value:
    array = producer.operands[0]
    begin, step = ints(producer, "start_indices"), ints(producer, "strides")
    starts, sizes = list(part.starts), list(part.sizes)
    for dim, whole in enumerate(shape_of(array.type)):
        if (begin[dim], step[dim], part.shape[dim]) != (0, 1, whole):
            starts[dim] = part.plus(part.times(part.start(dim), step[dim]), begin[dim])
            sizes[dim] = (part.sizes[dim] - 1) * step[dim] + 1 if part.sizes[dim] else 0
    found = hlo.dynamic_slice(array, starts, sizes)
    return found if sizes == part.sizes else hlo.slice(found, [0] * len(sizes), sizes, step)


def _of_part(producer: ir.Operation, part: Part) -> ir.Value | None:
    array, *first = producer.operands
    outer = Part.of(producer)
    if outer.dtype != part.dtype or not outer.can_compute:
        return None
    starts = []
    for dim in range(len(first)):
        if outer.is_whole(dim):
            starts.append(part.starts[dim])
        elif part.is_whole(dim):
            starts.append(outer.start(dim))
        else:
            starts.append(part.sum(outer.start(dim), part.start(dim)))
    return hlo.dynamic_slice(array, starts, part.sizes)


def _of_reverse(producer: ir.Operation, part: Part) -> ir.Value:
    dims = ints(producer, "dimensions")
    starts = list(part.starts)
    for dim in dims:
        starts[dim] = part.minus(part.shape[dim] - part.sizes[dim], part.start(dim))
    return hlo.reverse(hlo.dynamic_slice(producer.operands[0], starts, part.sizes), dims)


def _of_transpose(producer: ir.Operation, part: Part) -> ir.Value | None:
    if not _is_read_in_parts(producer):
        return None  # rows of it lie side by side in memory
    order = ints(producer, "permutation")
    starts, sizes = list(part.starts), list(part.sizes)
    for dim, source in enumerate(order):
        starts[source], sizes[source] = part.starts[dim], part.sizes[dim]
    return hlo.transpose(hlo.dynamic_slice(producer.operands[0], starts, sizes), order)


def _of_reshape(producer: ir.Operation, part: Part) -> ir.Value | None:
    """Of what is itself made in this block: an array in memory is read in any shape."""
    array = producer.operands[0]
    maker = defining(array)
    if maker is None or maker.block != producer.block or not _can_move(maker):
        return None
    shape = shape_of(array.type)
    groups = grouped_dimensions(shape, part.shape)
    if groups is None or not all(_is_box([shape[d] for d in old], new, part) for old, new in groups):
        return None
    starts, sizes = [part.number(0)] * len(shape), list(shape)
    for old, new in groups:
        if not all(part.is_whole(dim) for dim in new):
            found = _box([shape[d] for d in old], new, part)
            for dim, start, size in zip(old, *found, strict=True):
                starts[dim], sizes[dim] = start, size
    return hlo.reshape(hlo.dynamic_slice(array, starts, sizes), part.sizes)


def _is_box(old: list[int], new: list[int], part: Part) -> bool:
    """Whether what a part takes of some dimensions is a box of those that these are in another shape:
    everything, a run of a single one, or one element."""
    if all(part.is_whole(dim) for dim in new):
        return True
    cut = max(n for n, dim in enumerate(new) if not part.is_whole(dim))
    if any(part.sizes[dim] != 1 for dim in new[:cut]):
        return False
    return sum(size != 1 for size in old) == 1 or all(part.sizes[dim] == 1 for dim in new)


def _box(old: list[int], new: list[int], part: Part) -> tuple[list[ir.Value], list[int]]:
    """Starts and sizes of it."""
    offset, stride = part.number(0), 1  # of its first element, as if there were one dimension
    for dim in reversed(new):
        if not part.is_whole(dim):
            offset = part.sum(part.times(part.start(dim), stride), offset)
        stride *= part.shape[dim]
    starts, sizes = [part.number(0)] * len(old), [1] * len(old)
    long = [n for n, size in enumerate(old) if size != 1]
    if len(long) == 1:
        starts[long[0]], sizes[long[0]] = offset, prod(part.sizes[dim] for dim in new)
        return starts, sizes
    for n in reversed(long):
        size = part.number(old[n])
        starts[n] = offset if n == long[0] else hlo.remainder(offset, size)
        offset = hlo.divide(offset, size)
    return starts, sizes


def _of_broadcast(producer: ir.Operation, part: Part) -> ir.Value:
    operand, dims = producer.operands[0], ints(producer, "broadcast_dimensions")
    shape = list(shape_of(operand.type))
    spread = [size == 1 for size in shape]
    sizes = [1 if one else part.sizes[dim] for one, dim in zip(spread, dims)]
    if sizes != shape:
        zero = part.number(0)
        starts = [zero if one else part.starts[dim] for one, dim in zip(spread, dims)]
        operand = hlo.dynamic_slice(operand, starts, sizes)
    return hlo.broadcast_in_dim(operand, part.sizes, dims)


def _of_iota(producer: ir.Operation, part: Part) -> ir.Value | None:
    dim = ir.IntegerAttr(producer.attributes["iota_dimension"]).value
    dtype = dtype_of(producer.results[0].type)
    if dtype.kind not in "iu":
        return None
    count = hlo.iota(part.sizes, dtype, dim)
    if part.is_whole(dim):
        return count
    start = part.start(dim)
    start = start if part.dtype == dtype else hlo.convert(start, dtype)
    return hlo.add(hlo.broadcast_in_dim(start, part.sizes, ()), count)


def _of_elements(producer: ir.Operation, part: Part) -> ir.Value | None:
    if not _is_read_in_parts(producer):
        return None
    operands = [_as_part(value, part) for value in producer.operands]
    of = ir.RankedTensorType.get(part.sizes, producer.results[0].type.element_type)
    return remade(producer, [of], operands).result


def _as_part(value: ir.Value, part: Part) -> ir.Value:
    """The part of an operand; a scalar may stand beside larger ones."""
    splat = splat_of(value)
    if list(shape_of(value.type)) != part.shape:
        return value
    return part.taken(value) if splat is None else hlo.full(splat, part.sizes, dtype_of(value.type))


def _of_pad(producer: ir.Operation, part: Part) -> ir.Value | None:
    operand, value = producer.operands
    shape = shape_of(operand.type)
    low, high = ints(producer, "edge_padding_low"), ints(producer, "edge_padding_high")
    if any(ints(producer, "interior_padding")) or min(*low, *high) < 0 or part.dtype.kind == "u":
        return None
    if 0 in shape:
        return None
    cut = [d for d in range(len(shape)) if low[d] + high[d] and not part.is_whole(d)]
    # What is read may lie partly in the padding: as much of the operand is taken, and padded as it is.
    # Along a dimension of which one position is read, that is either in the operand or not.
    sizes, before, after = list(part.sizes), [0] * len(shape), [0] * len(shape)
    for dim, whole in enumerate(shape):
        sizes[dim] = whole if part.is_whole(dim) else min(part.sizes[dim], whole)
        if dim not in cut or part.sizes[dim] > 1:
            before[dim], after[dim] = low[dim], high[dim] + (dim in cut) * (part.sizes[dim] - sizes[dim])
    padded = [n + a + b for n, a, b in zip(sizes, before, after)]
    if 2 * prod(padded) > prod(part.shape):
        return None
    starts, offsets = list(part.starts), [part.number(0)] * len(shape)
    inside: list[ir.Value] = []
    for dim, whole in enumerate(shape):
        if dim not in cut:
            starts[dim] = part.number(0) if part.is_whole(dim) else part.starts[dim]
            continue
        at = part.plus(part.start(dim), -low[dim])
        starts[dim] = part.clamped(at, whole - sizes[dim])
        if part.sizes[dim] == 1:
            inside.append(hlo.compare(at, part.number(0), "GE"))
            inside.append(hlo.compare(at, part.number(whole), "LT"))
        else:
            offsets[dim] = part.plus(hlo.subtract(at, starts[dim]), low[dim])
    found = hlo.dynamic_slice(operand, starts, sizes)
    if any(before) or any(after):
        found = hlo.pad(found, value, before, after, [0] * len(shape))
    if padded != part.sizes:
        found = hlo.dynamic_slice(found, offsets, part.sizes)
    for condition in inside:
        outside = hlo.broadcast_in_dim(value, part.sizes, ())
        found = hlo.select(condition, found, outside)
    return found


def _of_concatenation(producer: ir.Operation, part: Part) -> ir.Value | None:
    dim = ir.IntegerAttr(producer.attributes["dimension"]).value
    if part.is_whole(dim):
        return hlo.concatenate([_beside(part, value, dim) for value in producer.operands], dim)
    if part.dtype.kind == "u":
        return None
    lengths = [shape_of(value.type)[dim] for value in producer.operands]
    taken = [min(length, part.sizes[dim]) for length in lengths]
    if 0 in lengths or 2 * sum(taken) > part.shape[dim]:
        return None
    # Of each array what is nearest to the part: where it goes on in the next one, these lie side by side.
    at, before, done = part.start(dim), 0, 0
    pieces, offset = [], part.number(0)
    for value, length, size in zip(producer.operands, lengths, taken, strict=True):
        inside = part.plus(at, -before)
        start = part.clamped(inside, length - size)
        starts = [start if d == dim else s for d, s in enumerate(part.starts)]
        sizes = [size if d == dim else n for d, n in enumerate(part.sizes)]
        pieces.append(hlo.dynamic_slice(value, starts, sizes))
        here = part.plus(hlo.subtract(inside, start), done)
        reached = hlo.compare(inside, part.number(0), "GE")
        offset = here if not before else hlo.select(reached, here, offset)
        before, done = before + length, done + size
    if part.sizes[dim] == 1:  # then each is the part, or none of it
        found = pieces[0]
        for number, piece in enumerate(pieces[1:], 1):
            reached = hlo.compare(at, part.number(sum(lengths[:number])), "GE")
            found = hlo.select(reached, piece, found)
        return found
    starts = [offset if d == dim else part.number(0) for d in range(len(part.shape))]
    return hlo.dynamic_slice(hlo.concatenate(pieces, dim), starts, part.sizes)


def _beside(part: Part, value: ir.Value, dim: int) -> ir.Value:
    """The part of one of several arrays that it takes wholly along the dimension that they share."""
    sizes = [shape_of(value.type)[d] if d == dim else n for d, n in enumerate(part.sizes)]
    starts = [part.number(0) if d == dim else s for d, s in enumerate(part.starts)]
    return hlo.dynamic_slice(value, starts, sizes)


@needs_operand_of(*(name.removeprefix("stablehlo.") for name in ELEMENTWISE))
def _gather_of_elements(op: ir.Operation) -> ir.Value | None:
    """Of what an element-wise op makes -> that op of what is gathered."""
    producer = defining(op.operands[0])
    if producer is None or producer.block != op.block or not computes_elements(producer):
        return None
    if not _is_read_in_parts(producer):
        return None
    shape, taken = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    operands: list[ir.Value] = []
    for value in producer.operands:
        element = value.type.element_type
        if shape_of(value.type) != shape:
            operands.append(value)
        elif (splat := splat_of(value)) is not None:
            operands.append(hlo.full(splat, taken, dtype_of(value.type)))
        else:
            of = ir.RankedTensorType.get(taken, element)
            operands.append(remade(op, [of], [value, op.operands[1]]).result)
    return remade(producer, [op.results[0].type], operands).result


@needs_operand_of("slice")
def _gather_of_slice(op: ir.Operation) -> ir.Value | None:
    """Of a slice -> of the array, by indices that are moved by as much as the slice begins."""
    producer = defining(op.operands[0])
    if producer is None or producer.block != op.block or not _is_read_in_parts(producer):
        return None
    array, indices, dims = producer.operands[0], op.operands[1], IndexedDims.of(op)
    begin, steps = ints(producer, "start_indices"), ints(producer, "strides")
    shape, sizes = shape_of(producer.results[0].type), ints(op, "slice_sizes")
    dtype = dtype_of(indices.type)
    cut = [d for d, n in enumerate(shape_of(array.type)) if (begin[d], steps[d], shape[d]) != (0, 1, n)]
    moved = [d for d in cut if d not in dims.named and (begin[d] or steps[d] > 1)]
    if any(d in dims.batch or (steps[d] > 1 and sizes[d] > 1) for d in cut) or dtype.itemsize < 4:
        return None
    if max(shape_of(array.type)) > np.iinfo(dtype).max // 2 or 0 in shape_of(indices.type):
        return None

    def along_vector(numbers: list[int]) -> ir.Value:
        each = hlo.constant(np.array(numbers, dtype))
        return hlo.broadcast_in_dim(each, shape_of(indices.type), [dims.vector])

    named = [d for d in dims.named if d in cut]
    if named:
        low = along_vector([0] * len(dims.named))
        kept = hlo.clamp(low, indices, along_vector([shape[d] - sizes[d] for d in dims.named]))
        if any(steps[d] > 1 for d in named):
            kept = hlo.multiply(kept, along_vector([steps[d] for d in dims.named]))
        indices = hlo.add(kept, along_vector([begin[d] for d in dims.named]))
    for d in moved:
        one = [1 if at == dims.vector else n for at, n in enumerate(shape_of(indices.type))]
        indices = hlo.concatenate([indices, hlo.full(begin[d], one, dtype)], dims.vector)
    copy = remade(op, [op.results[0].type], [array, indices])
    replace(dims, named=[*dims.named, *moved]).put(copy)
    return copy.result


def _can_move(op: ir.Operation) -> bool:
    return op.name in _MAKERS or computes_elements(op)


def _is_read_in_parts(producer: ir.Operation) -> bool:
    """Whether all that reads an op's result takes parts of it, together less than half, in its block."""
    value = producer.results[0]
    read = 0
    for number, use in enumerate(value.uses):
        user = use.owner
        if number == _MOST_USES or user.name not in _READS or user.operation.block != producer.block:
            return False
        if use.operand_number:
            return False
        read += prod(shape_of(user.operation.results[0].type))
    return 2 * read <= prod(shape_of(value.type))


_MAKERS: dict[str, Callable[[ir.Operation, Part], ir.Value | None]] = {
    "stablehlo.slice": _of_slice,
    "stablehlo.dynamic_slice": _of_part,
    "stablehlo.reverse": _of_reverse,
    "stablehlo.transpose": _of_transpose,
    "stablehlo.reshape": _of_reshape,
    "stablehlo.broadcast_in_dim": _of_broadcast,
    "stablehlo.iota": _of_iota,
    "stablehlo.pad": _of_pad,
    "stablehlo.concatenate": _of_concatenation,
}

RULES: dict[str, Sequence[Rule]] = {
    _PART: (_part_of_made,),
    GATHER: (_gather_of_elements, _gather_of_slice),
}
