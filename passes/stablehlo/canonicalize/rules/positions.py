"""The rules of `stablehlo-simplify` that compute an element by its position instead of storing an array of
which few or other elements are read.

Rows of an identity matrix in another order are `iota == order`; a slice that begins anywhere in an array
put behind itself, as `roll` takes it, is the array read around its end. Not so in a loop for rows in the
caches: there a copy is soon made, once if the array is the same in all steps, and a slice of it is read as vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.emit.copies import remade
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import (
    computes_elements,
    defining,
    has_one_use,
    made_by,
    size_of,
    splat_of,
)
from lamina.passes.stablehlo.analysis.indexed_dims import IndexedDims
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

_MOST_OPS = 8  # code: that are computed again for each gather
_MOST_AROUND = 1 << 30  # range: twice which an i32 holds
_CACHED_BYTES = REFERENCE.l2_bytes // 4  # twice as many are in it, with what else a step reads


def _gather_of_positions(op: ir.Operation) -> ir.Value | None:
    """Whole rows, or the like, of an array of which positions decide the elements -> computed."""
    operand, indices = op.operands
    dims = IndexedDims.of(op)
    at, offsets = dims.named, dims.windows
    before, after = shape_of(operand.type), shape_of(op.result.type)
    if len(at) != 1 or at != dims.single or dims.batch:
        return None
    place = dict(zip((d for d in range(len(before)) if d != at[0]), offsets, strict=True))
    if any(before[d] != after[to] for d, to in place.items()) or dtype_of(indices.type).itemsize < 4:
        return None
    ops = _ops_on_positions(operand)
    if ops is None or not before[at[0]]:
        return None
    batch = [d for d in range(len(after)) if d not in offsets]
    sizes = shape_of(indices.type)
    if dims.vector < len(sizes):
        indices = hlo.reshape(indices, sizes[: dims.vector] + sizes[dims.vector + 1 :])
    low, high = (hlo.full(value, (), dtype_of(indices.type)) for value in (0, before[at[0]] - 1))
    picked = hlo.broadcast_in_dim(hlo.clamp(low, indices, high), after, batch)
    return _computed_at(operand, ops, after, {at[0]: picked}, place)


def _ops_on_positions(value: ir.Value) -> list[ir.Operation] | None:
    """The element-wise ops on iotas and constants that make an array, operands first; None if others do."""
    found: dict[ir.Operation, None] = {}
    iotas = 0
    work = [value]
    while work:
        op = defining(work.pop())
        if op is None or len(found) > _MOST_OPS:
            return None
        if op.name == "stablehlo.iota":
            iotas += 1
        elif splat_of(op.results[0]) is None:
            if not computes_elements(op):
                return None
            found.pop(op, None)
            found[op] = None
            work += op.operands
    return list(found)[::-1] if iotas else None


def _computed_at(
    value: ir.Value, ops: list[ir.Operation], shape: Sequence[int],
    picked: dict[int, ir.Value], place: dict[int, int],
) -> ir.Value:  # fmt: skip
    """An array made by `ops`, in another shape: its positions along a dimension are what was picked, or
    those along another dimension now."""
    now: dict[ir.Value, ir.Value] = {}

    def leaf(of: ir.Value) -> ir.Value:
        splat, dtype = splat_of(of), dtype_of(of.type)
        if not shape_of(of.type):
            return of
        if splat is not None:
            return hlo.full(splat, shape, dtype)
        op = defining(of)
        assert op is not None
        dim = ir.IntegerAttr(op.attributes["iota_dimension"]).value
        if dim not in picked:
            return hlo.iota(shape, dtype, place[dim])
        return picked[dim] if dtype_of(picked[dim].type) == dtype else hlo.convert(picked[dim], dtype)

    for op in ops:
        for operand in op.operands:
            if operand not in now:
                now[operand] = leaf(operand)
        of = ir.RankedTensorType.get(list(shape), op.results[0].type.element_type)
        now[op.results[0]] = remade(op, [of], [now[operand] for operand in op.operands]).result
    return now[value] if value in now else leaf(value)


@needs_operand_of("concatenate")
def _slice_of_repeated(op: ir.Operation) -> ir.Value | None:
    """Of an array's size, of the array behind itself -> a gather around its end."""
    twice, *starts = op.operands
    together = made_by(twice, "stablehlo.concatenate")
    if together is None or not has_one_use(twice) or len(together.operands) != 2:
        return None
    source = together.operands[0]
    dim = ir.IntegerAttr(together.attributes["dimension"]).value
    shape = shape_of(source.type)
    size = shape[dim]
    if together.operands[1] != source or shape_of(op.result.type) != shape or not 0 < size < _MOST_AROUND:
        return None
    start = starts[dim]
    if dtype_of(start.type).itemsize < 4 or _is_row_in_cache(op, dim):
        return None
    low, high = (hlo.full(value, (), dtype_of(start.type)) for value in (0, size))
    start = hlo.clamp(low, start, high)
    if dtype_of(start.type) != np.int32:
        start = hlo.convert(start, np.int32)
    place = hlo.add(hlo.iota((size,), np.int32, 0), hlo.broadcast_in_dim(start, (size,), ()))
    ends = hlo.full(size, (size,), np.int32)
    place = hlo.select(hlo.compare(place, ends, "GE"), hlo.subtract(place, ends), place)
    others = [d for d in range(len(shape)) if d != dim]
    numbers = stablehlo_ext.GatherDimensionNumbers.get(others, [dim], [], [], [dim], 1)
    attributes = {
        "dimension_numbers": numbers,
        "slice_sizes": ir.DenseI64ArrayAttr.get([1 if d == dim else n for d, n in enumerate(shape)]),
        "indices_are_sorted": ir.BoolAttr.get(False),
    }
    return ir.Operation.create(
        "stablehlo.gather", [op.result.type], [source, place], attributes
    ).result


def _is_row_in_cache(op: ir.Operation, dim: int) -> bool:
    """Whether a step of a loop reads such a slice of an array's last dimension, and the array is small."""
    of = op.result.type
    in_cache = size_of(of) * dtype_of(of).itemsize <= _CACHED_BYTES
    return in_cache and dim == of.rank - 1 and op.parent.name == "stablehlo.while"


RULES: dict[str, tuple[Rule, ...]] = {
    "stablehlo.dynamic_slice": (_slice_of_repeated,),
    "stablehlo.gather": (_gather_of_positions,),
}
