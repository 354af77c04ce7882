"""Cut what a few instructions make from arrays in memory out of those arrays, once for each slice of it.

    %0 = stablehlo.subtract %x, %y               %0 = stablehlo.slice %x [1:n]     %2 = stablehlo.slice %x [0:n-1]
    %1 = stablehlo.slice %0 [1:n]           ->   %1 = stablehlo.slice %y [1:n]     %3 = stablehlo.slice %y [0:n-1]
    %2 = stablehlo.slice %0 [0:n-1]              %4 = stablehlo.subtract %0, %1
    %3 = stablehlo.subtract %1, %2               %5 = stablehlo.subtract %2, %3
                                                 %6 = stablehlo.subtract %4, %5

A difference of differences, or one stencil after another, is one kernel then, which reads each element
where it is in cache: storing what lies between takes longer than computing it again. Leaves alone what
anything but slices reads, ops that cost more than a few instructions, and trees of them that would be
done too many times. Moves no slice past what is itself computed otherwise, which has to be stored anyway.

example: test/passes/stablehlo/canonicalize/slice_first.mlir
"""

from __future__ import annotations

from lamina.dialects.types import byte_size
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import (
    CHEAP,
    computes_elements,
    defining,
    in_order,
    is_unused,
    splat_of,
)
from lamina.passes.stablehlo.analysis.keys import attributes_key
from lamina.passes.stablehlo.canonicalize.raise_views import sliced

_SLICE = "stablehlo.slice"
_READ = (_SLICE, "stablehlo.broadcast_in_dim", "stablehlo.reshape")
"""Ops whose result, or what it is made of, is read where it is sliced."""


class SliceFirst(Pass):
    """The pass `stablehlo-slice-first`."""

    most_ops: int = 12  # code
    """That are computed for all slices of an array together."""
    most_ops_of_large: int = 48  # code
    """The same for an array that a core's cache would not hold: reading it again takes as long as many ops."""
    large_bytes: int = REFERENCE.l2_bytes // 2

    only_with = frozenset(("stablehlo.slice",))

    def run(self, module: ir.Module) -> None:
        self._region(module.operation.regions[0])

    def _region(self, region: ir.Region) -> None:
        for block in region.blocks:
            # Users first: their slices are of what is looked at next.
            for op in reversed([inner.operation for inner in block.operations]):
                for nested in op.regions:
                    self._region(nested)
                if op.name != _SLICE and op.name not in CHEAP:
                    continue
                if not is_unused(op) and op.name != _SLICE and computes_elements(op):
                    self._look_at(op)
                if is_unused(op):
                    op.erase()

    def _look_at(self, op: ir.Operation) -> None:
        slices = [use.owner.operation for use in op.results[0].uses]
        if any(user.name != _SLICE or user.block != op.block for user in slices):
            return
        is_large = byte_size(op.results[0].type) >= self.large_bytes
        most = self.most_ops_of_large if is_large else self.most_ops
        tree = _tree(op, most // 2)
        distinct = {attributes_key(user) for user in slices}
        if tree is None or len(distinct) * len(tree) > most:
            return
        for view in slices:
            now: dict[ir.Value, ir.Value] = {}
            for member in tree:
                now[member.results[0]] = _of_slice(member, view, now)
            view.results[0].replace_all_uses_with(now[op.results[0]])
            view.erase()
            self.count("slices")


def _of_slice(op: ir.Operation, view: ir.Operation, now: dict[ir.Value, ir.Value]) -> ir.Value:
    """An op of a tree on slices of its operands, those that others of the tree make in `now`."""
    shape = op.results[0].type.shape
    with ir.InsertionPoint(view), op.location:
        for value in op.operands:
            if value not in now:  # a scalar may stand beside larger operands
                now[value] = sliced(view, value) if value.type.shape == shape else value
        of = ir.RankedTensorType.get(view.results[0].type.shape, op.results[0].type.element_type)
        return remade(op, [of], [now[value] for value in op.operands]).result


def _tree(root: ir.Operation, most: int) -> list[ir.Operation] | None:
    """The cheap ops that only an op needs, and the op, operands first; None if what they read is
    computed by others, or they are too many."""
    found = {root: None}
    work = [root]
    for op in work:  # which grows
        for value in op.operands:
            producer = _maker(value)
            if producer is None:
                continue
            if producer.block != root.block:
                return None
            if _is_cheap(producer):
                if len(found) > most:
                    return None
                if producer not in found and all(use.owner.operation in found for use in value.uses):
                    found[producer] = None
                    work.append(producer)
            elif producer.name not in _READ:
                return None
    makers = [_maker(value) for op in found for value in op.operands]
    if any(_is_cheap(maker) and maker not in found for maker in makers if maker is not None):
        return None
    return in_order(found)


def _maker(value: ir.Value) -> ir.Operation | None:
    """The op that makes an array; None for a scalar, a splat or an argument."""
    return defining(value) if value.type.shape and splat_of(value) is None else None


def _is_cheap(op: ir.Operation) -> bool:
    return op.name in CHEAP and computes_elements(op)
