"""Compute what concatenations and pads are made of, and what follows them, for each part alone.

    %p = stablehlo.pad %x, %z, low = [2]            %e = tensor.empty()
    %r = stablehlo.multiply %p, %y                  %0 = tensor.insert_slice %z * %y[0:2] into %e[0]
    return %r                                  ->   %1 = tensor.insert_slice %x * %y[2:n] into %0[2]
                                                    return %1

The result is cut at the boundaries of all concatenations and pads that its element-wise ops read; each box
between the cuts is computed from slices and written where it belongs: a loop over vectors, where one
loop over all would ask for each element which part it is in. Where a pad is between elements, every second
(third ...) element is a part. A result that overwrites an argument is written into that one, a part of which
is read just before it. Leaves alone arrays of very many boxes, negative pads, and what a value is used for
that other ops read at other places.

example: test/passes/stablehlo/piecewise/compute_parts.mlir
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import updated_arguments
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir, tensor
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.facts import defining, ints, is_pure, is_unused
from lamina.passes.stablehlo.fusion.fuse_ops import is_elementwise
from lamina.passes.stablehlo.piecewise.boundaries import (
    MOST_BOXES,
    Boundaries,
    Cuts,
    Rotation,
    cuts_of,
    joined,
    moved,
    parts,
    rotation_of,
)
from lamina.passes.stablehlo.piecewise.parts_of_values import Box, Parts, Range, range_of, sizes_of

_LONG = 32  # shape: elements of a row, beside which finding it is little


class ComputeParts(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            if function.operation.name == "func.func" and function.regions[0].blocks:
                self._rewrite(function.operation)

    def _rewrite(self, function: ir.Operation) -> None:
        block = function.regions[0].blocks[0]
        ops = [inner.operation for inner in block.operations]
        terminator = ops[-1]
        updated = updated_arguments(function) if len(terminator.operands) == 1 else {}
        with ir.InsertionPoint(terminator), terminator.location:
            made = _Parts(block.arguments[updated[0]] if updated else None)
            for number, value in enumerate(terminator.operands):
                whole = made.whole(value)
                if whole != value:
                    terminator.operands[number] = whole
        if made.count:
            self.count("parts", made.count)
            for op in reversed(ops[:-1]):
                if is_unused(op) and is_pure(op):
                    op.erase()


class _Parts(Parts):
    """Those of a function, which are put together where a value is needed whole."""

    def __init__(self, updated: ir.Value | None) -> None:
        """`updated`: the argument that the function's result overwrites."""
        super().__init__()
        self.count = 0
        self._updated = updated
        self._over: ir.Value | None = None
        self._wholes: dict[ir.Value, ir.Value] = {}

    def is_made_again(self, value: ir.Value) -> bool:
        """Whether it may be a part of the argument that is overwritten, which is read just before that."""
        op = defining(value) if self._over is not None else None
        return op is not None and (op.name == "stablehlo.slice" or is_elementwise(op))

    def made_by(self, op: ir.Operation, box: Box) -> ir.Value | None:
        """As of any parts; of rotated rows, those that each row of the box is made of."""
        rotation = _rotated_rows(op, self._over)
        if rotation is None or box[rotation.dim] != (0, op.results[0].type.shape[rotation.dim], 1):
            return super().made_by(op, box)
        dim, sizes = rotation.dim, sizes_of(box)
        rows = (np.arange(sizes[dim], dtype=np.int32) + rotation.begin) % sizes[dim]
        return hlo.gather(
            self.part(rotation.operand, box),
            hlo.constant(rows[:, None]),
            offset_dims=[n for n in range(len(sizes)) if n != dim],
            collapsed_slice_dims=[dim],
            start_index_map=[dim],
            index_vector_dim=1,
            slice_sizes=[1 if n == dim else size for n, size in enumerate(sizes)],
        )

    def whole(self, value: ir.Value) -> ir.Value:
        """A value put together from its parts; itself if it has no boundaries."""
        known = self._wholes.get(value)
        if known is None:
            known = self._wholes[value] = self._put_together(value)
        return known

    def _put_together(self, value: ir.Value) -> ir.Value:
        cuts = _all_cuts(value, self._updated)
        if not cuts:
            return value
        shape = shape_of(value.type)
        updated, self._updated = self._updated, None
        self._over = updated
        result = updated or tensor.EmptyOp(list(shape), value.type.element_type).result
        for box in _boxes(shape, cuts):
            (offsets, _, steps), sizes = zip(*box, strict=True), sizes_of(box)
            if updated is not None:  # still the old elements, as no other part has overwritten them
                of = ir.RankedTensorType.get(sizes, value.type.element_type)
                self._made[updated, box] = tensor.ExtractSliceOp(
                    of, result, [], [], [], offsets, sizes, steps
                ).result
            part = self.part(value, box)
            result = tensor.InsertSliceOp(part, result, [], [], [], offsets, sizes, steps).result
            self.count += 1
        return result


