"""Let a loop put the rows that it makes where rows lay that it has read.

    %xu = dot_general %xs, %u
    while(%i, %h, %ys = 0) do {                     while(%i, %h, %ys = %xu) do {
      %x = %xu[%i]                          ->        %x = %ys[%i]
      ...                                             ...
      %ys' = dynamic_update_slice %ys, %y, %i         %ys' = dynamic_update_slice %ys, %y, %i
    }                                               }

where every step writes another row, the one that it has read, and nobody else reads %xu: one array is
in memory where two were. Arguments stay as they are, since they would be copied; so does an array of
which the row that is written does not need all that is read, which might be read too late.

example: test/passes/stablehlo/loops/stack_in_place.mlir
"""

from __future__ import annotations

from collections import defaultdict

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import CONSTANT, defining, has_one_use, splat_of
from lamina.passes.stablehlo.loops.loop_slices import CountedLoop

_NOT_STORED = frozenset((CONSTANT, "stablehlo.broadcast_in_dim", "stablehlo.iota"))
_VIEW = "stablehlo.reshape"


class StackInPlace(Pass):
    """The pass `stablehlo-stack-in-place`."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.while"):
            loop = CountedLoop.of(op)
            if loop is not None:
                self.count("arrays", _stack(loop))


def _stack(loop: CountedLoop) -> int:
    read = _arrays_read(loop)
    count = 0
    for number, initial in enumerate(loop.op.operands):
        write = loop.row_written(number) if read and splat_of(initial) is not None else None
        if write is None:
            continue
        found = next(
            (array for array, rows in read.items() if _can_take(array, rows, write)), None
        )
        if found is None:
            continue
        for row in read.pop(found):
            row.operands[0] = loop.body.arguments[number]
        loop.op.operands[number] = found
        count += 1
    return count


def _arrays_read(loop: CountedLoop) -> dict[ir.Value, list[ir.Operation]]:
    """Arrays made before the loop, of which it reads rows and nobody anything else, and the ops that
    read them."""
    rows: dict[ir.Value, list[ir.Operation]] = defaultdict(list)
    for op in loop.body.operations:
        if op.operation.name == "stablehlo.dynamic_slice":
            found = loop.row_read(op.operation)
            if found is not None:
                rows[found.array].append(op.operation)
    return {
        array: ops
        for array, ops in rows.items()
        if _is_stored(array) and len(list(array.uses)) == len(ops)
    }


def _is_stored(array: ir.Value) -> bool:
    """Whether an array is the result of an op that no one else can see."""
    maker = defining(array)
    while maker is not None and maker.name == _VIEW and has_one_use(maker.operands[0]):
        maker = defining(maker.operands[0])
    return maker is not None and maker.name != _VIEW and maker.name not in _NOT_STORED


def _can_take(array: ir.Value, rows: list[ir.Operation], write: ir.Operation) -> bool:
    """Whether the rows of `array` are read at the places that `write` writes, for it and before it."""
    carried, _, at, *_ = write.operands
    if array.type != carried.type or any(row.operands[1] != at for row in rows):
        return False
    needed = _needed(write)
    return all(
        use.owner.operation in needed for row in rows for use in _seen_through(row.results[0])
    )


def _seen_through(value: ir.Value) -> list[ir.OpOperand]:
    """The uses of a value, of views of it instead of the views."""
    uses = []
    for use in value.uses:
        op = use.owner.operation
        uses += _seen_through(op.results[0]) if op.name == _VIEW else [use]
    return uses


def _needed(op: ir.Operation) -> set[ir.Operation]:
    """The ops of a block that one of them needs, and itself."""
    found, work = {op}, [op]
    while work:
        for value in work.pop().operands:
            maker = defining(value)
            if maker is not None and maker.block == op.block and maker not in found:
                found.add(maker)
                work.append(maker)
    return found
