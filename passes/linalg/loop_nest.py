"""The loops a linalg op runs as: what `linalg-choose-loops` decides and `linalg-lower-to-loops`
emits.

Printed on the op as `lamina.loops = array<i64: dimension, step, dimension, step, ...>`, outermost
first. A step above 1 walks blocks; the same dimension must then follow with step 1 to walk each
block's inside. `lamina.tasks = array<i64: loops, grain>` runs the leading loops as parallel tasks,
at least `grain` iterations at a time.
`lamina.shared = array<i64: group, loops>` says that all ops of that group run inside the same
leading loops.
"""

from __future__ import annotations

from typing import NamedTuple

from lamina.dialects.vendors import ir

LOOPS = "lamina.loops"
TASKS = "lamina.tasks"
SHARED = "lamina.shared"


class Loop(NamedTuple):
    """One loop over a dimension of the iteration space; step > 1 walks blocks of that size."""

    dimension: int
    step: int = 1


class LoopNest(NamedTuple):
    """Loops from the outermost in; the leading `tasks` of them run as parallel tasks of at least
    `grain` iterations."""

    loops: tuple[Loop, ...]
    tasks: int = 0
    grain: int = 1


def write_nest(op: ir.Operation, nest: LoopNest) -> None:
    """Record a nest on a linalg op."""
    op.attributes[LOOPS] = ir.DenseI64ArrayAttr.get(
        [n for loop in nest.loops for n in (loop.dimension, loop.step)]
    )
    if TASKS in op.attributes:
        del op.attributes[TASKS]
    if nest.tasks:
        op.attributes[TASKS] = ir.DenseI64ArrayAttr.get([nest.tasks, nest.grain])


def read_nest(op: ir.Operation, dimensions: int) -> LoopNest:
    """The nest recorded on a linalg op, or one serial loop per dimension in order."""
    if LOOPS not in op.attributes:
        return LoopNest(tuple(Loop(d) for d in range(dimensions)))
    flat = list(ir.DenseI64ArrayAttr(op.attributes[LOOPS]))
    loops = tuple(Loop(d, s) for d, s in zip(flat[::2], flat[1::2], strict=True))
    if TASKS not in op.attributes:
        return LoopNest(loops)
    tasks, grain = ir.DenseI64ArrayAttr(op.attributes[TASKS])
    return LoopNest(loops, tasks, grain)


def write_shared(op: ir.Operation, group: int, loops: int) -> None:
    """Record that an op shares its leading loops with the others of a group."""
    op.attributes[SHARED] = ir.DenseI64ArrayAttr.get([group, loops])


def read_shared(op: ir.Operation) -> tuple[int, int] | None:
    """(group, number of shared loops), or None for an op that runs alone."""
    if SHARED not in op.attributes:
        return None
    group, loops = ir.DenseI64ArrayAttr(op.attributes[SHARED])
    return group, loops
