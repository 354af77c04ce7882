"""How much work a loop nest is, and into how many tasks it is worth splitting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lamina.passes.linalg.analysis.structure import Generic
from lamina.passes.machine import Machine

_EXPENSIVE = 20.0  # a transcendental, in units of a simple operation
_DIVISION = 8.0
_LEAST_TASKS = 4.0
LEAST_SPLIT = 30_000.0
"""Nanoseconds from which on a reduction is split into partial sums: the same on every machine, as it decides how
sums are rounded."""


def total_cost(generic: Generic) -> float:
    """Nanoseconds of the whole iteration space, roughly, on one core with vectors."""
    operations = sum(_operations(generic))
    operands = len(generic.inputs) + len(generic.outputs)
    return (0.03 * operations + 0.1 * operands) * math.prod(generic.extents)


def is_costly(generic: Generic) -> bool:
    """Whether an element takes so long that it is never to be computed twice."""
    return any(operations > 1.0 for operations in _operations(generic))


def _operations(generic: Generic) -> Iterator[float]:
    """What each op of a body takes, in units of a simple one."""
    for op in generic.body.operations:
        name = op.operation.name
        if name.startswith("math."):
            yield _EXPENSIVE
        else:
            yield _DIVISION if "div" in name or "rem" in name else 1.0


def split(counts: Sequence[int], cost: float, machine: Machine) -> tuple[int, int]:
    """(leading loops to run as tasks, least iterations of a task) for loops of these counts, which take so many
    nanoseconds in all.

    (0, 1) when the work is not worth handing to other threads, or does not divide. No more loops become
    tasks than give every core enough of them.
    """
    if cost < machine.parallel_ns:
        return 0, 1
    enough = max(_LEAST_TASKS, cost / machine.task_ns)
    tasks, iterations = 0, 1
    while tasks < len(counts) and iterations < enough:
        iterations *= counts[tasks]
        tasks += 1
    grain = max(1, math.ceil(iterations * machine.task_ns / cost))
    return (0, 1) if iterations < 2 or grain >= iterations else (tasks, grain)
