"""The element-wise op after a contraction, done on each block while it is in cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lamina.dialects.vendors import ir
from lamina.passes.linalg.analysis.structure import (
    HARMLESS,
    Generic,
    is_buffer,
    is_generic_on_buffers,
    is_temporary,
    loaded_buffers,
    outputs_of,
    part_of,
    read_generic,
    root_buffer,
)
from lamina.passes.linalg.schedule.tileable import can_be_done_in_parts
from lamina.records import Record


class Epilogue(Record):
    """A generic that reads a contraction's result element by element, and nobody else does."""

    generic: Generic
    operand: int
    """Which of its inputs is that result."""
    dimensions: Mapping[int, int]
    """Its dimensions by the contraction's."""

    def overwrites_inputs(self) -> bool:
        """Whether the op reads what it overwrites, so that it must be done once."""
        generic = self.generic
        reads = {root_buffer(value) for value in generic.inputs if is_buffer(value)}
        olds = generic.body.arguments[len(generic.inputs) :]
        return any(list(old.uses) for old in olds) or not reads.isdisjoint(
            map(root_buffer, generic.outputs)
        )

    def emit(
        self,
        tile: ir.Value,
        rows_and_columns: tuple[int, int],
        position: Mapping[int, ir.Value],
        sizes: Mapping[int, int],
    ) -> None:
        """Do the part of the op at `position` (by the contraction's dimensions) that has these
        sizes, and size 1 along the others, on a tile that holds the result's rows by columns."""
        generic = self.generic
        at = {own: position[of] for of, own in self.dimensions.items()}
        size = {own: sizes.get(of, 1) for of, own in self.dimensions.items()}
        row, column = (ir.AffineDimExpr.get(self.dimensions[d]) for d in rows_and_columns)
        operands, maps = [], []
        for number, (value, map_) in enumerate(
            zip(
                (*generic.inputs, *generic.outputs),
                (*generic.input_maps, *generic.output_maps),
                strict=True,
            )
        ):
            if number == self.operand:
                value, map_ = tile, ir.AffineMap.get(generic.rank, 0, [row, column])
            else:
                value = part_of(value, map_, at, size)
            operands.append(value)
            maps.append(ir.AffineMapAttr.get(map_))
        part = generic.op.clone().operation
        for number, operand in enumerate(operands):
            part.operands[number] = operand
        part.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)


def find_epilogue(contraction: Generic, fill: ir.Operation) -> Epilogue | None:
    """The op that takes a contraction's place as the writer of its blocks, if there is one."""
    buffer = contraction.outputs[0]
    if not is_temporary(buffer):
        return None
    users = {use.owner.operation for use in buffer.uses} - {contraction.op, fill}
    if len(users) != 1:
        return None
    (op,) = users
    if not is_generic_on_buffers(op) or op.block != contraction.op.block:
        return None
    generic = read_generic(op)
    if not can_be_done_in_parts(generic) or any(output == buffer for output in generic.outputs):
        return None
    reads = [number for number, value in enumerate(generic.inputs) if value == buffer]
    if len(reads) != 1:
        return None
    if not can_be_done_together([contraction.op, op], op):
        return None
    own = _dimensions_of(generic.input_maps[reads[0]])
    theirs = _dimensions_of(contraction.output_maps[0])
    if own is None or theirs is None or sorted(own) != list(range(generic.rank)):
        return None
    return Epilogue(generic, reads[0], dict(zip(theirs, own, strict=True)))


def can_be_done_together(own: Collection[ir.Operation], last: ir.Operation) -> bool:
    """Whether ops of one block can be done where the last of them is: no other op between them
    touches what they write, or writes what they read."""
    touched = {root_buffer(v) for op in own for v in op.operands if is_buffer(v)}
    written = {root_buffer(v) for op in own for v in outputs_of(op)}
    is_between = False
    for op in (view.operation for view in last.block.operations):
        is_between = is_between or op in own
        if op == last:
            return True
        if not is_between or op in own or op.name.startswith(HARMLESS):
            continue
        if not is_generic_on_buffers(op):
            return False
        outputs = {root_buffer(v) for v in outputs_of(op)}
        inputs = (*op.operands, *loaded_buffers(read_generic(op)))
        if outputs & touched or written & {root_buffer(v) for v in inputs if is_buffer(v)}:
            return False
    return False


def _dimensions_of(map_: ir.AffineMap) -> list[int] | None:
    """The dimension of each index, if all are just that."""
    if not all(isinstance(expression, ir.AffineDimExpr) for expression in map_.results):
        return None
    return [ir.AffineDimExpr(expression).position for expression in map_.results]
