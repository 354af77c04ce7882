"""The loops that are considered for a statement, and the choice among them.

Candidates are few: each dimension in turn as the innermost loop, reductions outside of it where it is parallel; then
blocks of two dimensions where accesses are contiguous along different ones, and blocks of columns where a reduction
goes down them. `cost` says what each takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lamina.passes.framework.machine import REFERENCE, Machine
from lamina.passes.schedule.cost import WANTED_TASKS, cost_of
from lamina.passes.schedule.dependences import may_reorder
from lamina.passes.schedule.nest import Statement
from lamina.passes.schedule.schedule import Loop, task_counts

SQUARE_BLOCK = 64
"""Positions along each side of a block in which lines of both arrays are used up: one, and the next fetched ahead."""
COLUMN_BLOCK = 1024
"""Elements of an accumulated row: a few KB, which the first cache of any machine keeps beside the row that is read."""
REGISTER_LINES = 4
"""Of an accumulated row that stays in registers: so many lines of each row processors fetch ahead as well as whole
rows; eight or sixteen they do not."""
JAMMED = (8, 10, 9, 7, 6, 5, 4)
"""Rows that a sum down columns adds at a time, so that it is read and written once for all of them."""
_BLOCKS_GAIN = 1.25
"""So much blocks must gain: neighbours can't share their loops, and costs are no more exact."""
_MOST_OPS_IN_REGISTERS = 4  # code
_LEAST_ROWS = 32  # shape
_CACHES = 2  # second caches, of which an array is beyond


class Candidate(NamedTuple):
    """Loops of a statement, and what they cost."""

    loops: tuple[Loop, ...]
    ns: float
    tiled: bool = False


def chosen(statement: Statement, machine: Machine, *, in_tasks: bool) -> tuple[Loop, ...]:
    """The cheapest loops; `in_tasks` where they may be divided among threads."""
    plain = _plainest(statement)
    if plain is not None:
        return plain
    found = candidates(statement, machine, in_tasks=in_tasks)
    if any(statement.reductions) and machine != REFERENCE:
        # Whether a sum's terms are added in lanes is no matter of the machine, whose results would be other bits.
        best = min(candidates(statement, REFERENCE, in_tasks=in_tasks), key=_ns)
        found = [one for one in found if _innermost(one.loops) == _innermost(best.loops)] or [best]
    return min(found, key=_ns).loops


def _ns(candidate: Candidate) -> float:
    return candidate.ns


def _innermost(loops: Sequence[Loop]) -> int:
    """The dimension of the innermost loop that is one."""
    return next((loop.dimension for loop in reversed(loops) if not loop.unrolled), -1)


def candidates(statement: Statement, machine: Machine, *, in_tasks: bool) -> list[Candidate]:
    """All that are considered, in an order in which the first of equally good ones is wanted."""
    if not statement.extents:
        return [Candidate((), cost_of(statement, (), machine).ns)]
    kernel = statement.tile
    if kernel is not None:
        rest = [Loop(d) for d in statement.parallel if d not in (kernel.outer, kernel.inner)]
        loops = (*rest, *(Loop(*block) for block in kernel.blocks), Loop(kernel.outer), Loop(kernel.inner))
        return [Candidate(loops, cost_of(statement, loops, machine, tiled=True).ns, tiled=True)]
    worth_tasks = in_tasks and statement.cost >= machine.parallel_ns
    wanted = min(WANTED_TASKS, statement.cost / machine.task_ns) if worth_tasks else 1
    found = []
    for loops in _orders(statement, machine, worth_tasks):
        if not may_reorder(statement, [loop.dimension for loop in loops if loop.step == 1]):
            continue
        ns = cost_of(statement, loops, machine).ns
        if any(loop.step > 1 for loop in loops) and not any(statement.reductions):
            ns *= _BLOCKS_GAIN
        found.append(Candidate(loops, ns * max(1.0, wanted / math.prod(task_counts(statement, loops)))))
    if not found:
        loops = tuple(map(Loop, range(len(statement.extents))))
        found.append(Candidate(loops, cost_of(statement, loops, machine).ns))
    return found


def _plainest(statement: Statement) -> tuple[Loop, ...] | None:
    """The loops of a statement that has nothing to choose: it walks all it touches row by row."""
    extents = statement.extents
    if not extents:
        return ()
    long = [d for d, extent in enumerate(extents) if extent != 1]
    if not long or any(statement.reductions) or statement.tile:
        return None
    last = long[-1]
    if extents[last] < SQUARE_BLOCK or any(a.computed or a.strides[last] not in (0, 1) for a in statement.accesses):
        return None
    return (*map(Loop, long), *(Loop(d) for d, extent in enumerate(extents) if extent == 1))


