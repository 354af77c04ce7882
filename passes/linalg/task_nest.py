"""Loops of which the leading ones are divided among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir, scf
from lamina.passes.linalg.lower_to_loops import GRAIN
from lamina.passes.loops import for_steps, index


def for_tasks(
    counts: Sequence[int], tasks: int, grain: int, body: Callable[[list[ir.Value]], None]
) -> None:
    """Loops below these counts, so many of the leading ones as tasks of at least `grain` iterations;
    `body` is given the loops' variables."""

    def serial(level: int, values: list[ir.Value]) -> None:
        if level == len(counts):
            body(values)
            return
        for_steps(
            index(0), index(counts[level]), 1, lambda i: serial(level + 1, [*values, i])
        )

    if not tasks:
        serial(0, [])
        return
    forall = scf.ForallOp([0] * tasks, list(counts[:tasks]), [1] * tasks)
    forall.attributes[GRAIN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), grain)
    with ir.InsertionPoint(forall.body):
        end = scf.InParallelOp()
    with ir.InsertionPoint(end):
        serial(tasks, list(forall.induction_variables))
