"""Compute what concatenations and pads are made of, and what follows them, for each part alone.

    %p = stablehlo.pad %x, %z, low = [2]            %e = tensor.empty()
    %r = stablehlo.multiply %p, %y                  %0 = tensor.insert_slice %z * %y[0:2] into %e[0]
    return %r                                  ->   %1 = tensor.insert_slice %x * %y[2:n] into %0[2]
                                                    return %1

The result is cut at the seams of all concatenations and pads that its element-wise ops read; each box
between the cuts is computed from slices and written where it belongs: a loop over vectors, where one
loop over all would ask for each element which part it is in. A result that overwrites an argument is
written into that one, a part of which is read just before it. Leaves alone pads between elements and
negative ones, and what a value is used for that other ops read at other places.

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
from lamina.passes.stablehlo.seams import Cuts, cuts_of, joined

Box = tuple[tuple[int, int], ...]
"""Where a part of an array begins and ends, in each dimension."""


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
            offsets, sizes, steps = [low for low, _ in box], _sizes(box), [1] * len(box)
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
        return hlo.slice(self.whole(value), [low for low, _ in box], [high for _, high in box])

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
        return hlo.constant(array[tuple(slice(low, high) for low, high in box)])

    def _broadcast_in_dim(self, op: ir.Operation, box: Box) -> ir.Value:
        dims = ints(op, "broadcast_dimensions")
        operand = op.operands[0]
        inner = tuple(
            (0, 1) if size == 1 else box[dim]
            for size, dim in zip(operand.type.shape, dims, strict=True)
        )
        return hlo.broadcast_in_dim(self._part(operand, inner), _sizes(box), dims)

    def _iota(self, op: ir.Operation, box: Box) -> ir.Value:
        of, dim = op.results[0].type, ir.IntegerAttr(op.attributes["iota_dimension"]).value
        dtype, sizes, start = dtype_of(of), _sizes(box), box[dim][0]
        if start == 0:
            return hlo.iota(sizes, dtype, dim)
        # Counted in integers: floats would be rounded twice.
        counted = np.dtype(np.int64 if box[dim][1] > 2**31 else np.int32)
        index = hlo.add(hlo.iota(sizes, counted, dim), hlo.full(start, sizes, counted))
        return index if dtype == counted else hlo.convert(index, dtype)

    def _slice(self, op: ir.Operation, box: Box) -> ir.Value:
        starts, strides = ints(op, "start_indices"), ints(op, "strides")
        operand = op.operands[0]
        inner = tuple(
            (start + low * stride, start + (high - 1) * stride + 1)
            for start, stride, (low, high) in zip(starts, strides, box, strict=True)
        )
        if all(stride == 1 for stride in strides):
            return self._part(operand, inner)
        return hlo.slice(
            self.whole(operand), [low for low, _ in inner], [high for _, high in inner], strides
        )

    def _transpose(self, op: ir.Operation, box: Box) -> ir.Value:
        permutation = ints(op, "permutation")
        inner = tuple(box[permutation.index(dim)] for dim in range(len(permutation)))
        return hlo.transpose(self._part(op.operands[0], inner), permutation)

    def _reverse(self, op: ir.Operation, box: Box) -> ir.Value:
        dims, sizes = ints(op, "dimensions"), op.results[0].type.shape
        inner = tuple(
            (size - high, size - low) if dim in dims else (low, high)
            for dim, (size, (low, high)) in enumerate(zip(sizes, box, strict=True))
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
        lows = dict(enumerate(ints(op, "edge_padding_low")))
        inner = _moved(box, lows)
        ends = operand.type.shape
        if all(0 <= low and high <= end for (low, high), end in zip(inner, ends, strict=True)):
            return self._part(operand, inner)
        if any(high <= 0 or low >= end for (low, high), end in zip(inner, ends, strict=True)):
            return hlo.broadcast_in_dim(value, _sizes(box), [])
        return None


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
    edges = [[0, *sorted(cuts.get(dim, ())), size] for dim, size in enumerate(shape)]
    return itertools.product(*(itertools.pairwise(edge) for edge in edges))


def _sizes(box: Box) -> list[int]:
    return [high - low for low, high in box]


def _moved(box: Box, by: dict[int, int]) -> Box:
    return tuple(
        (low - by.get(dim, 0), high - by.get(dim, 0)) for dim, (low, high) in enumerate(box)
    )
