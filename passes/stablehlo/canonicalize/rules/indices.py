"""The rules of `stablehlo-simplify` on gathers and scatters by positions that count.

`x[arange(n), labels]` takes one element of each row, by indices that are pairs. Here the first of
each pair goes: rows that are numbered in order are a batch dimension, as `take_along_axis` has it.
Both then pick elements in an array of as many dimensions as they tell apart.
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import CONSTANT, defining, ints, made_by
from lamina.passes.stablehlo.analysis.indexed_dims import GATHER, SCATTER, IndexedDims
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

_MOST_COUNTED = 1 << 20  # search: elements of a constant that are looked at


@needs_operand_of("concatenate")
def _numbered_rows(op: ir.Operation) -> ir.Value | None:
    """Indices that count a dimension of theirs -> a batch dimension."""
    if op.name == SCATTER and len(op.operands) != 3:
        return None
    found = _without_numbered(op, IndexedDims.of(op))
    if found is None:
        return None
    copy = op.clone().operation
    copy.operands[1], dims = found
    dims.put(copy)
    copy.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)  # said of the pairs
    return copy.results[0]


def _without_numbered(op: ir.Operation, dims: IndexedDims) -> tuple[ir.Value, IndexedDims] | None:
    """The indices without the parts that count one of their dimensions, and what they are about then."""
    array, indices = shape_of(op.operands[0].type), shape_of(op.operands[1].type)
    together = made_by(op.operands[1], "stablehlo.concatenate")
    if together is None or ir.IntegerAttr(together.attributes["dimension"]).value != dims.vector:
        return None
    kept: list[ir.Value] = []
    kept_named: list[int] = []
    pairs = list(zip(dims.batch, dims.batch_of_indices, strict=True))
    at = 0
    for part in together.operands:
        names = dims.named[at : at + part.type.shape[dims.vector]]
        at += len(names)
        counted = _counted_dimension(part) if len(names) == 1 else None
        if (
            counted is None
            or counted == dims.vector
            or names[0] not in dims.single
            or array[names[0]] != indices[counted]
            or any(counted == other for _, other in pairs)
        ):
            kept.append(part)
            kept_named += names
        else:
            pairs.append((names[0], counted))
    if not kept or len(kept) == len(together.operands):
        return None
    pairs.sort()
    left = [d for d in dims.single if all(d != dim for dim, _ in pairs)]
    joined = kept[0] if len(kept) == 1 else hlo.concatenate(kept, dims.vector)
    batch, batch_of_indices = ([pair[n] for pair in pairs] for n in (0, 1))
    return joined, IndexedDims(dims.windows, left, batch, batch_of_indices, kept_named, dims.vector)


def _counted_dimension(value: ir.Value) -> int | None:
    """The dimension whose positions are the elements of an array; None if none's are."""
    op, shape = defining(value), shape_of(value.type)
    if op is None or dtype_of(value.type).kind not in "iu":
        return None
    if op.name == "stablehlo.iota":
        counted = ir.IntegerAttr(op.attributes["iota_dimension"]).value
        fits = shape[counted] <= np.iinfo(dtype_of(value.type)).max
        return counted if fits else None
    if op.name == "stablehlo.broadcast_in_dim":
        inner = _counted_dimension(op.operands[0])
        return None if inner is None else ints(op, "broadcast_dimensions")[inner]
    long = [d for d, size in enumerate(shape) if size != 1]
    if len(long) != 1 or shape[long[0]] > _MOST_COUNTED:
        return None
    if op.name == "stablehlo.reshape":
        return None if _counted_dimension(op.operands[0]) is None else long[0]
    if op.name == CONSTANT and np.array_equal(array_of(op).ravel(), np.arange(shape[long[0]])):
        return long[0]
    return None


@needs_operand_of("reshape")
def _gather_by_reshaped(op: ir.Operation) -> ir.Value | None:
    """Of single elements by indices with a dimension of one -> without it, then reshaped."""
    numbers = stablehlo_ext.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    shape, vector = shape_of(op.operands[1].type), numbers.index_vector_dim
    if vector != len(shape) - 1 or list(numbers.offset_dims) or len(shape) < 3:
        return None
    batch = list(numbers.start_indices_batching_dims)
    gone = [d for d in range(vector) if shape[d] == 1 and d not in batch]
    if not gone or made_by(op.operands[1], "stablehlo.reshape") is None:
        return None
    kept = [d for d in range(len(shape)) if d not in gone]
    new = stablehlo_ext.GatherDimensionNumbers.get(
        [], list(numbers.collapsed_slice_dims), list(numbers.operand_batching_dims),
        [kept.index(d) for d in batch], list(numbers.start_index_map), kept.index(vector),
    )  # fmt: skip
    indices = hlo.reshape(op.operands[1], [shape[d] for d in kept])
    of = ir.RankedTensorType.get([shape[d] for d in kept[:-1]], op.results[0].type.element_type)
    picked = remade(op, [of], [op.operands[0], indices], dimension_numbers=new)
    return hlo.reshape(picked.result, shape_of(op.results[0].type))


RULES: dict[str, tuple[Rule, ...]] = {
    GATHER: (_numbered_rows, _gather_by_reshaped),
    SCATTER: (_numbered_rows,),
}
