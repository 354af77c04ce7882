"""Rules of `stablehlo-simplify` on updates: of one place, of a view, of a part of an array.

    %0 = stablehlo.scatter(%x, %one_index, %row)         %0 = stablehlo.dynamic_slice %x, %i, %zero
                                                    ->   %1 = stablehlo.select %inside, %row, %0
                                                         %2 = stablehlo.dynamic_update_slice %x, %1, %i, %zero

A scatter by one index changes one window, or nothing where that lies partly outside; as an update of a slice it
fuses with what makes the window, and is done in place as others are. An update of a view, viewed as the array was
before, is an update of the array; so is one of a slice that is put back where it was. The mirror image of
`reads.py`: a step of a loop writes what changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import (
    ELEMENTWISE,
    constant_starts,
    has_one_use,
    ints,
    made_by,
    splat_of,
)
from lamina.passes.stablehlo.analysis.indexed_dims import SCATTER, IndexedDims
from lamina.passes.stablehlo.analysis.part import Part
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, builds_chains, needs_operand_of

_UPDATE = "stablehlo.dynamic_update_slice"


@builds_chains
def _scatter_of_one(op: ir.Operation) -> ir.Value | None:
    """By one index -> an update of a slice, by what is there already where the index is outside."""
    if len(op.operands) != 3:
        return None
    array, indices, updates = op.operands
    dims = IndexedDims.of(op)
    shape, window = list(shape_of(array.type)), list(shape_of(updates.type))
    if dims.batch or 0 in (*shape, *window) or not array.type.has_static_shape:
        return None
    if prod(window) != prod(window[dim] for dim in dims.windows) or not _combines_in_one_op(op):
        return None
    taken = iter(dims.windows)
    sizes = [1 if dim in dims.single else window[next(taken)] for dim in range(len(shape))]
    dtype = dtype_of(indices.type)
    if dtype.kind not in "iu" or any(size > whole for size, whole in zip(sizes, shape)):
        return None
    if dtype.itemsize < 4:
        dtype = np.dtype(np.int32)
        indices = hlo.convert(indices, dtype)
    count = len(dims.named)
    flat = hlo.reshape(indices, [count])
    starts = [hlo.full(0, (), dtype)] * len(shape)
    inside: list[ir.Value] = []
    for n, dim in enumerate(dims.named):
        starts[dim] = hlo.reshape(hlo.slice(flat, [n], [n + 1], [1]), ())
        last = min(shape[dim] - sizes[dim], np.iinfo(dtype).max)
        inside.append(hlo.compare(starts[dim], hlo.full(last, (), dtype), "LE"))
        if dtype.kind == "i":
            inside.append(hlo.compare(starts[dim], hlo.full(0, (), dtype), "GE"))
    new = hlo.reshape(updates, sizes)
    old = hlo.dynamic_slice(array, starts, sizes)
    combined = _combined(op, old, new)
    if inside:
        combined = hlo.select(reduce(hlo.and_, inside), combined, old)
    return hlo.dynamic_update_slice(array, combined, starts)


def _body(op: ir.Operation) -> tuple[ir.Block, list[ir.Operation]]:
    block = op.regions[0].blocks[0]
    return block, [inner.operation for inner in block.operations]


def _combines_in_one_op(op: ir.Operation) -> bool:
    """Whether a scatter replaces elements, or combines two by one element-wise op."""
    block, ops = _body(op)
    if len(ops) == 1:
        return ops[0].operands[0] == block.arguments[1]
    if len(ops) != 2 or ops[0].name not in ELEMENTWISE or ops[1].operands[0] != ops[0].results[0]:
        return False
    return all(value in list(block.arguments) for value in ops[0].operands)


def _combined(op: ir.Operation, old: ir.Value, new: ir.Value) -> ir.Value:
    block, ops = _body(op)
    if len(ops) == 1:
        return new
    by = dict(zip(block.arguments, (old, new), strict=True))
    return remade(ops[0], [old.type], [by[value] for value in ops[0].operands]).result


@needs_operand_of("dynamic_update_slice")
def _update_of_slice(op: ir.Operation) -> ir.Value | None:
    """Of an array by an updated slice of it -> of the array by what the slice was updated by."""
    array, changed, *starts = op.operands
    inner = made_by(changed, _UPDATE)
    if inner is None or not has_one_use(changed):
        return None
    source, new, *inner_starts = inner.operands
    cut = made_by(source, "stablehlo.slice")
    if cut is None or cut.operands[0] != array or max(ints(cut, "strides"), default=1) > 1:
        return None
    begin = constant_starts(starts, shape_of(array.type), shape_of(changed.type))
    part = Part(inner_starts, list(shape_of(new.type)), list(shape_of(source.type)))
    if begin is None or begin != ints(cut, "start_indices") or not part.can_compute:
        return None
    at = [
        part.starts[dim] if size == whole else part.plus(part.start(dim), begin[dim])
        for dim, (size, whole) in enumerate(zip(part.shape, shape_of(array.type)))
    ]
    return hlo.dynamic_update_slice(array, new, at)


@needs_operand_of("dynamic_update_slice")
def _transposed_update(op: ir.Operation) -> ir.Value | None:
    """Of a transposed array, transposed back -> of the array."""
    update = made_by(op.operands[0], _UPDATE)
    if update is None or not has_one_use(update.results[0]):
        return None
    view, new, *starts = update.operands
    source = made_by(view, "stablehlo.transpose")
    order = ints(op, "permutation")
    if source is None or [ints(source, "permutation")[dim] for dim in order] != list(range(len(order))):
        return None
    return hlo.dynamic_update_slice(
        source.operands[0], hlo.transpose(new, order), [starts[dim] for dim in order]
    )


@needs_operand_of("dynamic_update_slice")
def _reversed_update(op: ir.Operation) -> ir.Value | None:
    """Of a reversed array, reversed back -> of the array."""
    update = made_by(op.operands[0], _UPDATE)
    if update is None or not has_one_use(update.results[0]):
        return None
    view, new, *starts = update.operands
    source = made_by(view, "stablehlo.reverse")
    dims = ints(op, "dimensions")
    if source is None or sorted(ints(source, "dimensions")) != sorted(dims):
        return None
    part = Part(starts, list(shape_of(new.type)), list(shape_of(view.type)))
    if not part.can_compute:
        return None
    for dim in dims:
        starts[dim] = part.minus(part.shape[dim] - part.sizes[dim], part.start(dim))
    return hlo.dynamic_update_slice(source.operands[0], hlo.reverse(new, dims), starts)


@needs_operand_of("dynamic_update_slice")
def _converted_update(op: ir.Operation) -> ir.Value | None:
    """Of an array in a dtype that holds all values of its own, converted back -> of the array."""
    update = made_by(op.operands[0], _UPDATE)
    if update is None or not has_one_use(update.results[0]):
        return None
    view, new, *starts = update.operands
    source = made_by(view, "stablehlo.convert")
    if source is None or source.operands[0].type != op.results[0].type:
        return None
    narrow, wide = dtype_of(op.results[0].type), dtype_of(view.type)
    if narrow == wide or not np.can_cast(narrow, wide) or splat_of(view) is not None:
        return None
    return hlo.dynamic_update_slice(source.operands[0], hlo.convert(new, narrow), starts)


RULES: dict[str, Sequence[Rule]] = {
    SCATTER: (_scatter_of_one,),
    _UPDATE: (_update_of_slice,),
    "stablehlo.transpose": (_transposed_update,),
    "stablehlo.reverse": (_reversed_update,),
    "stablehlo.convert": (_converted_update,),
}
