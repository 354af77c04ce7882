"""Schedule the generics of each block, and emit their loops: order, blocks, fusion, tasks, unrolling, tiles of vectors.

    y[i, j] = exp(x[i, j])                 parallel for i {
    s[i] = sum over j of y[i, j]      ->     for j { e = exp(x[i, j]); t[j] = e; s += e }
    z[i, j] = y[i, j] / s[i]                 for j { z[i, j] = t[j] / s } }

Of each bufferised `linalg.generic` the cheapest loops among some candidates are taken (candidates.py, cost.py), then
neighbours are fused (fusion.py). The innermost loop walks contiguous memory, accesses that are contiguous along
different dimensions get blocks, and transposing copies are done by tiles of vectors. Loops too short for vectors are
unrolled, so that the one around them is innermost (unrolling.py). Work that is worth handing to
other threads on the module's machine is split over the leading parallel loops, no task smaller than is worth one. Each
element of a result is computed whole by one task and its sums in one order, so that results don't depend on the
number of threads.

Generics inside other loops stay serial, and are fused only in a part of a larger op that is a task already
(`linalg-tile-padded-copies`). Those on tensors are left alone, and named ops: run `linalg-generalize-named-ops`
before.

A function's attribute `lamina.schedule` says in the words of words.py how the generics of its own block, s0, s1 and
so on, are to run instead; a schedule that would change results is refused. With `explain`, the schedule that was taken
is that attribute afterwards, and `lamina.candidates` lists what was considered, with its costs.

example: test/passes/schedule/generics.mlir
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.attributes import CANDIDATES, SCHEDULE
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.framework.machine import Machine
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.linalg.analysis.structure import (
    HARMLESS,
    PART,
    Generic,
    generics_on_buffers,
    last_fill,
    read_generic,
)
from lamina.passes.schedule import candidates, words
from lamina.passes.schedule.emit_loops import Fills, emit_loops
from lamina.passes.schedule.fusion import fused
from lamina.passes.schedule.nest import DIMENSIONS, Nest, Statement
from lamina.passes.schedule.read_generics import Reader
from lamina.passes.schedule.schedule import Loop, Schedule, task_counts
from lamina.passes.schedule.transposes import tile_of
from lamina.passes.schedule.unrolling import unrolled

_ROW_BLOCK = 4096  # elements, where rows are too few to be the tasks


class Generics(Pass):
    """See the module's docstring."""

    explain: bool = False

    def run(self, module: ir.Module) -> None:
        machine = machine_of(module)
        blocks: dict[ir.Block, list[ir.Operation]] = {}
        for op in generics_on_buffers(module):
            blocks.setdefault(op.block, []).append(op)
        for block, ops in blocks.items():
            function = block.owner.operation
            if function.name == "func.func":
                self._schedule(block, ops, machine, function)
            elif any(PART in op.attributes for op in ops):
                self._schedule(block, ops, machine.alone, None)
            else:
                self._schedule(block, ops, machine.alone, None, one_by_one=True)

    def _schedule(
        self,
        block: ir.Block,
        ops: Sequence[ir.Operation],
        machine: Machine,
        function: ir.Operation | None,
        *,
        one_by_one: bool = False,
    ) -> None:
        generics, fills, barriers = _statements(block, ops)
        if one_by_one:
            barriers = list(range(1, len(generics)))
        reader = Reader()
        nest = Nest(
            tuple(reader.statement(generic, tile_of(generic)) for generic in generics), frozenset(barriers)
        )
        schedule = self._chosen(nest, machine, function)
        if self.explain and function is not None:
            function.attributes[SCHEDULE] = ir.StringAttr.get(words.to_text(schedule))
            function.attributes[CANDIDATES] = ir.ArrayAttr.get(
                [ir.StringAttr.get(line) for line in _considered(nest, generics, machine)]
            )
        emit_loops(schedule, generics, fills)
        for group in schedule.groups():
            if len(group) > 1:
                self.count("sharing loops", len(group))

    def _chosen(self, nest: Nest, machine: Machine, function: ir.Operation | None) -> Schedule:
        if function is not None and SCHEDULE in function.attributes:
            text = ir.StringAttr(function.attributes[SCHEDULE]).value
            try:
                return words.from_text(text, nest)
            except ValueError as error:
                raise CompileError.at(function, f"can't be scheduled as {text!r}: {error}") from None
        in_tasks = function is not None
        loops, tasks = [], []
        for statement in nest.statements:
            own = candidates.chosen(statement, machine, in_tasks=in_tasks)
            divided = (0, 1)
            if in_tasks:
                own, divided = _in_tasks(statement, own, machine)
            loops.append(own)
            tasks.append(divided)
        return unrolled(fused(nest, loops, tasks, machine, in_tasks=in_tasks))


