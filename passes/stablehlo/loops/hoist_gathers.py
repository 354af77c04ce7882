"""Hoist gathers of one element per row to arrays in memory, and turn such scatters into comparisons.

    %y = subtract %x, broadcast %m : tensor<8x100xf32>          %p = gather %x, %i
    %p = gather %y, %i : tensor<8xf32>                      ->  %r = subtract %p, %m

    scatter %zeros, %i, %u   ->   select(iota == broadcast %i, broadcast %u, %zeros)

A gather that picks one element of each row moves up past element-wise ops and broadcasts along the
row, to arrays in memory: what it picks from need not be made. That is how cross-entropy reads the
probability of each label. A scatter of one element into each row of a constant, its derivative,
becomes a comparison, which fuses with what reads it. Leaves alone gathers of more than an eighth of
the rows' elements, chains of more than `max_ops`, and scatters into anything that is not one value.

example: test/passes/stablehlo/loops/hoist_gathers.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import (
    computes_elements,
    defining,
    ints,
    made_by,
    size_of,
    splat_of,
)
from lamina.passes.stablehlo.analysis.indexed_dims import GATHER, SCATTER, IndexedDims
from lamina.records import Record

_LEAST_RATIO = 8  # shape: elements of the rows to one that is picked


class HoistGathers(Pass):
    """The pass `stablehlo-hoist-gathers`."""

    only_with = frozenset(("stablehlo.gather", "stablehlo.scatter"))

    max_ops: int = 16  # code

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, GATHER, SCATTER):
            rows = _Rows.of(op)
            if rows is None:
                continue
            is_gather = op.name == GATHER
            with ir.InsertionPoint(op), op.location:
                placed = self._raised(op, rows) if is_gather else _compared(op, rows)
            if placed is not None:
                op.results[0].replace_all_uses_with(placed)
                op.erase()
                self.count("gathers" if is_gather else "scatters")

    def _raised(self, gather: ir.Operation, rows: _Rows) -> ir.Value | None:
        """The picked elements, computed from those of the arrays that the operand is made of."""
        value = gather.operands[0]
        if size_of(value.type) < _LEAST_RATIO * size_of(gather.results[0].type):
            return None
        members = self._chain(gather, rows)
        if not members:
            return None
        shape = list(gather.results[0].type.shape)
        picked: dict[ir.Value, ir.Value] = {}

        def pick(value: ir.Value) -> ir.Value:
            if value not in picked:
                picked[value] = build(value)
            return picked[value]

        def build(value: ir.Value) -> ir.Value:
            of = ir.RankedTensorType.get(shape, value.type.element_type)
            if not value.type.shape:
                return value  # a scalar beside larger operands
            splat = splat_of(value)
            if splat is not None:
                return hlo.full(splat, shape, dtype_of(value.type))
            op = defining(value)
            if op is not None and op in members:
                if op.name == "stablehlo.broadcast_in_dim":
                    dims = [rows.picked_dims[d] for d in ints(op, "broadcast_dimensions")]
                    if list(op.operands[0].type.shape) == shape and dims == sorted(dims):
                        return op.operands[0]
                    return hlo.broadcast_in_dim(op.operands[0], shape, dims)
                return remade(op, [of], [pick(operand) for operand in op.operands]).result
            return remade(gather, [of], [value, gather.operands[1]]).result

        return pick(value)

    def _chain(self, gather: ir.Operation, rows: _Rows) -> set[ir.Operation]:
        """The ops above a gather that it can move past; none if there are too many."""
        members: set[ir.Operation] = set()
        work = [gather.operands[0]]
        while work:
            op = defining(work.pop())
            if op is None or op in members or op.block != gather.block:
                continue
            if op.name == "stablehlo.broadcast_in_dim":
                if rows.dimension not in ints(op, "broadcast_dimensions"):
                    members.add(op)
                continue
            if splat_of(op.results[0]) is not None or not computes_elements(op):
                continue
            members.add(op)
            work += op.operands
            if len(members) > self.max_ops:
                return set()
        return members


class _Rows(Record):
    """Rows of which one element each is read or written: those along `dimension`.

    Of the other dimensions, `picked_dims` says which of the picked elements' each is.
    """

    dimension: int
    picked_dims: dict[int, int]

    @classmethod
    def of(cls, op: ir.Operation) -> _Rows | None:
        """The rows of a gather or scatter; None if it is of another kind."""
        if op.name == SCATTER and len(op.operands) != 3:
            return None
        dims = IndexedDims.of(op)
        operand, indices = op.operands[0].type, op.operands[1].type
        if dims.windows or len(dims.single) != 1 or dims.named != dims.single:
            return None
        if len(dims.batch) != operand.rank - 1 or dims.vector != indices.rank - 1:
            return None
        if not operand.has_static_shape or not indices.has_static_shape:
            return None
        return cls(dims.single[0], dict(zip(dims.batch, dims.batch_of_indices, strict=True)))


def _compared(scatter: ir.Operation, rows: _Rows) -> ir.Value | None:
    """The operand with an element of each row replaced, as a choice by comparison."""
    operand, indices, updates = scatter.operands
    base = splat_of(operand)
    shape = list(operand.type.shape)
    per_row = size_of(updates.type) * shape[rows.dimension] // max(size_of(operand.type), 1)
    dtype = dtype_of(indices.type)
    if base is None or per_row != 1 or dtype.kind not in "iu" or dtype.itemsize < 4:
        return None
    block = scatter.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1].operation.operands[0]
    if last == block.arguments[1]:
        adds = False
    elif _is_sum(last, block) and base == 0:
        adds = True
    else:
        return None
    others = [d for d in range(len(shape)) if d != rows.dimension]
    # Dimensions of the picked elements, in the order of the operand's; the rest have one element.
    order = [rows.picked_dims[d] for d in others]
    sizes = [shape[d] for d in others]

    def spread(value: ir.Value) -> ir.Value:
        splat = splat_of(value)
        if splat is not None:
            return hlo.full(splat, shape, dtype_of(value.type))
        if order != sorted(order):
            ones = [d for d in range(value.type.rank) if d not in order]
            value = hlo.transpose(value, [*order, *ones])
        before = made_by(value, "stablehlo.reshape")
        if before is not None and list(before.operands[0].type.shape) == sizes:
            value = before.operands[0]
        elif list(value.type.shape) != sizes:
            value = hlo.reshape(value, sizes)
        return hlo.broadcast_in_dim(value, shape, others)

    place = hlo.iota(tuple(shape), dtype, rows.dimension)
    is_there = hlo.compare(place, spread(indices), "EQ")
    filled = hlo.full(base, shape, dtype_of(operand.type))
    new = spread(updates)
    return hlo.select(is_there, hlo.add(filled, new) if adds else new, filled)


def _is_sum(value: ir.Value, block: ir.Block) -> bool:
    op = defining(value)
    if op is None or op.name != "stablehlo.add":
        return False
    return set(op.operands) == set(block.arguments)
