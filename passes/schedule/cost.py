"""What a statement takes in given loops on a machine, by arithmetic alone.

Two sums, of which the larger counts: instructions, those on vectors where the innermost loop can be one over vectors;
and lines of memory, each counted in every cache that the lines of the loops inside do not fit into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lamina.passes.framework.machine import Machine
from lamina.passes.schedule.nest import Access, Statement
from lamina.passes.schedule.schedule import Loop, walked

VECTOR = 32
"""Bytes of the vectors whose operations a machine has the times of."""
_UNROLLED = 16
"""Iterations of an innermost loop of which compilers leave no loop."""
WANTED_TASKS = 8
"""Of a loop nest that is worth several cores, whose number nobody knows here."""


class Cost(NamedTuple):
    """Nanoseconds of instructions and of memory."""

    instructions: float
    memory: float

    @property
    def ns(self) -> float:
        return max(self.instructions, self.memory) + 0.25 * min(self.instructions, self.memory)


def cost_of(statement: Statement, loops: Sequence[Loop], machine: Machine, *, tiled: bool = False) -> Cost:
    """The cost of a statement alone in these loops, on one core."""
    if not loops:
        return Cost(machine.op_ps / 1000 * statement.ops, 0.0)
    # How often each body runs for each run of its loop, in the mean: last blocks count in part.
    counts = [max(1.0, walked(statement, loops, level) / loop.step) for level, loop in enumerate(loops)]
    serial = [level for level, loop in enumerate(loops) if not loop.unrolled]
    innermost = serial[-1] if serial else 0
    return Cost(
        _instructions(statement, loops, counts, innermost, tiled, machine) / 1000,
        _memory(statement, loops, counts, None if tiled else loops[innermost].dimension, machine),
    )


def _instructions(
    statement: Statement,
    loops: Sequence[Loop],
    counts: Sequence[float],
    innermost: int,
    tiled: bool,
    machine: Machine,
) -> float:
    """Picoseconds of them."""
    positions = statement.positions
    inner, length = loops[innermost].dimension, counts[innermost]
    together = 1.0
    for count in counts[innermost + 1 :]:
        together *= count
    width = max((access.width for access in statement.accesses), default=4)
    lanes = max(1.0, min(VECTOR // width, length))
    apart = [access for access in statement.accesses if not tiled and _is_apart(access, inner)]
    if statement.scalar_ops or any(access.writes for access in apart):
        lanes = 1.0
    each = (statement.ops * machine.op_ps + statement.elementary * machine.function_ps) / lanes
    for access in statement.accesses:
        if access in apart:
            each += machine.apart_ps
        elif tiled or access.strides[inner] or access.computed:
            is_sum = access.writes and any(statement.reductions)
            each += (2 if is_sum else 1) * machine.access_ps / lanes / (together if access.writes else 1)
    turn: float = machine.loop_ps + (machine.lanes_ps if statement.reductions[inner] else 0)
    turn *= min(1.0, length / _UNROLLED)
    return positions * each + positions / (length * together) * turn


def _is_apart(access: Access, inner: int) -> bool:
    return access.computed or abs(access.strides[inner]) > 1


def _memory(
    statement: Statement, loops: Sequence[Loop], counts: Sequence[float], inner: int | None, machine: Machine
) -> float:
    beyond = (
        (machine.l1_bytes, machine.l2_line_ps),
        (machine.l2_bytes, machine.l3_line_ps),
        (machine.l3_bytes, machine.memory_line_ps),
    )
    lines = (ps * _lines_from_beyond(statement, loops, counts, inner, cache, machine) for cache, ps in beyond)
    return sum(lines) / 1000


def _lines_from_beyond(
    statement: Statement,
    loops: Sequence[Loop],
    counts: Sequence[float],
    inner: int | None,
    cache: int,
    machine: Machine,
) -> float:
    """Lines that come from beyond a cache, those that nothing fetches ahead as several: what the largest inner part of
    the loops touches whose lines fit into it, as often as that part runs; nothing where all fit that is touched."""
    inside = len(loops)
    lines = [1.0] * len(statement.accesses)
    while inside:
        wider = [_lines(access, loops, counts, inside - 1, machine) for access in statement.accesses]
        if sum(size for _, size in wider) > cache:
            break
        lines = [number for number, _ in wider]
        inside -= 1
    if not inside:
        return 0.0
    runs = 1.0
    for count in counts[:inside]:
        runs *= count
    found = 0.0
    for access, number in zip(statement.accesses, lines, strict=True):
        # A line that the next run of the inner part touches again has stayed where it is.
        loop = loops[inside - 1]
        step = abs(access.strides[loop.dimension]) * loop.step * access.width
        inner_runs = runs
        if step < machine.line_bytes:
            inner_runs = runs / counts[inside - 1] * max(1.0, counts[inside - 1] * step / machine.line_bytes)
        is_ahead = inner is None or abs(access.strides[inner]) * access.width < machine.line_bytes
        found += number * inner_runs * (1 if is_ahead else machine.not_ahead)
    return found


def _lines(
    access: Access, loops: Sequence[Loop], counts: Sequence[float], first: int, machine: Machine
) -> tuple[float, float]:
    """The lines that an access touches in the loops from `first` on, and the bytes of cache that they take."""
    line, page = machine.line_bytes, machine.page_bytes
    lines, crowd = 1.0, 1.0
    for loop, count in zip(loops[first:], counts[first:], strict=True):
        step = abs(access.strides[loop.dimension]) * loop.step * access.width
        if not step:
            continue
        lines *= count if step >= line else max(1.0, count * step / line)
        if step % page == 0:
            crowd = max(crowd, min(count, page // line) / machine.l1_ways)
    return lines, lines * line * crowd
