"""Unroll the innermost loops of a statement that are too short for vectors: the loop around them is the one that
becomes one over vectors.

    for i { for j { s = 0; for k < 3 { s += (x[i, k] - c[j, k])^2 } } }

is innermost in j then, with three differences in each iteration; points in space, colours, what is left of rows of
ten. Loops that statements share, tasks, and those of tiles of vectors stay loops.
"""

from __future__ import annotations

from lamina.passes.schedule.schedule import Schedule, unroll

_SHORT = 4  # shape: positions, which are a vector
_MOST_OPS = 64  # code: in the body of all that is unrolled


def unrolled(schedule: Schedule) -> Schedule:
    """The schedule with each statement's short innermost loops unrolled, where that leaves a longer one or none."""
    for number in range(len(schedule.loops)):
        if number not in schedule.tiled:
            for dimension in _short(schedule, number):
                schedule = unroll(schedule, number, dimension)
    return schedule


def _short(schedule: Schedule, number: int) -> list[int]:
    """The dimensions to unroll of a statement."""
    statement = schedule.nest.statements[number]
    ops = statement.ops + len(statement.accesses)
    found: list[int] = []
    for loop in reversed(schedule.loops[number][schedule.outer(number) :]):
        extent = statement.extents[loop.dimension]
        if loop.step > 1 or extent >= _SHORT:
            return found
        ops *= extent
        if ops > _MOST_OPS or loop.unrolled:
            return []
        if extent > 1:
            found.append(loop.dimension)
    return found
