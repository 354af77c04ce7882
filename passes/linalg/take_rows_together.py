"""Take some eight rows at a time where large arrays are reduced down their columns.

    s[j] += x[i, j]   for i < 2048        becomes
    s[j] = s[j] + x[8i, j] + x[8i + 1, j] + ... + x[8i + 7, j]   for i < 256

on eight views of x, in blocks of columns that are a page of a row or half of one: what fetches ahead
in the processor follows rows that go on, and the sums are read and written once for eight of them.
A factor of each row, as in the product of a vector and a matrix, is read by views, too.
The order in which an element's terms are added stays. For bufferised `linalg.generic`s that are plain
(`reduces_plainly`), whose rows are long and so many that four to ten divide their number; writes
their loops, too.

example: test/passes/linalg/take_rows_together.mlir
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir, memref
from lamina.passes.base import Pass
from lamina.passes.copies import copied
from lamina.passes.linalg.choose_loops import reduces_plainly
from lamina.passes.linalg.loop_nest import LOOPS, Loop, LoopNest, write_nest
from lamina.passes.linalg.parallel import split, total_cost
from lamina.passes.linalg.reducing import reducing_on_buffers
from lamina.passes.linalg.structure import (
    Generic,
    is_dense,
    make_generic,
    places_of,
    read_generic,
)

_ROWS = (8, 10, 9, 7, 6, 5, 4)
_PAGE = 4096
_LEAST_ROW = 2 * _PAGE  # bytes: four tasks of half a page


class TakeRowsTogether(Pass):
    """See the module's docstring."""

    parallel_cost: float = 30_000.0
    task_cost: float = 10_000.0

    def run(self, module: ir.Module) -> None:
        for op in reducing_on_buffers(module):
            if LOOPS in op.attributes or op.parent.name != "func.func":
                continue
            generic = read_generic(op)
            cost = total_cost(generic)
            if cost < self.parallel_cost or not _is_taken(generic):
                continue
            with ir.InsertionPoint(op), op.location:
                together = _rewritten(generic)
            reduced, kept = generic.reductions.index(True), generic.reductions.index(False)
            width = dtype_of(generic.outputs[0].type).itemsize
            columns = generic.extents[kept]
            block = (_PAGE if columns * width >= 4 * _PAGE else _PAGE // 2) // width
            tasks, grain = split([-(-columns // block)], cost, self.parallel_cost, self.task_cost)
            write_nest(
                together, LoopNest((Loop(kept, block), Loop(reduced), Loop(kept)), tasks, grain)
            )
            op.erase()
            self.count("reductions")


def _is_taken(generic: Generic) -> bool:
    if generic.rank != 2 or sum(generic.reductions) != 1 or len(generic.outputs) != 1:
        return False
    reduced, kept = generic.reductions.index(True), generic.reductions.index(False)
    width = dtype_of(generic.outputs[0].type).itemsize
    return (
        _rows_of(generic) > 1
        and generic.extents[kept] * width >= _LEAST_ROW
        and reduces_plainly(generic, [reduced], kept)
        and places_of(generic.output_maps[0]) == [kept]
        and all(
            not isinstance(value.type, ir.MemRefType)
            or places_of(map_) in ([kept], [])
            or (places_of(map_) == [reduced] and is_dense(value))
            or (places_of(map_) == [reduced, kept] and is_dense(value))
            for value, map_ in zip(generic.inputs, generic.input_maps, strict=True)
        )
    )


def _rows_of(generic: Generic) -> int:
    """How many rows are taken together; 1 if their number has no such divisor."""
    count = generic.extents[generic.reductions.index(True)]
    return next((rows for rows in _ROWS if count % rows == 0), 1)


def _rewritten(generic: Generic) -> ir.Operation:
    inputs, maps, numbers = [], [], []
    rows, reduced = _rows_of(generic), generic.reductions.index(True)
    for number in range(rows):
        for place, (value, map_) in enumerate(
            zip(generic.inputs, generic.input_maps, strict=True)
        ):
            if isinstance(value.type, ir.MemRefType) and reduced in places_of(map_):
                value = _every(value, number, rows)
            elif number:
                continue  # the same for all rows
            inputs.append(value)
            maps.append(map_)
            numbers.append((number, place))
    op = make_generic(inputs, generic.outputs, [*maps, *generic.output_maps], generic.reductions)
    _write_body(generic, op, numbers, rows)
    return op


def _every(array: ir.Value, first: int, step: int) -> ir.Value:
    """Every so manieth position of an array's first dimension."""
    count, *rest = array.type.shape
    size = math.prod(rest)
    layout = ir.StridedLayoutAttr.get(first * size, [step * size, *[1] * len(rest)])
    sizes = [count // step, *rest]
    type_ = ir.MemRefType.get(sizes, array.type.element_type, layout)
    zeros, ones = [0] * len(rest), [1] * len(rest)
    return memref.SubViewOp(type_, array, [], [], [], [first, *zeros], sizes, [step, *ones]).result


def _write_body(
    generic: Generic, op: ir.Operation, numbers: Sequence[tuple[int, int]], rows: int
) -> None:
    """The body once for each row, each time on what the one before accumulated."""
    *given, accumulator = generic.body.arguments
    *steps, end = (step.operation for step in generic.body.operations)
    elements = [given[place].type for _, place in numbers]
    block = op.regions[0].blocks.append(*elements, accumulator.type)
    *arguments, total = block.arguments
    known: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(block):
        for row in range(rows):
            known[accumulator] = total
            for (number, place), argument in zip(numbers, arguments, strict=True):
                if number == row:
                    known[given[place]] = argument
            for step in steps:
                copied(step, known)
            total = known.get(end.operands[0], end.operands[0])
        ir.Operation.create("linalg.yield", operands=[total])
