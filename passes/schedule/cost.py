"""What a statement takes in given loops on a machine, by arithmetic alone.

Two sums, of which the larger counts: instructions, those on vectors where the innermost loop can be one over vectors;
and lines of memory, each counted in every cache that the lines of the loops inside do not fit into. The numbers of
nanoseconds are those of a core of some 4 GHz: they weigh orders of loops against each other and predict nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lamina.passes.machine import Machine
from lamina.passes.schedule.nest import Access, Statement
from lamina.passes.schedule.schedule import Loop, walked

LINE = 64
"""Bytes of a line in caches: what all processors that we know have."""
PAGE = 4096
_VECTOR = 32  # bytes
_OP, _ELEMENTARY, _ACCESS, _APART = 0.15, 3.0, 0.25, 0.6
"""Nanoseconds of an operation on a vector or on one element, of an elementary function, of a contiguous load or store,
of one of an element that lies apart."""
_TURN, _SUM = 1.5, 3.0
"""Nanoseconds of an innermost loop beyond its iterations, and of what adds up the lanes after one that sums."""
_UNROLLED = 16
"""Iterations of an innermost loop of which compilers leave no loop."""
_LINE_FROM = (1.2, 3.5, 7.0)
"""Nanoseconds of a line that comes from the second cache, from the third, from memory."""
_NOT_AHEAD = 2
"""As much of a line that is not next to the one before."""
_WAYS = 8
"""Lines of a cache that may be any multiple of a page apart."""
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
        return Cost(_OP * statement.ops, 0.0)
    # How often each body runs for each run of its loop, in the mean: last blocks count in part.
    counts = [max(1.0, walked(statement, loops, level) / loop.step) for level, loop in enumerate(loops)]
    serial = [level for level, loop in enumerate(loops) if not loop.unrolled]
    innermost = serial[-1] if serial else 0
    return Cost(
        _instructions(statement, loops, counts, innermost, tiled),
        _memory(statement, loops, counts, None if tiled else loops[innermost].dimension, machine),
    )


def _instructions(
    statement: Statement, loops: Sequence[Loop], counts: Sequence[float], innermost: int, tiled: bool
) -> float:
    positions = statement.positions
    inner, length = loops[innermost].dimension, counts[innermost]
    together = 1.0
    for count in counts[innermost + 1 :]:
        together *= count
    width = max((access.width for access in statement.accesses), default=4)
    lanes = max(1.0, min(_VECTOR // width, length))
    apart = [access for access in statement.accesses if not tiled and _is_apart(access, inner)]
    if statement.scalar_ops or any(access.writes for access in apart):
        lanes = 1.0
    each = statement.ops * _OP / lanes + statement.elementary * _ELEMENTARY / lanes
    for access in statement.accesses:
        if access in apart:
            each += _APART
        elif tiled or access.strides[inner] or access.computed:
            is_sum = access.writes and any(statement.reductions)
            each += (2 if is_sum else 1) * _ACCESS / lanes / (together if access.writes else 1)
    turn = (_TURN + (_SUM if statement.reductions[inner] else 0.0)) * min(1.0, length / _UNROLLED)
    return positions * each + positions / (length * together) * turn


def _is_apart(access: Access, inner: int) -> bool:
    return access.computed or abs(access.strides[inner]) > 1


def _memory(
    statement: Statement, loops: Sequence[Loop], counts: Sequence[float], inner: int | None, machine: Machine
) -> float:
    caches = (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes)
    total = 0.0
    for cache, price in zip(caches, _LINE_FROM, strict=True):
        total += price * _lines_from_beyond(statement, loops, counts, inner, cache)
    return total


def _lines_from_beyond(
    statement: Statement, loops: Sequence[Loop], counts: Sequence[float], inner: int | None, cache: int
) -> float:
    """Lines that come from beyond a cache, those that nothing fetches ahead as two: what the largest inner part of the
    loops touches whose lines fit into it, as often as that part runs. Nothing where all fit that is touched at all."""
    inside = len(loops)
    lines = [1.0] * len(statement.accesses)
    while inside:
        wider = [_lines(access, loops, counts, inside - 1) for access in statement.accesses]
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
        if step < LINE:
            inner_runs = runs / counts[inside - 1] * max(1.0, counts[inside - 1] * step / LINE)
        is_ahead = inner is None or abs(access.strides[inner]) * access.width < LINE
        found += number * inner_runs * (1 if is_ahead else _NOT_AHEAD)
    return found


def _lines(access: Access, loops: Sequence[Loop], counts: Sequence[float], first: int) -> tuple[float, float]:
    """The lines that an access touches in the loops from `first` on, and the bytes of cache that they take."""
    lines, crowd = 1.0, 1.0
    for loop, count in zip(loops[first:], counts[first:], strict=True):
        step = abs(access.strides[loop.dimension]) * loop.step * access.width
        if not step:
            continue
        lines *= count if step >= LINE else max(1.0, count * step / LINE)
        if step % PAGE == 0:
            crowd = max(crowd, min(count, PAGE // LINE) / _WAYS)
    return lines, lines * LINE * crowd
