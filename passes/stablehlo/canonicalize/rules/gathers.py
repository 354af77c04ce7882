"""The rules of `stablehlo-simplify` on gathers: of what a gather took along the same dimension, and of one place.

`x[i][j]` is `x[i[j]]`: the rows of x are copied once, not twice. Indices out of bounds are clamped as before,
those of j to the ends of i. Where all indices are the same number, as a search begins in the middle, what is there
is spread: neither the indices nor the copies have a place in memory. Dimensions of 1 and transposes around a gather,
which JAX's batched indexing has, are the gather's own choice of dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import has_one_use, ints, made_by, splat_of
from lamina.passes.stablehlo.analysis.indexed_dims import GATHER, IndexedDims
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

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


@needs_operand_of("reshape")
def _of_reshaped(op: ir.Operation) -> ir.Value | None:
    """Of an array with dimensions of 1 put in -> of the array, where indices name none of them."""
    reshape = made_by(op.operands[0], "stablehlo.reshape")
    if reshape is None:
        return None
    source, dims = reshape.operands[0], IndexedDims.of(op)
    before, after = shape_of(source.type), shape_of(op.operands[0].type)
    old, new = ([d for d, size in enumerate(of) if size != 1] for of in (before, after))
    place = dict(zip(new, old, strict=False))
    about = {*dims.single, *dims.batch, *dims.named}
    if [before[d] for d in old] != [after[d] for d in new] or 0 in before or len(before) > len(after):
        return None
    if not about <= place.keys():
        return None
    sizes = ints(op, "slice_sizes")
    windows = [d for d in range(len(after)) if d not in dims.single and d not in dims.batch]
    at = dict(zip(dims.windows, windows, strict=True))  # of the result's dimensions, the array's
    kept = {place[d] for d in (*dims.single, *dims.batch)}
    waiting = [d for d in range(len(before)) if d not in kept]  # in the order in which they must come
    shape, found = [], []
    for d, size in enumerate(shape_of(op.results[0].type)):
        if d not in at:
            shape.append(size)
            continue
        if at[d] not in place:
            continue  # it goes
        while waiting:
            window = waiting.pop(0)
            found.append(len(shape))
            shape.append(sizes[at[d]] if window == place[at[d]] else 1)
            if window == place[at[d]]:
                break
    found += range(len(shape), len(shape) + len(waiting))
    shape += [1] * len(waiting)
    old_sizes = [1] * len(before)
    for d, source_d in place.items():
        old_sizes[source_d] = sizes[d]
    moved = IndexedDims(
        found, sorted(place[d] for d in dims.single), [place[d] for d in dims.batch],
        dims.batch_of_indices, [place[d] for d in dims.named], dims.vector,
    )  # fmt: skip
    return hlo.reshape(_taken(op, source, shape, old_sizes, moved), shape_of(op.results[0].type))


@needs_operand_of("transpose")
def _of_transposed(op: ir.Operation) -> ir.Value | None:
    """Of a transposed array whose windows keep their order -> of the array."""
    transpose = made_by(op.operands[0], "stablehlo.transpose")
    if transpose is None or not has_one_use(transpose.result):
        return None
    permutation, dims = ints(transpose, "permutation"), IndexedDims.of(op)
    windows = [d for n, d in enumerate(permutation) if n not in dims.single and n not in dims.batch]
    batch = [permutation[d] for d in dims.batch]
    if windows != sorted(windows) or batch != sorted(batch):
        return None
    sizes = ints(op, "slice_sizes")
    moved = IndexedDims(
        dims.windows, sorted(permutation[d] for d in dims.single), batch,
        dims.batch_of_indices, [permutation[d] for d in dims.named], dims.vector,
    )  # fmt: skip
    old_sizes = [sizes[permutation.index(d)] for d in range(len(permutation))]
    return _taken(op, transpose.operands[0], shape_of(op.results[0].type), old_sizes, moved)


@needs_operand_of("gather")
def _transposed(op: ir.Operation) -> ir.Value | None:
    """A transpose that moves windows and indices past each other -> a gather that puts them there."""
    gather = made_by(op.operands[0], GATHER)
    if gather is None or not has_one_use(gather.results[0]):
        return None
    permutation, dims = ints(op, "permutation"), IndexedDims.of(gather)
    windows = [n for n, d in enumerate(permutation) if d in dims.windows]
    others = [d for d in permutation if d not in dims.windows]
    if [permutation[n] for n in windows] != dims.windows or others != sorted(others):
        return None
    moved = IndexedDims(
        windows, dims.single, dims.batch, dims.batch_of_indices, dims.named, dims.vector
    )
    shape = shape_of(op.result.type)
    return _taken(gather, gather.operands[0], shape, ints(gather, "slice_sizes"), moved)


def _taken(
    op: ir.Operation, array: ir.Value, shape: Sequence[int], sizes: Sequence[int], dims: IndexedDims
) -> ir.Value:
    """What a gather takes of another array, in windows of these sizes."""
    of = ir.RankedTensorType.get(shape, array.type.element_type)
    copy = remade(op, [of], [array, op.operands[1]], slice_sizes=ir.DenseI64ArrayAttr.get(sizes))
    dims.put(copy)
    return copy.result


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


RULES: dict[str, tuple[Rule, ...]] = {
    GATHER: (_of_taken, _of_one_place, _of_reshaped, _of_transposed),
    "stablehlo.transpose": (_transposed,),
}
