"""Producer-consumer fusion: which neighbouring statements share which of their loops.

    y[i, j] = exp(x[i, j]); s[i] = sum over j of y[i, j]; z[i, j] = y[i, j] / s[i]

runs as one loop over i: what one row writes, the next statement reads hot. The first two run in one loop over j as
well, which stores an element and adds it up, and needs no row of y. Statements share leading loops that are parallel
in all of them, or one over blocks of columns; of what is left, the innermost loop where it is vectorised for certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lamina.passes.framework.machine import Machine
from lamina.passes.linalg.analysis.parallel import is_worth_splitting, split
from lamina.passes.schedule.dependences import keep_apart
from lamina.passes.schedule.nest import Access, Nest, Statement
from lamina.passes.schedule.schedule import Loop, Schedule, carried_from, is_tileable, task_counts

LEAST_ITERATIONS = 4  # shape
"""Of loops that statements share, where there is work for tasks: as many cores are common."""
MOST_OPS = 48  # code
"""Of an innermost loop: of more, vectors no longer stay in registers."""


class _Member(NamedTuple):
    number: int
    statement: Statement
    loops: tuple[Loop, ...]

    @property
    def block(self) -> int | None:
        """The width of the blocks of columns that the outermost loop walks, if that is what it does."""
        first, *others = self.loops or (Loop(0),)
        if first.step == 1 or self.statement.reductions[first.dimension]:
            return None
        return first.step if all(loop.step == 1 for loop in others) else None

    @property
    def shareable(self) -> int:
        """How many leading loops are parallel and walk their dimension whole; or one over blocks."""
        if self.block is not None:
            return 1
        count = 0
        for loop in self.loops:
            if loop.step != 1 or self.statement.reductions[loop.dimension]:
                break
            count += 1
        return count

    def in_blocks(self, extent: int, width: int) -> list[_Member]:
        """The ways to walk blocks of a dimension of this extent, where this statement walks none yet."""
        if any(loop.step > 1 for loop in self.loops):
            return []
        return [
            self._replace(loops=(Loop(loop.dimension, width), *self.loops))
            for loop in self.loops
            if self.statement.extents[loop.dimension] == extent and not self.statement.reductions[loop.dimension]
        ]


def fused(
    nest: Nest,
    loops: Sequence[tuple[Loop, ...]],
    tasks: Sequence[tuple[int, int]],
    machine: Machine,
    *,
    in_tasks: bool,
) -> Schedule:
    """The schedule of statements in these loops, of whose leading ones so many are tasks where they stay alone;
    `in_tasks` where there may be any. Which statements share which loops is no matter of the machine: in a loop with
    other statements, sums are added in other lanes."""
    members = [_Member(number, *pair) for number, pair in enumerate(zip(nest.statements, loops, strict=True))]
    shared = [0] * max(0, len(members) - 1)
    divided = list(tasks)
    for group, depth in _groups(nest, members, in_tasks):
        if len(group) > 1:
            chosen = _tasks(group, depth, machine)
            for member in group:
                members[member.number] = member
                divided[member.number] = chosen
            for member in group[1:]:
                shared[member.number - 1] = depth
    _join_innermost(nest, members, shared, divided, in_tasks)
    tiled = frozenset(m.number for m in members if is_tileable(m.statement, m.loops))
    return Schedule(nest, tuple(m.loops for m in members), tuple(shared), tuple(divided), tiled)


def _groups(nest: Nest, members: Sequence[_Member], in_tasks: bool) -> list[tuple[list[_Member], int]]:
    """Statements that share leading loops, in order, with how many they share."""
    groups: list[tuple[list[_Member], int]] = []
    for member in members:
        admitted = None
        if groups and member.number not in nest.barriers:
            admitted = _admitted(*groups[-1], member, in_tasks)
        if admitted is None:
            groups.append(([member], member.shareable))
        else:
            groups[-1] = admitted
    return groups


def _admitted(
    group: list[_Member], depth: int, member: _Member, in_tasks: bool
) -> tuple[list[_Member], int] | None:
    first = group[0]
    ways = [member]
    if first.block is not None and member.block is None:
        extent = first.statement.extents[first.loops[0].dimension]
        ways = member.in_blocks(extent, first.block)
    elif first.block != member.block:
        return None
    for way in ways:
        loops = min(depth, way.shareable)
        for other in group:
            loops = _common(other, way, loops)
        if loops and not (in_tasks and _leaves_one_core(group, way, loops)):
            return [*group, way], loops
    return None


def _leaves_one_core(group: Sequence[_Member], member: _Member, loops: int) -> bool:
    """Whether statements that are work for several cores would share loops that are too few iterations for them."""
    count = math.prod(task_counts(member.statement, member.loops[:loops]))
    cost = sum(m.statement.cost for m in (*group, member))
    return is_worth_splitting(cost) and count < LEAST_ITERATIONS


def _common(first: _Member, second: _Member, loops: int) -> int:
    """How many of `loops` leading loops two statements can share."""
    dimensions = [[loop.dimension for loop in member.loops[:loops]] for member in (first, second)]
    for count, (of_first, of_second) in enumerate(zip(*dimensions, strict=True)):
        if first.statement.extents[of_first] != second.statement.extents[of_second]:
            loops = count
            break
    while loops and not keep_apart(
        first.statement, dimensions[0][:loops], second.statement, dimensions[1][:loops]
    ):
        loops -= 1
    return loops


def _tasks(group: Sequence[_Member], depth: int, machine: Machine) -> tuple[int, int]:
    first = group[0]
    counts = task_counts(first.statement, first.loops[:depth])
    return split(counts, sum(member.statement.cost for member in group), machine)


def _join_innermost(
    nest: Nest, members: Sequence[_Member], shared: list[int], tasks: list[tuple[int, int]], in_tasks: bool
) -> None:
    """Let neighbours share their innermost loop, too, where it is all they have besides the shared ones. One that all
    statements are in is no task any more, so that nothing that is worth several cores goes there."""
    joined: list[_Member] = []  # what is in the innermost loop of the statement before
    for member in members:
        before = member.number - 1
        outer = shared[before] if member.number else 0
        depth = len(member.loops)
        is_beside = bool(joined) and depth == len(joined[-1].loops)
        if is_beside and depth == outer:
            joined = [*joined, member] if _vectorizes_innermost(member) else []
        elif (
            is_beside
            and depth == outer + 1
            and member.number not in nest.barriers
            and (outer or not in_tasks or not is_worth_splitting(max(joined[-1].statement.cost, member.statement.cost)))
            and _fits(joined, member, outer)
        ):
            shared[before] = depth
            joined.append(member)
            if not outer:
                for one in joined:
                    tasks[one.number] = (0, 1)
        else:
            joined = [member] if _vectorizes_innermost(member) else []


def _fits(joined: Sequence[_Member], member: _Member, level: int) -> bool:
    """Whether an innermost loop can do one more statement: it runs as often, on elements as wide, and no iteration
    touches what another one writes."""
    if not _vectorizes_innermost(member):
        return False
    last, own = joined[0].loops[level], member.loops[level]
    together = [*(m.statement for m in joined), member.statement]
    return (
        joined[0].statement.extents[last.dimension] == member.statement.extents[own.dimension]
        and not any(loop.step > 1 for m in (joined[0], member) for loop in m.loops)
        and _bits(joined[0]) == _bits(member)
        and sum(statement.elementary for statement in together) <= 1
        and sum(_ops_in_loop(m) for m in (*joined, member)) <= MOST_OPS
        and all(
            keep_apart(
                other.statement,
                [loop.dimension for loop in other.loops],
                member.statement,
                [loop.dimension for loop in member.loops],
                carried_from(member.statement, member.loops),
            )
            for other in joined
        )
    )


def _in_loop(member: _Member) -> list[Access]:
    """The accesses that an innermost loop has: those of sums in registers are outside."""
    inner = member.loops[-1].dimension
    sums = member.statement.reductions[inner]
    return [access for access in member.statement.accesses if not (sums and access.writes)]


def _ops_in_loop(member: _Member) -> int:
    return member.statement.ops + len(_in_loop(member))


def _bits(member: _Member) -> set[int]:
    return {access.bits for access in _in_loop(member)}


def _vectorizes_innermost(member: _Member) -> bool:
    """Whether it is certain that an innermost loop becomes one over vectors."""
    statement = member.statement
    if not member.loops or not statement.vectorizes or statement.scalar_ops or statement.writes_along_reduction:
        return False
    inner = member.loops[-1].dimension
    if statement.reductions[inner] and not statement.associative:
        return False
    if not statement.reductions[inner] and any(statement.reductions):
        return False
    bits = _bits(member)
    return (
        len(bits) == 1
        and 0 not in bits
        and all(
            -1 not in access.places
            and (
                (access.strides[inner] == 1 and access.places[-1] == inner and access.places.count(inner) == 1)
                or (access.strides[inner] == 0 and not access.writes and inner not in access.places)
            )
            for access in _in_loop(member)
        )
    )