def _all_cuts(value: ir.Value, updated: ir.Value | None) -> Cuts:
    """Where the element-wise ops that make a value, which overwrites `updated`, have boundaries, and what is put
    together of what they read; without those of rotated rows, where there are others."""
    cuts: Cuts = {}
    of_others: set[int] = set()  # dimensions with boundaries that are not of rotated rows
    if not isinstance(value.type, ir.RankedTensorType) or 0 in value.type.shape:
        return cuts
    seen: set[tuple[ir.Value, tuple[int, ...]]] = set()
    work = [(value, (0,) * value.type.rank)]
    while work:
        at, start = work.pop()
        op = defining(at)
        if op is None or (at, start) in seen:
            continue
        seen.add((at, start))
        if is_elementwise(op):
            shape = at.type.shape
            work += [(operand, start) for operand in op.operands if operand.type.shape == shape]
            continue
        of_op = cuts_of(op)
        inside = of_op if of_op is None or not any(start) else moved(of_op, start)
        together = cuts if inside is None else joined(cuts, inside)
        if inside is not None and parts(together) <= MOST_BOXES:
            cuts = together
            if _rotated_rows(op, updated) is None:
                of_others.update(inside)
            work += [(operand, begin) for operand, begin in _starts(op, start)]
    if of_others:
        return {dim: boundaries for dim, boundaries in cuts.items() if dim in of_others}
    return cuts


def _rotated_rows(op: ir.Operation, updated: ir.Value | None) -> Rotation | None:
    """What an op rotates, if that is an argument along another dimension than the last, whose rows are long; not one
    that is overwritten meanwhile."""
    rotation = rotation_of(op)
    if rotation is None or defining(rotation.operand) is not None:
        return None
    if updated is not None and rotation.operand == updated:
        return None
    shape = shape_of(rotation.operand.type)
    return rotation if rotation.dim < len(shape) - 1 and shape[-1] >= _LONG else None


def _starts(op: ir.Operation, start: tuple[int, ...]) -> Iterator[tuple[ir.Value, tuple[int, ...]]]:
    """Where what an op puts together begins, if that begins at `start`."""
    if op.name == "stablehlo.pad":
        if not any(ints(op, "interior_padding")):
            lows = ints(op, "edge_padding_low")
            yield op.operands[0], tuple(at + low for at, low in zip(start, lows, strict=True))
        return
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    for operand in op.operands:
        yield operand, start
        start = (*start[:dim], start[dim] + operand.type.shape[dim], *start[dim + 1 :])


def _boxes(shape: Sequence[int], cuts: Cuts) -> Iterator[Box]:
    ranges = [list(_ranges(size, cuts.get(dim, Boundaries(frozenset())))) for dim, size in enumerate(shape)]
    return itertools.product(*ranges)


def _ranges(size: int, boundaries: Boundaries) -> Iterator[Range]:
    for low, high in itertools.pairwise([0, *sorted(boundaries.at), size]):
        if boundaries.step == 1:
            yield low, high, 1
            continue
        rows, rest = divmod(high - low, boundaries.step)
        if rows:
            yield from (range_of(low + column, boundaries.step, rows) for column in range(boundaries.step))
        yield from (range_of(at, 1, 1) for at in range(high - rest, high))


