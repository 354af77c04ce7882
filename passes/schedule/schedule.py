"""In which loops the statements of a nest run, and the primitives that change that.

Each statement has its own loops, outermost first; neighbours may share leading ones. That is the whole tree: the
loops that all of a group share stand around the loops that some share, and so on. Primitives are functions from a
schedule to another. They raise `Illegal`, which says why, where the result would not be that of one statement after
the other: so every schedule that can be made is right, and a search need not look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lamina.passes.schedule.dependences import keep_apart, may_reorder, overlaps_itself
from lamina.passes.schedule.nest import DIMENSIONS, Nest, Statement


class Illegal(ValueError):
    """A schedule that would change results, or that does not exist."""


class Loop(NamedTuple):
    """A loop over a dimension of a statement. With a step above 1 it walks blocks of so many positions, and a loop
    over the same dimension inside it walks one; `unrolled`, it is no loop but its body so many times."""

    dimension: int
    step: int = 1
    unrolled: bool = False

    def __str__(self) -> str:
        name = DIMENSIONS[self.dimension]
        return f"{name}:{self.step}" if self.step > 1 else f"{name}*" if self.unrolled else name


class Schedule(NamedTuple):
    """The loops of a nest's statements."""

    nest: Nest
    loops: tuple[tuple[Loop, ...], ...]
    """Of each statement, outermost first."""
    shared: tuple[int, ...] = ()
    """How many leading loops each statement shares with the next."""
    tasks: tuple[tuple[int, int], ...] = ()
    """For each statement how many leading loops are divided among threads, in tasks of how many iterations at least;
    the same for all that share loops."""
    tiled: frozenset[int] = frozenset()
    """Statements whose two innermost loops walk a block that is done by a kernel of vectors."""

    @classmethod
    def of(cls, nest: Nest) -> Schedule:
        """One statement after the other, each in one serial loop per dimension."""
        count = len(nest.statements)
        loops = tuple(tuple(map(Loop, range(len(s.extents)))) for s in nest.statements)
        return cls(nest, loops, (0,) * max(0, count - 1), ((0, 1),) * count)

    def groups(self) -> list[range]:
        """Numbers of statements that share loops, or of one alone."""
        found, first = [], 0
        for number in range(len(self.loops)):
            if number == len(self.loops) - 1 or not self.shared[number]:
                found.append(range(first, number + 1))
                first = number + 1
        return found

    def common(self, group: range) -> int:
        """How many loops all of a group share."""
        if len(group) == 1:
            return len(self.loops[group.start])
        return min(self.shared[number] for number in group[:-1])

    def outer(self, number: int) -> int:
        """How many leading loops of a statement are not its own alone: tasks, and loops that neighbours share."""
        return max(self.tasks[number][0], *self.shared[max(0, number - 1) : number + 1], 0)


def walked(statement: Statement, loops: Sequence[Loop], level: int) -> int:
    """How many positions a loop walks: those of a block, where one of its dimension stands around it, else all."""
    dimension = loops[level].dimension
    blocks = (loop.step for loop in loops[:level] if loop.dimension == dimension)
    return min((statement.extents[dimension], *blocks))


