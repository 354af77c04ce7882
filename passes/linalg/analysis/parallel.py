"""How much work a loop nest is, and into how many tasks it is worth splitting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lamina.passes.framework.machine import REFERENCE, Machine
from lamina.passes.linalg.analysis.structure import Generic

_WANTED_TASKS = 4
_DIVISION = 8.0  # operations
_OPERATION_NS = REFERENCE.on_elements(REFERENCE.op_ps)
_OPERAND_NS = REFERENCE.on_elements(2 * REFERENCE.access_ps)


def total_cost(generic: Generic) -> float:
    """Nanoseconds of the whole iteration space, roughly, on a core of the reference machine: where work is divided
    into partial sums decides how they are rounded, and must be the same everywhere."""
    operations = sum(_operations(generic))
    operands = len(generic.inputs) + len(generic.outputs)
    return (_OPERATION_NS * operations + _OPERAND_NS * operands) * math.prod(generic.extents)


def is_worth_splitting(cost: float) -> bool:
    """Whether a reduction that takes so many nanoseconds is split into partial sums."""
    return cost >= REFERENCE.parallel_ns



def is_costly(generic: Generic) -> bool:
    """Whether an element takes so long that it is never to be computed twice."""
    return any(operations > 1.0 for operations in _operations(generic))


def _operations(generic: Generic) -> Iterator[float]:
    """What each op of a body takes, in units of a simple one."""
    for op in generic.body.operations:
        name = op.operation.name
        if name.startswith("math."):
            yield REFERENCE.function_ps / REFERENCE.op_ps
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
    enough = max(_WANTED_TASKS, cost / machine.task_ns)
    tasks, iterations = 0, 1
    while tasks < len(counts) and iterations < enough:
        iterations *= counts[tasks]
        tasks += 1
    grain = max(1, math.ceil(iterations * machine.task_ns / cost))
    return (0, 1) if iterations < 2 or grain >= iterations else (tasks, grain)
