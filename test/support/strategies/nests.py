"""Random nests and random legal schedules of them, and what a schedule's order of iterations computes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence

import numpy as np

from lamina.passes.schedule.nest import Access, Nest, Statement
from lamina.passes.schedule.schedule import (
    Illegal,
    Schedule,
    carried_from,
    divide,
    nested,
    share,
    split,
    unroll,
)

Arrays = dict[int, np.ndarray]


def draw_nest(rng: random.Random, sizes: Sequence[int] = (1, 2, 3, 4, 6)) -> Nest:
    """A few statements on a few buffers: element-wise, broadcast, transposing, and reducing ones."""
    extents = [rng.choice(sizes) for _ in range(3)]
    names = itertools.count()
    shapes: dict[int, tuple[int, ...]] = {}
    for _ in range(3):
        shapes[next(names)] = tuple(rng.choice(extents) for _ in range(rng.randint(1, 3)))
    statements = []
    for _ in range(rng.randint(1, 5)):
        rank = rng.choice((0, 1, 2, 2, 3))
        box = [rng.choice(extents) for _ in range(rank)]
        reductions = [rng.random() < 0.3 for _ in range(rank)]
        reads = []
        for buffer, shape in shapes.items():
            places = _fitting(rng, shape, box)
            if places is not None and rng.random() < 0.7:
                reads.append(_access(buffer, shape, places, rank, writes=False))
        kept = [d for d in range(rank) if not reductions[d]]
        rng.shuffle(kept)
        shape = tuple(box[d] for d in kept)
        in_place = [b for b, of in shapes.items() if of == shape and rng.random() < 0.5]
        target = in_place[0] if in_place else next(names)
        shapes[target] = shape
        write = _access(target, shape, tuple(kept), rank, writes=True)
        # What is changed in place is read at its own position only, what is summed up not at all.
        reads = [
            read
            for read in reads
            if read.buffer != target or (read.places == write.places and not any(reductions))
        ]
        statements.append(
            Statement(
                tuple(box),
                tuple(reductions),
                (*reads, write),
                cost=0.4 * math.prod(box),
                associative=rng.random() < 0.8,
            )
        )
    barriers = frozenset(n for n in range(1, len(statements)) if rng.random() < 0.1)
    return Nest(tuple(statements), barriers)


def _fitting(rng: random.Random, shape: tuple[int, ...], box: list[int]) -> tuple[int, ...] | None:
    """Dimensions of a box by which a buffer of this shape can be indexed."""
    left = list(range(len(box)))
    rng.shuffle(left)
    places = []
    for size in shape:
        found = next((d for d in left if box[d] == size), None)
        if found is None:
            return None
        left.remove(found)
        places.append(found)
    return tuple(places)


def _access(buffer: int, shape: tuple[int, ...], places: tuple[int, ...], rank: int, *, writes: bool) -> Access:
    strides = [0] * rank
    for place, dimension in enumerate(places):
        strides[dimension] = math.prod(shape[place + 1 :])
    return Access(buffer, buffer, tuple(strides), places, 8, 64, writes)


def draw_schedule(rng: random.Random, nest: Nest, tries: int = 30) -> Schedule:
    """A schedule that primitives lead to, those that refuse left out."""
    schedule = Schedule.of(nest)
    count = len(nest.statements)
    for _ in range(tries):
        number = rng.randrange(count)
        loops = list(schedule.loops[number])
        if not loops:
            continue
        try:
            match rng.randrange(5):
                case 0:
                    rng.shuffle(loops)
                    schedule = nested(schedule, number, loops)
                case 1:
                    schedule = split(schedule, number, rng.choice(loops).dimension, rng.choice((2, 3, 4)))
                case 2:
                    schedule = unroll(schedule, number, rng.choice(loops).dimension)
                case 3:
                    schedule = share(schedule, number, rng.randint(1, 3))
                case 4:
                    group = next(group for group in schedule.groups() if number in group)
                    schedule = divide(schedule, group, rng.randint(1, 2), 1)
        except Illegal:
            continue
    return schedule


Step = tuple[str, int, tuple[int, ...]]
"""A statement at a position ("at"), or where it begins to keep a sum in a register, or writes it ("begin", "end")."""


def order_of(schedule: Schedule, rng: random.Random) -> Iterator[Step]:
    """What is done in the order in which a schedule has it done; tasks in any order."""
    for group in schedule.groups():
        yield from _inside(schedule, list(group), 0, {number: {} for number in group}, rng)


def _inside(
    schedule: Schedule, run: list[int], level: int, at: dict[int, dict[int, tuple[int, int]]], rng: random.Random
) -> Iterator[Step]:
    while run:
        together = [run[0]]
        while len(together) < len(run) and schedule.shared[together[-1]] > level:
            together.append(run[len(together)])
        run = run[len(together) :]
        first = together[0]
        if level == len(schedule.loops[first]):
            yield "at", first, _position(schedule, first, at)
            continue
        summing = [n for n in together if level == carried_from(schedule.nest.statements[n], schedule.loops[n])]
        yield from (("begin", number, _position(schedule, number, at)) for number in summing)
        loop = schedule.loops[first][level]
        low, high = at[first].get(loop.dimension, (0, schedule.nest.statements[first].extents[loop.dimension]))
        starts = list(range(low, high, loop.step))
        if level < schedule.tasks[first][0]:
            rng.shuffle(starts)
        for start in starts:
            inner = dict(at)
            for number in together:
                own = schedule.loops[number][level].dimension
                inner[number] = {**at[number], own: (start, min(start + loop.step, high))}
            yield from _inside(schedule, together, level + 1, inner, rng)
        yield from (("end", number, _position(schedule, number, at)) for number in summing)


def _position(schedule: Schedule, number: int, at: dict[int, dict[int, tuple[int, int]]]) -> tuple[int, ...]:
    extents = schedule.nest.statements[number].extents
    return tuple(at[number].get(d, (0, 0))[0] for d in range(len(extents)))


def shapes_of(nest: Nest) -> dict[int, tuple[int, ...]]:
    """The shape of each buffer."""
    return {
        access.buffer: tuple(statement.extents[d] for d in access.places)
        for statement in nest.statements
        for access in statement.accesses
    }


def run_in_order(nest: Nest, arrays: Arrays, order: Iterator[Step]) -> None:
    """Do each position of each statement: it adds to what it reduces, else writes a mixture of what it reads."""
    registers: dict[int, int] = {}
    for what, number, position in order:
        statement = nest.statements[number]
        *reads, write = statement.accesses
        into = tuple(position[d] for d in write.places)
        if what == "begin":
            registers[number] = arrays[write.buffer][into]
            continue
        if what == "end":
            arrays[write.buffer][into] = registers.pop(number)
            continue
        values = [arrays[a.buffer][tuple(position[d] for d in a.places)] for a in reads]
        value = number + sum((place + 2) * v for place, v in enumerate(values))
        if any(statement.reductions):
            before = registers[number] if number in registers else arrays[write.buffer][into]
            # Of terms whose order counts, the sum says in which order they came.
            value = before + value if statement.associative else before * 3 + value
        if number in registers:
            registers[number] = value % 1_000_003
        else:
            arrays[write.buffer][into] = value % 1_000_003


def one_after_the_other(nest: Nest) -> Iterator[Step]:
    """Each statement at all its positions before the next."""
    for number, statement in enumerate(nest.statements):
        for position in np.ndindex(*statement.extents):
            yield "at", number, position
