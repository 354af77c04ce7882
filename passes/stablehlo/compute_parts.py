"""Compute what concatenations and pads are made of, and what follows them, for each part alone.

    %p = stablehlo.pad %x, %z, low = [2]            %e = tensor.empty()
    %r = stablehlo.multiply %p, %y                  %0 = tensor.insert_slice %z * %y[0:2] into %e[0]
    return %r                                  ->   %1 = tensor.insert_slice %x * %y[2:n] into %0[2]
                                                    return %1

The result is cut at the seams of all concatenations and pads that its element-wise ops read; each box
between the cuts is computed from slices and written where it belongs: a loop over vectors, where one
loop over all would ask for each element which part it is in. Where a pad is between elements, every second
(third ...) element is a part. A result that overwrites an argument is written into that one, a part of which
is read just before it. Leaves alone negative pads, and what a value is used for that other ops read at other
places.

example: test/passes/stablehlo/compute_parts.mlir
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import updated_arguments
from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir, tensor
from lamina.passes.base import Pass
from lamina.passes.copies import remade
from lamina.passes.stablehlo.facts import CONSTANT, defining, ints, is_pure, is_unused
from lamina.passes.stablehlo.fuse_ops import is_elementwise
from lamina.passes.stablehlo.seams import Cuts, Seams, cuts_of, joined

Range = tuple[int, int, int]
"""The first index, the end and the step; the end is that of the last element."""
Box = tuple[Range, ...]
"""A part of an array, in each dimension."""


@dataclass(frozen=True)
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
            parts = _Parts(block.arguments[updated[0]] if updated else None)
            for number, value in enumerate(terminator.operands):
                whole = parts.whole(value)
                if whole != value:
                    terminator.operands[number] = whole
        if parts.count:
            self.count("parts", parts.count)
            for op in reversed(ops[:-1]):
                if is_unused(op) and is_pure(op):
                    op.erase()


class _Parts:
    """Values of a function and parts of them, each made once, at the ambient insertion point."""

    def __init__(self, updated: ir.Value | None) -> None:
        """`updated`: the argument that the function's result overwrites."""
        self.count = 0
        self._updated = updated
        self._wholes: dict[ir.Value, ir.Value] = {}
        self._made: dict[tuple[ir.Value, Box], ir.Value] = {}

    def whole(self, value: ir.Value) -> ir.Value:
        """A value put together from its parts; itself if it has no seams."""
        known = self._wholes.get(value)
        if known is None:
            known = self._wholes[value] = self._put_together(value)
        return known

    def _put_together(self, value: ir.Value) -> ir.Value:
        cuts = _all_cuts(value)
        if not cuts:
            return value
        shape = shape_of(value.type)
        updated, self._updated = self._updated, None
        result = updated or tensor.EmptyOp(list(shape), value.type.element_type).result
        for box in _boxes(shape, cuts):
            (offsets, _, steps), sizes = zip(*box, strict=True), _sizes(box)
            if updated is not None:  # still the old elements, as no other part has overwritten them
                of = ir.RankedTensorType.get(sizes, value.type.element_type)
                self._made[updated, box] = tensor.ExtractSliceOp(
                    of, result, [], [], [], offsets, sizes, steps
                ).result
            part = self._part(value, box)
            result = tensor.InsertSliceOp(part, result, [], [], [], offsets, sizes, steps).result
            self.count += 1
        return result

    def _part(self, value: ir.Value, box: Box) -> ir.Value:
        known = self._made.get((value, box))
        if known is None:
            if _sizes(box) == list(value.type.shape):
                known = self.whole(value)
            else:
                known = self._of_op(value, box)
            self._made[value, box] = known
        return known

    def _of_op(self, value: ir.Value, box: Box) -> ir.Value:
        op = defining(value)
        made = None if op is None else self._made_by(op, box)
        if made is not None:
            return made
        return hlo.slice(self.whole(value), *zip(*box, strict=True))

    def _made_by(self, op: ir.Operation, box: Box) -> ir.Value | None:
        """A part of an op's result; None if there is no better way than to cut it out."""
        if is_elementwise(op):
            return self._elementwise(op, box)
        rule = _RULES.get(op.name)
        return None if rule is None else rule(self, op, box)

    def _elementwise(self, op: ir.Operation, box: Box) -> ir.Value:
        of = op.results[0].type
        operands = [
            self._part(operand, box) if list(operand.type.shape) == list(of.shape) else operand
            for operand in op.operands
        ]
        return remade(op, [ir.RankedTensorType.get(_sizes(box), of.element_type)], operands).result

    def _constant(self, op: ir.Operation, box: Box) -> ir.Value:
        array = array_of(op)
        if is_splat(op):
            return hlo.full(array[(0,) * array.ndim], _sizes(box), array.dtype)
        return hlo.constant(array[tuple(slice(*range_) for range_ in box)])

    def _broadcast_in_dim(self, op: ir.Operation, box: Box) -> ir.Value:
        dims = ints(op, "broadcast_dimensions")
        operand = op.operands[0]
        inner = tuple(
            (0, 1, 1) if size == 1 else box[dim]
            for size, dim in zip(operand.type.shape, dims, strict=True)
        )
        return hlo.broadcast_in_dim(self._part(operand, inner), _sizes(box), dims)

    def _iota(self, op: ir.Operation, box: Box) -> ir.Value:
        of, dim = op.results[0].type, ir.IntegerAttr(op.attributes["iota_dimension"]).value
        dtype, sizes, (start, end, step) = dtype_of(of), _sizes(box), box[dim]
        if start == 0 and step == 1:
            return hlo.iota(sizes, dtype, dim)
        # Counted in integers: floats would be rounded twice.
        counted = np.dtype(np.int64 if end > 2**31 else np.int32)
        index = hlo.iota(sizes, counted, dim)
        if step != 1:
            index = hlo.multiply(index, hlo.full(step, sizes, counted))
        index = hlo.add(index, hlo.full(start, sizes, counted))
        return index if dtype == counted else hlo.convert(index, dtype)

    def _slice(self, op: ir.Operation, box: Box) -> ir.Value:
        starts, strides = ints(op, "start_indices"), ints(op, "strides")
        inner = tuple(
            _range(start + low * stride, step * stride, len(range(low, high, step)))
            for start, stride, (low, high, step) in zip(starts, strides, box, strict=True)
        )
        return self._part(op.operands[0], inner)

    def _transpose(self, op: ir.Operation, box: Box) -> ir.Value:
        permutation = ints(op, "permutation")
        inner = tuple(box[permutation.index(dim)] for dim in range(len(permutation)))
        return hlo.transpose(self._part(op.operands[0], inner), permutation)

    def _reverse(self, op: ir.Operation, box: Box) -> ir.Value:
        dims, sizes = ints(op, "dimensions"), op.results[0].type.shape
        inner = tuple(
            (size - high, size - low, step) if dim in dims else (low, high, step)
            for dim, (size, (low, high, step)) in enumerate(zip(sizes, box, strict=True))
        )
        return hlo.reverse(self._part(op.operands[0], inner), dims)

    def _concatenate(self, op: ir.Operation, box: Box) -> ir.Value | None:
        dim = ir.IntegerAttr(op.attributes["dimension"]).value
        start = 0
        for operand in op.operands:
            end = start + operand.type.shape[dim]
            if start <= box[dim][0] and box[dim][1] <= end:
                return self._part(operand, _moved(box, {dim: start}))
            start = end
        return None

    def _pad(self, op: ir.Operation, box: Box) -> ir.Value | None:
        if cuts_of(op) is None:
            return None
        operand, value = op.operands
        lows, gaps = ints(op, "edge_padding_low"), ints(op, "interior_padding")
        inner: list[Range] = []
        for range_, low, gap, size in zip(box, lows, gaps, operand.type.shape, strict=True):
            found = _before_pad(range_, low, gap + 1)
            if found is None or found[0] >= size or found[1] <= 0:
                return hlo.broadcast_in_dim(value, _sizes(box), [])
            if found[0] < 0 or found[1] > size:
                return None
            inner.append(found)
        return self._part(operand, tuple(inner))