def task_counts(statement: Statement, loops: Sequence[Loop]) -> list[int]:
    """How often each of the leading loops runs that may be tasks: those before the first reduction, and before the
    inside of a block."""
    counts: list[int] = []
    seen: set[int] = set()
    for loop in loops:
        if statement.reductions[loop.dimension] or loop.dimension in seen:
            break
        seen.add(loop.dimension)
        counts.append(-(-statement.extents[loop.dimension] // loop.step))
    return counts


def carried_from(statement: Statement, loops: Sequence[Loop]) -> int | None:
    """The number of the loop from which on a statement's sums are in registers: all loops from there are
    reductions. None for a statement that has no such loops."""
    level = len(loops)
    while level and statement.reductions[loops[level - 1].dimension]:
        level -= 1
    return None if level == len(loops) or statement.writes_along_reduction else level


def nested(schedule: Schedule, number: int, loops: Sequence[Loop]) -> Schedule:
    """The statement in these loops, none of which are tasks yet. Dimensions that are split come once for each step,
    the larger ones outside."""
    statement = schedule.nest.statements[number]
    what = f"s{number}"
    _check_cover(statement, loops, what)
    innermost = [loop.dimension for loop in loops if loop.step == 1]
    if not may_reorder(statement, innermost):
        raise Illegal(f"{what}: its positions depend on their order")
    outermost = list(dict.fromkeys(loop.dimension for loop in loops))
    if outermost != innermost and overlaps_itself(statement):
        raise Illegal(f"{what}: its positions depend on their order")
    changed = (*schedule.loops[:number], tuple(loops), *schedule.loops[number + 1 :])
    tasks = (*schedule.tasks[:number], (0, 1), *schedule.tasks[number + 1 :])
    fresh = schedule._replace(loops=changed, tasks=tasks, tiled=schedule.tiled - {number})
    for at in (number - 1, number):
        if 0 <= at < len(schedule.shared) and schedule.shared[at]:
            raise Illegal(f"{what} shares loops with s{at + 1 if at == number else at}; order them before")
    return fresh


def split(schedule: Schedule, number: int, dimension: int, step: int) -> Schedule:
    """A loop over blocks of `step` positions right outside the innermost loop of a dimension."""
    loops = schedule.loops[number]
    if not 1 < step < schedule.nest.statements[number].extents[dimension]:
        raise Illegal(f"s{number}: {DIMENSIONS[dimension]} can't be split by {step}")
    at = loops.index(next(loop for loop in loops if loop.dimension == dimension and loop.step == 1))
    return nested(schedule, number, (*loops[:at], Loop(dimension, step), *loops[at:]))


def unroll(schedule: Schedule, number: int, dimension: int) -> Schedule:
    """The innermost loop of a dimension, which must walk whole blocks and be the statement's own, as its body so many
    times."""
    loops = schedule.loops[number]
    at = next(at for at, loop in enumerate(loops) if loop[:2] == (dimension, 1))
    if at < schedule.outer(number):
        raise Illegal(f"s{number}: {DIMENSIONS[dimension]} is a task, or a loop of others, too")
    changed = (*loops[:at], loops[at]._replace(unrolled=True), *loops[at + 1 :])
    _check_cover(schedule.nest.statements[number], changed, f"s{number}")
    return schedule._replace(loops=(*schedule.loops[:number], changed, *schedule.loops[number + 1 :]))


def share(schedule: Schedule, number: int, count: int) -> Schedule:
    """A statement and the next share `count` leading loops (compute_at, loop fusion). Tasks are to be chosen after."""
    first, second = number, number + 1
    if second >= len(schedule.loops):
        raise Illegal(f"there is no statement after s{first}")
    if second in schedule.nest.barriers:
        raise Illegal(f"something between s{first} and s{second} touches memory")
    one, other = schedule.loops[first], schedule.loops[second]
    if not 0 <= count <= min(len(one), len(other)):
        raise Illegal(f"s{first} and s{second} have no {count} loops to share")
    statements = schedule.nest.statements
    for level in range(count):
        alike = walked(statements[first], one, level) == walked(statements[second], other, level)
        if not alike or one[level][1:] != other[level][1:]:
            raise Illegal(f"loop {level} of s{first} and of s{second} are not alike")
    shared = (*schedule.shared[:first], count, *schedule.shared[second:])
    fresh = schedule._replace(shared=shared)
    group = next(group for group in fresh.groups() if first in group)
    _check_apart(fresh, group)
    tasks = [(0, 1) if number in group else kept for number, kept in enumerate(schedule.tasks)]
    return fresh._replace(tasks=tuple(tasks))


def divide(schedule: Schedule, group: range, loops: int, grain: int) -> Schedule:
    """Leading loops of a group as tasks of at least `grain` iterations."""
    for number in group:
        statement = schedule.nest.statements[number]
        if loops > len(schedule.loops[number]) or any(
            statement.reductions[loop.dimension] for loop in schedule.loops[number][:loops]
        ):
            raise Illegal(f"s{number}: of its leading loops no {loops} are parallel")
        if loops and overlaps_itself(statement):
            raise Illegal(f"s{number}: its positions depend on their order")
    if len(group) > 1 and loops > schedule.common(group):
        raise Illegal(f"s{group.start} to s{group[-1]} share fewer than {loops} loops")
    dimensions = [loop.dimension for loop in schedule.loops[group.start][:loops]]
    if len(set(dimensions)) < len(dimensions):
        raise Illegal("a block and what is inside it can't both be tasks")
    tasks = [(loops, grain) if number in group else kept for number, kept in enumerate(schedule.tasks)]
    return schedule._replace(tasks=tuple(tasks))


def tile(schedule: Schedule, number: int) -> Schedule:
    """A statement's two innermost loops, which must walk blocks, by its kernel of vectors (tensorize)."""
    if not is_tileable(schedule.nest.statements[number], schedule.loops[number]):
        raise Illegal(f"s{number}: no kernel of vectors does its two innermost loops")
    return schedule._replace(tiled=schedule.tiled | {number})


def is_tileable(statement: Statement, loops: Sequence[Loop]) -> bool:
    """Whether a statement's kernel of vectors does a block of its two innermost loops."""
    kernel = statement.tile
    if kernel is None or tuple(loop.dimension for loop in loops[-2:]) != (kernel.outer, kernel.inner):
        return False
    walked = {loop.dimension for loop in loops if loop.step > 1}
    return {kernel.outer, kernel.inner} <= walked


def _check_cover(statement: Statement, loops: Sequence[Loop], what: str) -> None:
    """Each dimension once with step 1, outside of it loops over larger and larger blocks."""
    inside: dict[int, int] = {}
    for loop in reversed(loops):
        if not 0 <= loop.dimension < len(statement.extents):
            raise Illegal(f"{what} has no dimension {loop}")
        name = DIMENSIONS[loop.dimension]
        known = inside.get(loop.dimension)
        if known is None and loop.step != 1:
            raise Illegal(f"{what}: nothing walks a block of {name}")
        if known is not None and (loop.step <= known or loop.step % known or loop.unrolled):
            raise Illegal(f"{what}: {loop} stands around blocks of {known}")
        if loop.unrolled and known is None and not _is_whole(statement, loops, loop):
            raise Illegal(f"{what}: blocks of {name} are not all whole, so it can't be unrolled")
        inside[loop.dimension] = loop.step
    missing = [DIMENSIONS[d] for d in range(len(statement.extents)) if d not in inside]
    if missing:
        raise Illegal(f"{what}: no loop over {', '.join(missing)}")


def _is_whole(statement: Statement, loops: Sequence[Loop], loop: Loop) -> bool:
    blocks = [around.step for around in loops if around.dimension == loop.dimension and around.step > 1]
    return not blocks or statement.extents[loop.dimension] % blocks[-1] == 0


def _check_apart(schedule: Schedule, group: range) -> None:
    """What shares loops must keep to its own part of them, each with each."""
    statements, loops = schedule.nest.statements, schedule.loops
    for first in group:
        for second in range(first + 1, group.stop):
            depth = min(schedule.shared[first:second])
            pair = [[loop.dimension for loop in loops[number][:depth]] for number in (first, second)]
            carried = carried_from(statements[second], loops[second])
            if depth and not keep_apart(statements[first], pair[0], statements[second], pair[1], carried):
                raise Illegal(f"s{second} needs of s{first} what other iterations of their {depth} shared loops write")
