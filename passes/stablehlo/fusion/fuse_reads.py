"""What `stablehlo-fuse` changes in a block before it makes groups: so that loops read arrays where they lie.

    %1 = stablehlo.dynamic_slice %x, %i, %c0               %0 = stablehlo.reshape %x : f32[8*5]
      : (f32[8,5]) -> f32[1,5]                      ->     %1 = stablehlo.dynamic_slice %0, 5 * clamp(%i)
    %2 = stablehlo.reshape %1 : f32[5]                       : (f32[40]) -> f32[5]

A reshape of a slice in a kernel would cut it in two, one of the array is free. Not so for a slice whose elements
are each read many times: a kernel that reads it first may overwrite the array. A column that only a sum reads
keeps its dimension of one, and what it is multiplied by gets one, too (fuse_columns.py). And numbers of places,
repeated scalars and smaller arrays that were made before a loop are made again in it, where a kernel has them for
nothing, and not read from an array.
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import CONTROL, defining, is_unused, made_by, size_of
from lamina.passes.stablehlo.analysis.reshaped_slice import dimensions_left_out, is_repeated
from lamina.passes.stablehlo.fusion.fuse_columns import sum_columns
from lamina.passes.stablehlo.fusion.fuse_ops import MAPPED, is_elementwise

_SLICE, _VIEW = "stablehlo.dynamic_slice", "stablehlo.reshape"
_READ_ON_THE_WAY = MAPPED | {"stablehlo.reduce"}
"""Ops that read arrays element by element, beside element-wise ones."""


def read_in_place(block: ir.Block) -> None:
    """Do so in a block, not in those in it."""
    is_step = block.owner.operation.name in CONTROL
    made: dict[ir.Value, ir.Value] = {}
    for op in [inner.operation for inner in block.operations]:
        name = op.name
        if name == _VIEW:
            _read_rows(op)
        elif is_step and (name in _READ_ON_THE_WAY or is_elementwise(op)):
            _make_inside(op, block, made)
    sum_columns(block)


def _read_rows(view: ir.Operation) -> None:
    """A reshape that only leaves out dimensions of one of a dynamic slice, as a slice of another shape."""
    cut = made_by(view.operands[0], _SLICE)
    if cut is None or cut.block != view.block or is_repeated(view.result):
        return
    dropped = _dropped(list(cut.results[0].type.shape), list(view.result.type.shape))
    if dropped is None:
        return
    with ir.InsertionPoint(cut), cut.location:
        view.result.replace_all_uses_with(_without(cut, dropped))
    view.erase()
    if is_unused(cut):
        cut.erase()


def _dropped(sizes: list[int], shape: list[int]) -> list[int] | None:
    """The dimensions that a reshape leaves out, if it does nothing else and keeps the last one."""
    dropped = dimensions_left_out(sizes, shape)
    return None if not dropped or len(sizes) - 1 in dropped else dropped


def _without(cut: ir.Operation, dropped: list[int]) -> ir.Value:
    """A dynamic slice without dimensions of one: the array's are put together with those behind them."""
    source, *given = cut.operands
    sizes, wanted = list(source.type.shape), list(cut.results[0].type.shape)
    starts = list(_starts(given, size_of(source.type)))
    for d in reversed(dropped):
        count, part = sizes[d + 1], wanted[d + 1]
        start = _within(starts[d], sizes[d] - 1)
        start = hlo.multiply(start, hlo.full(count, (), dtype_of(start.type)))
        if part != count:
            start = hlo.add(start, _within(starts[d + 1], count - part))
        starts[d : d + 2], sizes[d : d + 2], wanted[d : d + 2] = [start], [sizes[d] * count], [part]
    return hlo.dynamic_slice(hlo.reshape(source, sizes), starts, wanted)


def _starts(starts: list[ir.Value], size: int) -> list[ir.Value]:
    """Of a type that numbers as many elements."""
    if size < 1 << 31 and starts[0].type.element_type.width >= 32:
        return starts
    wide = "int32" if size < 1 << 31 and starts[0].type.element_type.width < 32 else "int64"
    return [hlo.convert(start, wide) for start in starts]


def _within(start: ir.Value, last: int) -> ir.Value:
    """A start as a slice takes it, at most the last one."""
    of = dtype_of(start.type)
    return hlo.clamp(hlo.full(0, (), of), start, hlo.full(last, (), of))


def _make_inside(op: ir.Operation, block: ir.Block, made: dict[ir.Value, ir.Value]) -> None:
    """Give an op of a loop's step its own iotas, repeated scalars and smaller arrays."""
    for number, value in enumerate(op.operands):
        if value in made:
            op.operands[number] = made[value]
            continue
        maker = defining(value)
        if maker is None or maker.block == block or not is_free_array(maker):
            continue
        with ir.InsertionPoint.at_block_begin(block):
            made[value] = maker.clone().operation.results[0]
        op.operands[number] = made[value]


def is_free_array(op: ir.Operation) -> bool:
    """Whether a kernel has what an op makes for nothing: places' numbers, a scalar or a smaller array repeated."""
    if op.name == "stablehlo.iota":
        return True
    return op.name == "stablehlo.broadcast_in_dim" and size_of(op.operands[0].type) < size_of(op.results[0].type)
