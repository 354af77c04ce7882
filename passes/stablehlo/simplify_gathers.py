"""The rules of `stablehlo-simplify` on gathers: of what a gather took along the same dimension, and of one place.

`x[i][j]` is `x[i[j]]`: the rows of x are copied once, not twice. Indices out of bounds are clamped as before,
those of j to the ends of i. Where all indices are the same number, as a search begins in the middle, what is there
is spread: neither the indices nor the copies have a place in memory.
"""

from __future__ import annotations

from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir
from lamina.passes.copies import remade
from lamina.passes.stablehlo.facts import has_one_use, ints, made_by, splat_of
from lamina.passes.stablehlo.indexed_dims import GATHER, IndexedDims
from lamina.passes.stablehlo.rewriting import Rule, needs_operand_of

_TIMES_TAKEN = 8  # so many rows for each of the first are still found fast where they lie apart


@needs_operand_of("gather")
def _of_taken(op: ir.Operation) -> ir.Value | None:
    """Of what a gather took along a dimension that stays where it is -> of its array."""
    first = made_by(op.operands[0], GATHER)
    if first is None or not has_one_use(first.results[0]):
        return None
    along = _taken_along(op)
    array, before = first.operands
    if along is None or along != _taken_along(first) or len(shape_of(before.type)) != 2:
        return None
    length, indices = shape_of(before.type)[0], shape_of(op.operands[1].type)
    shape = shape_of(array.type)
    window = prod(size for d, size in enumerate(shape) if d != along)
    if prod(indices) > length * (_TIMES_TAKEN if window > 1 else 1) or 0 in (*shape, length):
        return None
    plain = hlo.reshape(before, [length])
    of = ir.RankedTensorType.get(indices[:-1], plain.type.element_type)
    at = remade(op, [of], [plain, op.operands[1]], slice_sizes=ir.DenseI64ArrayAttr.get([1]))
    IndexedDims([], [0], [], [], [0], len(indices) - 1).put(at)
    copy = remade(op, [op.results[0].type], [array, hlo.reshape(at.result, indices)])
    copy.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    return copy.result


def _of_one_place(op: ir.Operation) -> ir.Value | None:
    """Whose indices are all the same number -> a slice, spread."""
    array, indices = op.operands
    at, dims = splat_of(indices), IndexedDims.of(op)
    shape, sizes = shape_of(array.type), ints(op, "slice_sizes")
    if at is None or dims.batch or not array.type.has_static_shape or 0 in shape_of(op.results[0].type):
        return None
    first = [
        min(max(int(at), 0), size - taken) if d in dims.named else 0
        for d, (size, taken) in enumerate(zip(shape, sizes, strict=True))
    ]
    window = hlo.slice(array, first, [start + taken for start, taken in zip(first, sizes, strict=True)])
    kept = [size for d, size in enumerate(sizes) if d not in dims.single]
    return hlo.broadcast_in_dim(hlo.reshape(window, kept), shape_of(op.results[0].type), dims.windows)


def _taken_along(gather: ir.Operation) -> int | None:
    """The dimension of which a gather takes single elements with all of the others, where the indices are
    vectors of one and the dimensions of the result that they are along stand in its place."""
    array, indices = (shape_of(of.type) for of in gather.operands)
    dims = IndexedDims.of(gather)
    if dims.batch or len(dims.named) != 1 or dims.single != dims.named or dims.vector != len(indices) - 1:
        return None
    (along,) = dims.named
    taken = len(indices) - 1
    whole = [size if d != along else 1 for d, size in enumerate(array)]
    kept = [d for d in range(len(array) - 1 + taken) if not along <= d < along + taken]
    if ints(gather, "slice_sizes") != whole or dims.windows != kept:
        return None
    return along


RULES: dict[str, tuple[Rule, ...]] = {GATHER: (_of_taken, _of_one_place)}