_RULES = {
    CONSTANT: _Parts._constant,
    "stablehlo.broadcast_in_dim": _Parts._broadcast_in_dim,
    "stablehlo.concatenate": _Parts._concatenate,
    "stablehlo.iota": _Parts._iota,
    "stablehlo.pad": _Parts._pad,
    "stablehlo.reverse": _Parts._reverse,
    "stablehlo.slice": _Parts._slice,
    "stablehlo.transpose": _Parts._transpose,
}


def _all_cuts(value: ir.Value) -> Cuts:
    """Where the element-wise ops that make a value have seams."""
    cuts: Cuts = {}
    if not isinstance(value.type, ir.RankedTensorType) or 0 in value.type.shape:
        return cuts
    shape = list(value.type.shape)
    seen: set[ir.Value] = set()
    work = [value]
    while work:
        at = work.pop()
        op = defining(at)
        if op is None or at in seen or list(at.type.shape) != shape:
            continue
        seen.add(at)
        if is_elementwise(op):
            work += op.operands
        else:
            cuts = joined(cuts, cuts_of(op) or {})
    return cuts


def _boxes(shape: Sequence[int], cuts: Cuts) -> Iterator[Box]:
    ranges = [list(_ranges(size, cuts.get(dim, Seams(frozenset())))) for dim, size in enumerate(shape)]
    return itertools.product(*ranges)


def _ranges(size: int, seams: Seams) -> Iterator[Range]:
    for low, high in itertools.pairwise([0, *sorted(seams.at), size]):
        if seams.step == 1:
            yield low, high, 1
            continue
        rows, rest = divmod(high - low, seams.step)
        if rows:
            yield from (_range(low + column, seams.step, rows) for column in range(seams.step))
        yield from (_range(at, 1, 1) for at in range(high - rest, high))


def _range(first: int, step: int, count: int) -> Range:
    return first, first + (count - 1) * step + 1, step if count > 1 else 1


def _sizes(box: Box) -> list[int]:
    return [len(range(*range_)) for range_ in box]


def _moved(box: Box, by: dict[int, int]) -> Box:
    return tuple(
        (low - by.get(dim, 0), high - by.get(dim, 0), step)
        for dim, (low, high, step) in enumerate(box)
    )


def _before_pad(range_: Range, low: int, apart: int) -> Range | None:
    """What a part of a padded dimension was before, were it endless; None for what is between elements."""
    first, end, step = range_[0] - low, range_[1] - low, range_[2]
    if apart == 1:
        return first, end, step
    if first % apart:
        return None
    return _range(first // apart, step // apart, len(range(first, end, step)))
