"""Let a sum read a column where it lies: what `stablehlo-fuse` does with one that nobody else reads.

    %1 = stablehlo.dynamic_slice %x, %c0, %j                 %1 = stablehlo.dynamic_slice %x, %c0, %j
      : (f64[8,5]) -> f64[8,1]                                 : (f64[8,5]) -> f64[8,1]
    %2 = stablehlo.reshape %1 : f64[8]                       %2 = stablehlo.reshape %y : f64[8,1]
    %3 = stablehlo.multiply %2, %y : f64[8]           ->     %3 = stablehlo.multiply %1, %2 : f64[8,1]
    %4 = stablehlo.reduce %3, add, dims = [0] : f64          %4 = stablehlo.reduce %3, add, dims = [0, 1] : f64

The reshape would make it a kernel of its own, which copies the column; arrays in memory, numbers of places, repeated
scalars and slices have another dimension of one for nothing. Columns whose elements are each read many times, and
those beside what is computed elsewhere, stay as they are.
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    computes_elements,
    defining,
    has_one_use,
    ints,
    is_unused,
    made_by,
    splat_of,
)
from lamina.passes.stablehlo.fusion.fuse_ops import joins_loops

_REDUCE, _SLICE, _VIEW = (f"stablehlo.{name}" for name in ("reduce", "dynamic_slice", "reshape"))
_BROADCAST, _IOTA = "stablehlo.broadcast_in_dim", "stablehlo.iota"
_MOST_OPS = 32  # search: between a column and its sum


def sum_columns(block: ir.Block) -> None:
    """Do so in a block, not in those in it."""
    for op in [inner.operation for inner in block.operations]:
        if op.name == _REDUCE and len(op.results) == 1:
            columns = _Columns(op)
            if columns.are_read():
                columns.read_in_place()


class _Columns:
    """What a reduction computes on the way from columns and other arrays, each with a last dimension of one more."""

    def __init__(self, reduction: ir.Operation) -> None:
        self._reduction = reduction
        self._block = reduction.block
        self._seen = 0
        self._columns = 0

    def are_read(self) -> bool:
        """Whether there is a column, and whether all beside it gets the dimension for nothing."""
        return self._is_free(self._reduction.operands[0]) and self._columns > 0

    def read_in_place(self) -> None:
        """Change the reduction, and what it reads."""
        op = self._reduction
        with ir.InsertionPoint(op), op.location:
            wider = self._wider(op.operands[0])
        narrow = op.operands[0]
        op.operands[0] = wider
        dims = [*ints(op, "dimensions"), len(wider.type.shape) - 1]
        op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(dims)
        _erase(narrow)

    def _is_free(self, value: ir.Value) -> bool:
        self._seen += 1
        op = defining(value)
        if self._seen > _MOST_OPS:
            return False
        if op is None or op.block != self._block or splat_of(value) is not None:
            return True
        if _column(value) is not None:
            self._columns += 1
            return True
        if op.name in (_SLICE, _BROADCAST, _IOTA):
            return True
        if not computes_elements(op):
            return op.name != CONSTANT and not joins_loops(op)
        return _has_one_reader(value) and all(
            not operand.type.shape or self._is_free(operand) for operand in op.operands
        )

    def _wider(self, value: ir.Value) -> ir.Value:
        """A value with another dimension of one behind the others."""
        column = _column(value)
        if column is not None:
            return column
        shape = [*value.type.shape, 1]
        splat = splat_of(value)
        if splat is not None:
            return hlo.full(splat, shape, dtype_of(value.type))
        op = defining(value)
        if op is None or op.block != self._block:
            return hlo.reshape(value, shape)
        if op.name == _SLICE:
            source, *starts = op.operands
            of = dtype_of(starts[0].type)
            source = hlo.reshape(source, [*source.type.shape, 1])
            return hlo.dynamic_slice(source, [*starts, hlo.full(0, (), of)], shape)
        type_ = ir.RankedTensorType.get(shape, value.type.element_type)
        if op.name in (_BROADCAST, _IOTA):
            return remade(op, [type_], list(op.operands)).result
        if not computes_elements(op):
            return hlo.reshape(value, shape)
        operands = [self._wider(operand) if operand.type.shape else operand for operand in op.operands]
        return remade(op, [type_], operands).result


def _column(value: ir.Value) -> ir.Value | None:
    """The part of an array with a last dimension of one of which a value is what it is without that."""
    view = made_by(value, _VIEW)
    cut = None if view is None else made_by(view.operands[0], _SLICE)
    if view is None or cut is None or cut.block != view.block:
        return None
    column = cut.results[0]
    shape = list(column.type.shape)
    is_column = len(shape) > 1 and shape[-1] == 1 and shape[:-1] == list(view.result.type.shape)
    return column if is_column and has_one_use(column) and _has_one_reader(view.result) else None


def _has_one_reader(value: ir.Value) -> bool:
    """Whether one op reads it, be it for several operands."""
    return len({use.owner.operation for use in value.uses}) == 1


def _erase(value: ir.Value) -> None:
    """What nobody reads any longer, and what only that has read."""
    op = defining(value)
    if op is None or not is_unused(op):
        return
    operands = list(op.operands)
    op.erase()
    for operand in operands:
        _erase(operand)
