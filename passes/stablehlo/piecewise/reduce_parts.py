"""Reduce the parts that an array is put together from, not the array.

    %0 = stablehlo.concatenate %a, %b, dim = 0        %0 = stablehlo.reduce %a, add, across dimensions = [0]
    %1 = stablehlo.exponential %0                ->   (of exponential %a)
    %2 = stablehlo.reduce %1, add,                    %1 = stablehlo.reduce %b, add, across dimensions = [0]
         across dimensions = [0]                      %2 = stablehlo.add %0, %1

What makes the parts is then computed where it is summed, and nothing is put together in memory. So for
concatenations and pads that one reduction alone reads, perhaps by way of element-wise ops that nobody else
reads: along a dimension that is reduced the parts' results are combined, along others put together; a part of
one element to each result, as of `max(stack([...]), 0)`, is combined as it is.
Terms of sums and products are regrouped as `stablehlo-reduce-further` does, with the same exceptions. Leaves
alone small arrays, many parts, and columns that lie side by side.

example: test/passes/stablehlo/piecewise/reduce_parts.mlir
"""

from __future__ import annotations

import itertools
from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.algebra.reduce_further import reducer_in_steps
from lamina.passes.stablehlo.analysis.facts import ints, made_by, reducer_of, splat_of
from lamina.passes.stablehlo.analysis.scan_order import identity
from lamina.passes.stablehlo.canonicalize.raise_views import ops_above
from lamina.passes.stablehlo.canonicalize.rewriting import replace
from lamina.passes.stablehlo.canonicalize.rules.reshaped import reduced
from lamina.passes.stablehlo.fusion.fuse_ops import REARRANGEMENTS, is_elementwise
from lamina.passes.stablehlo.piecewise.boundaries import Boundaries, Cuts, cuts_of
from lamina.passes.stablehlo.piecewise.parts_of_values import Box, Parts
from lamina.records import Record

_MOST_PARTS = 8  # code
_MOST_SINGLE = 25  # code: parts that need no reduction of their own
_EXTREMES = ("stablehlo.maximum", "stablehlo.minimum")
_MOST_OPS = 64  # code: in all parts together
_LEAST_ELEMENTS = REFERENCE.task_ns * 1000 // REFERENCE.apart_ps  # for less, another kernel takes as long as it saves
_LEAST_ROW = 16  # code


class ReduceParts(Pass):
    """The pass `stablehlo-reduce-parts`."""

    only_with = frozenset(("stablehlo.concatenate", "stablehlo.pad"))

    def run(self, module: ir.Module) -> None:
        together = {tuple(shape_of(op.result.type)) for op in find_ops(module, *REARRANGEMENTS)}
        for op in find_ops(module, "stablehlo.reduce"):
            shape = tuple(shape_of(op.operands[0].type))
            if shape not in together or prod(shape) < _LEAST_ELEMENTS or reducer_in_steps(op) is None:
                continue
            members, leaves = ops_above([op.operands[0]], op.block) or ([], [])
            cuts = _all_cuts(leaves, {op, *members})
            parts = _cut([(0, size, 1) for size in shape], cuts)
            count = len(list(parts.boxes))
            is_single = all(_is_single(box, ints(op, "dimensions")) for box in parts.boxes)
            most = _MOST_SINGLE if is_single else _MOST_PARTS
            if not 1 < count <= most or count * (len(members) + 1) > _MOST_OPS:
                continue
            with ir.InsertionPoint(op), op.location:
                result = _Reduction(op, members).of(parts)
            replace(op, [result])
            self.count("reductions")


class _Cut(Record):
    """A box, which is cut into others along a dimension unless it is one part."""

    box: Box
    dimension: int = -1
    inner: tuple[_Cut, ...] = ()

    @property
    def boxes(self) -> itertools.chain[Box]:
        """Those that are not cut."""
        if not self.inner:
            return itertools.chain([self.box])
        return itertools.chain.from_iterable(one.boxes for one in self.inner)