def _orders(statement: Statement, machine: Machine, worth_tasks: bool) -> Iterator[tuple[Loop, ...]]:
    extents = statement.extents
    # Dimensions of one element go last, where they vanish: in front, tasks are numbered by them.
    parallel = sorted(statement.parallel, key=lambda d: extents[d] == 1)
    for innermost in [d for d in reversed(range(len(extents))) if extents[d] != 1] or [len(extents) - 1]:
        outer = [d for d in parallel if d != innermost]
        reduced = [d for d in statement.reduced if d != innermost]
        if statement.reductions[innermost]:
            yield tuple(map(Loop, (*outer, *reduced, innermost)))
        elif reduced:
            yield from _down_columns(statement, outer, reduced, innermost, machine, worth_tasks)
        else:
            long, short = [d for d in outer if extents[d] != 1], [d for d in outer if extents[d] == 1]
            yield tuple(map(Loop, (*long, innermost, *short)))
    if not any(statement.reductions):
        yield from _in_blocks(statement, parallel)


def _down_columns(
    statement: Statement,
    outer: Sequence[int],
    reduced: Sequence[int],
    inner: int,
    machine: Machine,
    worth_tasks: bool,
) -> Iterator[tuple[Loop, ...]]:
    """A reduction outside of the contiguous dimension: rows whole, or in blocks that stay in the first cache or in
    registers, or several rows at a time."""
    extent = statement.extents[inner]
    around, rows, row = map(Loop, outer), tuple(map(Loop, reduced)), Loop(inner)
    block = COLUMN_BLOCK
    if worth_tasks and not outer:  # the blocks are all the tasks there can be
        columns = max(SQUARE_BLOCK, extent // WANTED_TASKS)
        block = min(block, -(-columns // machine.line_bytes) * machine.line_bytes)
        if _is_plain_sum(statement, inner, machine):
            jammed = _jammed(statement, inner, machine)
            if jammed:
                yield jammed
                return
            block = REGISTER_LINES * machine.line_bytes // statement.accesses[-1].width
    if block < extent:
        yield (*around, Loop(inner, block), *rows, row)
    else:
        yield (*around, *rows, row)


def _is_plain_sum(statement: Statement, inner: int, machine: Machine) -> bool:
    """Whether a statement is a plain sum, or the like, down columns of arrays beyond the caches."""
    writes = [access for access in statement.accesses if access.writes]
    kinds = {access.bits for access in statement.accesses}
    if len(writes) != 1 or len(kinds) != 1 or 0 in kinds:
        return False
    if not statement.is_simple or statement.ops > _MOST_OPS_IN_REGISTERS:
        return False
    rows = math.prod(statement.extents[d] for d in statement.reduced)
    row = statement.extents[inner] * writes[0].width
    return row % machine.line_bytes == 0 and rows >= _LEAST_ROWS and rows * row >= _CACHES * machine.l2_bytes


def _jammed(statement: Statement, inner: int, machine: Machine) -> tuple[Loop, ...] | None:
    """Loops in which some eight rows are added at a time, in blocks of columns that are a page of a row or half of
    one: what fetches ahead in processors follows rows that go on."""
    if len(statement.extents) != 2 or any(-1 in access.places for access in statement.accesses):
        return None
    (reduced,) = statement.reduced
    count = next((rows for rows in JAMMED if statement.extents[reduced] % rows == 0), 0)
    width = statement.accesses[-1].width
    columns = statement.extents[inner]
    pages = columns * width / machine.page_bytes
    if not count or pages < 2 or statement.extents[reduced] == count:  # fewer are not four tasks of half a page
        return None
    block = (machine.page_bytes if pages >= 4 else machine.page_bytes // 2) // width
    return Loop(inner, block), Loop(reduced, count), Loop(inner), Loop(reduced, unrolled=True)


def _in_blocks(statement: Statement, parallel: Sequence[int]) -> Iterator[tuple[Loop, ...]]:
    """Square blocks of two dimensions along which accesses are contiguous."""
    contiguous = {
        d
        for d in parallel
        for access in statement.accesses
        if abs(access.strides[d]) == 1 and not access.computed and statement.extents[d] > SQUARE_BLOCK
    }
    for inner, strided in itertools.permutations(sorted(contiguous), 2):
        rest = [Loop(d) for d in parallel if d not in (inner, strided)]
        yield (*rest, Loop(strided, SQUARE_BLOCK), Loop(inner, SQUARE_BLOCK), Loop(strided), Loop(inner))
