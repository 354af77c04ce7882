"""Move reshapes and slices up past element-wise ops, to where arrays are read.

    %0 = stablehlo.exponential %x : tensor<4x8xf32>       %0 = stablehlo.reshape %x
    %1 = stablehlo.multiply %0, %s : tensor<4x8xf32>  ->  %1 = stablehlo.reshape %s
    %2 = stablehlo.reshape %1 : tensor<32xf32>            %2 = stablehlo.exponential %0
                                                          %3 = stablehlo.multiply %2, %1

A reshape of an array in memory is free, and a slice of one is only a smaller reading; between two
element-wise ops either would cut a kernel in two; so would the one between the indices of a gather
and their vectors of one index each, which is left out. Moves one only past ops that nobody else reads,
and only if it ends at arrays in memory, constants, or broadcasts that can be made in the new shape.
A slice of one along a dimension is a strided slice of the array in another shape, unless it is repeated.
Leaves alone what cannot move the whole way.

example: test/passes/stablehlo/canonicalize/raise_views.mlir
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.facts import (
    computes_elements,
    defining,
    ints,
    is_unused,
    splat_of,
)
from lamina.passes.stablehlo.analysis.reassociation import grouped_dimensions
from lamina.passes.stablehlo.analysis.reshaped_slice import (
    dropped_dimensions,
    is_repeated,
    slice_reshaped,
)
from lamina.passes.stablehlo.canonicalize.rules.slices import slice_of

_LOOKED_AT = frozenset(f"stablehlo.{name}" for name in "reshape slice gather".split())
_MAX_OPS = 256  # search: ops above one view that are looked at


class RaiseViews(Pass):
    """The pass `stablehlo-raise-views`."""

    only_with = frozenset(("stablehlo.gather", "stablehlo.reshape", "stablehlo.slice"))

    def run(self, module: ir.Module) -> None:
        self._region(module.operation.regions[0])

    def _region(self, region: ir.Region) -> None:
        for block in region.blocks:
            ops = [inner.operation for inner in block.operations]
            # Users first. What is erased on the way is element-wise, so these stay good to walk.
            for op in reversed([op for op in ops if op.name in _LOOKED_AT or len(op.regions)]):
                for nested in op.regions:
                    self._region(nested)
                kind = op.name
                if kind == "stablehlo.gather":
                    view = _plain_indices(op)
                    if view is None:
                        continue
                    op, kind = view, view.name
                if is_unused(op) and kind in _CHECKS:
                    op.erase()
                elif kind in _CHECKS and self._raise(op):
                    self.count(kind.split(".")[1])

    def _raise(self, view: ir.Operation) -> bool:
        if view.name == "stablehlo.reshape" and not is_repeated(view.result):
            with ir.InsertionPoint(view), view.location:
                part = slice_reshaped(view.operands[0], view.result.type.shape)
            if part is not None:
                view.result.replace_all_uses_with(part)
                view.erase()
                return True
        members, leaves = ops_above([view.operands[0]], view.block) or ([], [])
        if not members:
            return False
        can_move, move = _CHECKS[view.name], _MOVES[view.name]
        if not all(can_move(view, leaf) for leaf in leaves):
            return False
        with ir.InsertionPoint(view), view.location:
            now = {leaf: move(view, leaf) for leaf in leaves}
        shape = view.result.type.shape
        for op in members:  # operands before users
            of = ir.RankedTensorType.get(shape, op.results[0].type.element_type)
            operands = [now.get(value, value) for value in op.operands]
            with ir.InsertionPoint(view), op.location:
                now[op.results[0]] = remade(op, [of], operands).result
        view.result.replace_all_uses_with(now[view.operands[0]])
        for op in (view, *reversed(members)):
            op.erase()
        return True


def _plain_indices(gather: ir.Operation) -> ir.Operation | None:
    """Let a gather of single elements take its indices in the shape of its result, where they are
    vectors of one; the reshape that gives them that shape, unless what they are made of has it."""
    operand, indices = gather.operands
    shape = list(indices.type.shape)
    numbers = stablehlo_ext.GatherDimensionNumbers(gather.attributes["dimension_numbers"])
    vector = numbers.index_vector_dim
    if vector != len(shape) - 1 or shape[vector] != 1 or list(numbers.offset_dims):
        return None
    producer = defining(indices)
    if producer is not None and producer.name == "stablehlo.reshape":
        indices = producer.operands[0]
    view = None
    if list(indices.type.shape) != shape[:-1]:
        with ir.InsertionPoint(gather), gather.location:
            indices = hlo.reshape(indices, shape[:-1])
            view = indices.owner.operation
    gather.operands[1] = indices
    gather.attributes["dimension_numbers"] = stablehlo_ext.GatherDimensionNumbers.get(
        list(numbers.offset_dims), list(numbers.collapsed_slice_dims),
        list(numbers.operand_batching_dims), list(numbers.start_indices_batching_dims),
        list(numbers.start_index_map), vector,
    )  # fmt: skip
    return view


def ops_above(
    values: list[ir.Value], block: ir.Block
) -> tuple[list[ir.Operation], list[ir.Value]] | None:
    """The element-wise ops of a block that make values, each read by one op, and that only that and each other
    read, operands first, and the arrays that they read; None if they are many."""
    members: dict[ir.Operation, None] = {}
    leaves: dict[ir.Value, None] = {}
    reads: dict[ir.Value, int] = {}
    work = list(values)
    while work:
        value = work.pop()
        reads[value] = reads.get(value, 0) + 1
        producer = defining(value)
        if (
            producer is None
            or not computes_elements(producer)
            or producer.block != block
            or sum(1 for _ in value.uses) != reads[value]
        ):
            leaves[value] = None
            continue
        leaves.pop(value, None)
        members[producer] = None
        if len(members) > _MAX_OPS:
            return None
        shape = producer.results[0].type.shape  # a scalar may stand beside larger operands
        work += [operand for operand in producer.operands if operand.type.shape == shape]
    return list(members)[::-1], list(leaves)


# What a view makes of an array, and whether that is free


def _can_reshape(view: ir.Operation, leaf: ir.Value) -> bool:
    producer = defining(leaf)
    if producer is None or splat_of(leaf) is not None:
        return True
    if producer.name == "stablehlo.broadcast_in_dim":
        return _reshaped_broadcast(view, producer) is not None
    if producer.name not in _COMPUTED:
        return True
    return dropped_dimensions(leaf, view.result.type.shape) is not None and not is_repeated(view.result)


def _reshape(view: ir.Operation, leaf: ir.Value) -> ir.Value:
    shape = view.result.type.shape
    splat = splat_of(leaf)
    if splat is not None:
        return hlo.full(splat, shape, dtype_of(leaf.type))
    producer = defining(leaf)
    if producer is not None and producer.name == "stablehlo.broadcast_in_dim":
        found = _reshaped_broadcast(view, producer)
        assert found is not None
        source, dims = found
        operand = producer.operands[0]
        if list(operand.type.shape) != source:
            operand = hlo.reshape(operand, source)
        return hlo.broadcast_in_dim(operand, shape, dims)
    part = slice_reshaped(leaf, shape)
    if part is not None:
        return part
    if producer is not None and producer.name == "stablehlo.reshape":
        leaf = producer.operands[0]
    return leaf if list(leaf.type.shape) == list(shape) else hlo.reshape(leaf, shape)


def _reshaped_broadcast(
    view: ir.Operation, broadcast: ir.Operation
) -> tuple[list[int], list[int]] | None:
    """(shape of the operand, its dimensions) that broadcast to the view's shape; None if no such.

    Each set of dimensions that the view joins or splits must be all spread or all of the operand.
    """
    before, after = broadcast.result.type.shape, view.result.type.shape
    groups = grouped_dimensions(before, after)
    if groups is None:
        return None
    dims = ints(broadcast, "broadcast_dimensions")
    if dims != sorted(dims):
        return None
    sizes = broadcast.operands[0].type.shape
    kept = {d for d, size in zip(dims, sizes) if size == before[d]}
    shape: list[int] = []
    places: list[int] = []
    for old, new in groups:
        long = [d for d in old if before[d] != 1]
        if all(d not in kept for d in long):
            continue
        if any(d not in kept for d in long):
            return None
        shape += [after[d] for d in new]
        places += new
    return shape, places


def _can_slice(view: ir.Operation, leaf: ir.Value) -> bool:
    producer = defining(leaf)
    if producer is None or splat_of(leaf) is not None:
        return True
    return producer.name in _CUT or producer.name not in _COMPUTED


def sliced(view: ir.Operation, leaf: ir.Value) -> ir.Value:
    """What a slice like the view makes of an array of the same shape; of a slice, one slice."""
    splat = splat_of(leaf)
    if splat is not None:
        return hlo.full(splat, view.result.type.shape, dtype_of(leaf.type))
    names = ("start_indices", "limit_indices", "strides")
    start, limit, strides = (ints(view, name) for name in names)
    producer = defining(leaf)
    if producer is None or producer.name != "stablehlo.broadcast_in_dim":
        return slice_of(leaf, start, limit, strides)
    operand = producer.operands[0]
    dims = ints(producer, "broadcast_dimensions")
    sizes = operand.type.shape
    spread = [size == 1 for size in sizes]
    begin = [0 if s else start[d] for s, d in zip(spread, dims)]
    end = [1 if s else limit[d] for s, d in zip(spread, dims)]
    step = [1 if s else strides[d] for s, d in zip(spread, dims)]
    if begin != [0] * len(sizes) or end != list(sizes) or step != [1] * len(sizes):
        operand = hlo.slice(operand, begin, end, step)
    return hlo.broadcast_in_dim(operand, view.result.type.shape, dims)


_CUT = frozenset(f"stablehlo.{name}" for name in "broadcast_in_dim slice".split())
"""Ops of a smaller array where less of their result is read."""
_COMPUTED = frozenset(
    f"stablehlo.{name}" for name in "broadcast_in_dim iota transpose reverse slice".split()
)
"""Ops that a kernel computes on the way, and that a view of would force into memory."""

_CHECKS: dict[str, Callable[[ir.Operation, ir.Value], bool]] = {
    "stablehlo.reshape": _can_reshape,
    "stablehlo.slice": _can_slice,
}
_MOVES: dict[str, Callable[[ir.Operation, ir.Value], ir.Value]] = {
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": sliced,
}