def _all_cuts(leaves: list[ir.Value], readers: set[ir.Operation]) -> list[tuple[Cuts, Box]]:
    """The boundaries of each of the arrays that are put together for these readers alone, and where each lies
    between what a pad puts around it."""
    found = []
    for leaf in leaves:
        op = next((op for name in REARRANGEMENTS if (op := made_by(leaf, name)) is not None), None)
        if op is None or any(use.owner.operation not in readers for use in leaf.uses):
            continue
        cuts = cuts_of(op) or {}
        last = len(leaf.type.shape) - 1
        short = last in cuts and leaf.type.shape[last] < _LEAST_ROW
        if short or any(boundaries.step != 1 for boundaries in cuts.values()):
            continue
        inside = [(0, size, 1) for size in leaf.type.shape]
        if op.name == "stablehlo.pad":
            low = ints(op, "edge_padding_low")
            inside = [(at, at + size, 1) for at, size in zip(low, op.operands[0].type.shape, strict=True)]
        found.append((cuts, tuple(inside)))
    return found


def _cut(box: list[tuple[int, int, int]], cuts: list[tuple[Cuts, Box]]) -> _Cut:
    """A box cut along the first dimension that has boundaries in it, and the pieces along the others."""
    for dimension, (low, high, _) in enumerate(box):
        places = sorted({
            at
            for of_one, inside in cuts
            if _overlap(box, inside)
            for at in of_one.get(dimension, Boundaries(frozenset())).at
            if low < at < high
        })  # fmt: skip
        if places:
            pieces = itertools.pairwise([low, *places, high])
            inner = [_cut([*box[:dimension], (*piece, 1), *box[dimension + 1 :]], cuts) for piece in pieces]
            return _Cut(tuple(box), dimension, tuple(inner))
    return _Cut(tuple(box))


def _overlap(box: list[tuple[int, int, int]], inside: Box) -> bool:
    return all(low < end and begin < high for (low, high, _), (begin, end, _) in zip(box, inside, strict=True))


def _is_single(box: Box, along: list[int]) -> bool:
    """Whether a box has one element to each result of a reduction."""
    return all(box[dimension][1] - box[dimension][0] == 1 for dimension in along)


class _Reduction(Parts):
    """A reduction of an array, done for each part of it."""

    def __init__(self, op: ir.Operation, members: list[ir.Operation]) -> None:
        """`members`: the element-wise ops between that and what is put together."""
        super().__init__()
        self._op, self._members = op, set(members)
        self._along = ints(op, "dimensions")

    def made_by(self, op: ir.Operation, box: Box) -> ir.Value | None:
        """Of other element-wise ops than the members, parts are cut out: they may be dear, and read by others."""
        if is_elementwise(op) and op not in self._members:
            return None
        return super().made_by(op, box)

    def of(self, cut: _Cut) -> ir.Value:
        """What the reduction makes of a box."""
        if not cut.inner and _is_single(cut.box, self._along):
            return self._of_one(self.part(self._op.operands[0], cut.box))
        if not cut.inner:
            copy = self._op.clone().operation  # its body is taken
            result = reduced(copy, self.part(self._op.operands[0], cut.box), self._along)
            copy.erase()
            return result
        results = [self.of(one) for one in cut.inner]
        if cut.dimension not in self._along:
            return hlo.concatenate(results, cut.dimension - sum(d < cut.dimension for d in self._along))
        total = results[0]
        for result in results[1:]:
            total = ir.Operation.create(
                str(reducer_of(self._op)), results=[total.type], operands=[total, result]
            ).result
        return total

    def _of_one(self, part: ir.Value) -> ir.Value:
        """What it makes of a part that has one element to each result."""
        shape = [size for d, size in enumerate(shape_of(part.type)) if d not in self._along]
        view = made_by(part, "stablehlo.reshape")
        is_same = view is not None and list(shape_of(view.operands[0].type)) == shape
        value = view.operands[0] if view is not None and is_same else hlo.reshape(part, shape)
        initial, name = self._op.operands[1], str(reducer_of(self._op))
        nothing = splat_of(initial)
        if name in _EXTREMES and nothing is not None:
            if nothing == identity(name.removeprefix("stablehlo."), dtype_of(initial.type)):
                return value
        started = hlo.broadcast_in_dim(initial, shape, [])
        return ir.Operation.create(name, results=[value.type], operands=[started, value]).result