def _statements(
    block: ir.Block, ops: Sequence[ir.Operation]
) -> tuple[list[Generic], list[Fills], list[int]]:
    """The generics that are statements, the fills that are done with each, and before which of them something else
    touches memory. Those that do nothing are erased."""
    read = {op: read_generic(op) for op in ops}
    fills: dict[ir.Operation, Fills] = {
        op: [None if 0 in generic.extents else last_fill(generic, output) for output in generic.outputs]
        for op, generic in read.items()
    }
    absorbed = {fill for of_one in fills.values() for fill in of_one if fill is not None}
    generics: list[Generic] = []
    barriers: list[int] = []
    between = False
    if len(read) - len(absorbed) > 1:
        for op in [view.operation for view in block.operations]:
            if op in absorbed or (op not in read and op.name.startswith(HARMLESS)):
                continue
            if op not in read or 0 in read[op].extents:
                between = True
                continue
            if between and generics:
                barriers.append(len(generics))
            generics.append(read[op])
            between = False
    else:
        generics = [generic for op, generic in read.items() if op not in absorbed and 0 not in generic.extents]
    for op, generic in read.items():
        if 0 in generic.extents and op not in absorbed:
            op.erase()
    return generics, [fills[generic.op] for generic in generics], barriers


def _in_tasks(
    statement: Statement, loops: tuple[Loop, ...], machine: Machine
) -> tuple[tuple[Loop, ...], tuple[int, int]]:
    """How many leading loops of a statement alone are tasks, and its loops, of which a row may be cut for that."""
    tasks = _divided(statement, loops, machine)
    # Numbered with others, one by one, elements of rows would be nothing that vectors can do.
    row = max((n for n, loop in enumerate(loops) if statement.extents[loop.dimension] != 1), default=0)
    if 0 < row < tasks[0]:
        if statement.extents[loops[row].dimension] > _ROW_BLOCK:
            loops = (*loops[:row], Loop(loops[row].dimension, _ROW_BLOCK), *loops[row:])
            return loops, _divided(statement, loops[: row + 1], machine)
        return loops, _divided(statement, loops[:row], machine)
    return loops, tasks


def _divided(statement: Statement, loops: Sequence[Loop], machine: Machine) -> tuple[int, int]:
    """How many leading loops are worth dividing among threads, and how many iterations are worth a task."""
    return split(task_counts(statement, loops), statement.cost, machine)


def _considered(nest: Nest, generics: Sequence[Generic], machine: Machine) -> list[str]:
    """What each statement does, and the candidates for it, the cheapest first."""
    lines = []
    for number, (statement, generic) in enumerate(zip(nest.statements, generics, strict=True)):
        box = " ".join(f"{DIMENSIONS[d]}<{extent}" for d, extent in enumerate(statement.extents))
        sums = "".join(f", reduces {DIMENSIONS[d]}" for d in statement.reduced)
        ops = [view.operation.name for view in generic.body.operations][:-1]
        lines.append(f"s{number} [{box}]{sums}: {' '.join(ops) or 'copies'}")
        found = candidates.candidates(statement, machine, in_tasks=True)
        for one in sorted(found, key=lambda one: one.ns):
            tiled = " (tiles of vectors)" if one.tiled else ""
            lines.append(f"  {' '.join(map(str, one.loops))}{tiled}: {one.ns:,.0f} ns")
    return lines
