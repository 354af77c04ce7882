"""Parts of values: boxes of what an op makes, made from boxes of what it reads."""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import CONSTANT, defining, ints
from lamina.passes.stablehlo.fusion.fuse_ops import is_elementwise
from lamina.passes.stablehlo.piecewise.boundaries import cuts_of

Range = tuple[int, int, int]
"""The first index, the end and the step; the end is that of the last element."""
Box = tuple[Range, ...]
"""A part of an array, in each dimension."""


class Parts:
    """Parts of values, each made once, at the ambient insertion point."""

    def __init__(self) -> None:
        self._made: dict[tuple[ir.Value, Box], ir.Value] = {}

    def whole(self, value: ir.Value) -> ir.Value:
        """All of a value."""
        return value

    def is_made_again(self, value: ir.Value) -> bool:
        """Whether all of a value is made as parts of it are, instead of being taken as it is."""
        return False

    def part(self, value: ir.Value, box: Box) -> ir.Value:
        """A box of a value, cut out of it where there is no better way."""
        known = self._made.get((value, box))
        if known is None:
            if sizes_of(box) == list(value.type.shape) and not self.is_made_again(value):
                known = self.whole(value)
            else:
                known = self._of_op(value, box)
            self._made[value, box] = known
        return known

    def _of_op(self, value: ir.Value, box: Box) -> ir.Value:
        op = defining(value)
        made = None if op is None else self.made_by(op, box)
        if made is not None:
            return made
        return hlo.slice(self.whole(value), *zip(*box, strict=True))

    def made_by(self, op: ir.Operation, box: Box) -> ir.Value | None:
        """A part of an op's result; None if there is no better way than to cut it out."""
        if is_elementwise(op):
            return self._elementwise(op, box)
        rule = _RULES.get(op.name)
        return None if rule is None else rule(self, op, box)

    def _elementwise(self, op: ir.Operation, box: Box) -> ir.Value:
        of = op.results[0].type
        operands = [
            self.part(operand, box) if list(operand.type.shape) == list(of.shape) else operand
            for operand in op.operands
        ]
        return remade(op, [ir.RankedTensorType.get(sizes_of(box), of.element_type)], operands).result

    def _constant(self, op: ir.Operation, box: Box) -> ir.Value:
        array = array_of(op)
        if is_splat(op):
            return hlo.full(array[(0,) * array.ndim], sizes_of(box), array.dtype)
        return hlo.constant(array[tuple(slice(*range_) for range_ in box)])

    def _broadcast_in_dim(self, op: ir.Operation, box: Box) -> ir.Value:
        dims = ints(op, "broadcast_dimensions")
        operand = op.operands[0]
        inner = tuple(
            (0, 1, 1) if size == 1 else box[dim]
            for size, dim in zip(operand.type.shape, dims, strict=True)
        )
        return hlo.broadcast_in_dim(self.part(operand, inner), sizes_of(box), dims)

    def _iota(self, op: ir.Operation, box: Box) -> ir.Value:
        of, dim = op.results[0].type, ir.IntegerAttr(op.attributes["iota_dimension"]).value
        dtype, sizes, (start, end, step) = dtype_of(of), sizes_of(box), box[dim]
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
            range_of(start + low * stride, step * stride, len(range(low, high, step)))
            for start, stride, (low, high, step) in zip(starts, strides, box, strict=True)
        )
        return self.part(op.operands[0], inner)

    def _transpose(self, op: ir.Operation, box: Box) -> ir.Value:
        permutation = ints(op, "permutation")
        inner = tuple(box[permutation.index(dim)] for dim in range(len(permutation)))
        return hlo.transpose(self.part(op.operands[0], inner), permutation)

    def _reverse(self, op: ir.Operation, box: Box) -> ir.Value:
        dims, sizes = ints(op, "dimensions"), op.results[0].type.shape
        inner = tuple(
            (size - high, size - low, step) if dim in dims else (low, high, step)
            for dim, (size, (low, high, step)) in enumerate(zip(sizes, box, strict=True))
        )
        return hlo.reverse(self.part(op.operands[0], inner), dims)

    def _concatenate(self, op: ir.Operation, box: Box) -> ir.Value | None:
        dim = ir.IntegerAttr(op.attributes["dimension"]).value
        start = 0
        for operand in op.operands:
            end = start + operand.type.shape[dim]
            if start <= box[dim][0] and box[dim][1] <= end:
                return self.part(operand, _moved(box, {dim: start}))
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
                return hlo.broadcast_in_dim(value, sizes_of(box), [])
            if found[0] < 0 or found[1] > size:
                return None
            inner.append(found)
        return self.part(operand, tuple(inner))


_RULES = {
    CONSTANT: Parts._constant,
    "stablehlo.broadcast_in_dim": Parts._broadcast_in_dim,
    "stablehlo.concatenate": Parts._concatenate,
    "stablehlo.iota": Parts._iota,
    "stablehlo.pad": Parts._pad,
    "stablehlo.reverse": Parts._reverse,
    "stablehlo.slice": Parts._slice,
    "stablehlo.transpose": Parts._transpose,
}


def range_of(first: int, step: int, count: int) -> Range:
    """So many indices from one on."""
    return first, first + (count - 1) * step + 1, step if count > 1 else 1


def sizes_of(box: Box) -> list[int]:
    """How many elements a box has along each dimension."""
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
    return range_of(first // apart, step // apart, len(range(first, end, step)))
