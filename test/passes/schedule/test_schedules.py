"""Schedules: whatever primitives allow gives the results of one statement after the other; texts come back."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from support.strategies.effort import examples
from support.strategies.nests import (
    draw_nest,
    draw_schedule,
    one_after_the_other,
    order_of,
    run_in_order,
    shapes_of,
)

from lamina.passes.framework.machine import REFERENCE
from lamina.passes.schedule import candidates, words
from lamina.passes.schedule.fusion import fused
from lamina.passes.schedule.nest import Access, Nest, Statement
from lamina.passes.schedule.schedule import (
    Illegal,
    Loop,
    Schedule,
    divide,
    nested,
    share,
    split,
    tile,
    unroll,
)
from lamina.passes.schedule.unrolling import unrolled


def test_any_legal_schedule_computes_the_same():
    for seed in range(examples(150)):
        rng = random.Random(seed)
        nest = draw_nest(rng)
        _check(nest, draw_schedule(rng, nest), rng)


def test_what_is_chosen_is_legal_and_computes_the_same():
    for seed in range(examples(150)):
        rng = random.Random(seed)
        nest = draw_nest(rng)
        _choose(nest, rng)


def _choose(nest: Nest, rng: random.Random) -> None:
    machine = replace(REFERENCE, parallel_ns=rng.choice((1, 1 << 60)), task_ns=100)
    loops = [candidates.chosen(statement, machine, in_tasks=True) for statement in nest.statements]
    for statement in nest.statements:
        assert candidates.candidates(statement, machine, in_tasks=True)
    schedule = unrolled(fused(nest, loops, [(0, 1)] * len(loops), machine, in_tasks=rng.random() < 0.5))
    assert words.from_text(words.to_text(schedule), nest) == schedule
    _check(nest, schedule, rng)


def _check(nest: Nest, schedule: Schedule, rng: random.Random) -> None:
    filled = np.random.default_rng(rng.randrange(1 << 30))
    shapes = shapes_of(nest)
    given = {buffer: filled.integers(0, 1000, shape) for buffer, shape in shapes.items()}
    expected = {buffer: array.copy() for buffer, array in given.items()}
    run_in_order(nest, expected, one_after_the_other(nest))
    run_in_order(nest, given, order_of(schedule, rng))
    for buffer, array in expected.items():
        np.testing.assert_array_equal(given[buffer], array, words.to_text(schedule))
    assert words.from_text(words.to_text(schedule), nest) == schedule


def _read(buffer, *strides, places):
    return Access(buffer, buffer, strides, places, 4, 32, False)


def _write(buffer, *strides, places):
    return Access(buffer, buffer, strides, places, 4, 32, True)


ROWS = Nest(
    (
        Statement((8, 16), (False, False), (_read(0, 16, 1, places=(0, 1)), _write(1, 16, 1, places=(0, 1))), 100.0),
        Statement((8, 16), (False, True), (_read(1, 16, 1, places=(0, 1)), _write(2, 1, 0, places=(0,))), 100.0),
        Statement(
            (8, 16),
            (False, False),
            (_read(1, 16, 1, places=(0, 1)), _read(2, 1, 0, places=(0,)), _write(3, 16, 1, places=(0, 1))),
            100.0,
        ),
    )
)


def test_rows_are_fused_and_the_sum_with_what_makes_its_terms():
    loops = [candidates.chosen(statement, REFERENCE, in_tasks=False) for statement in ROWS.statements]
    schedule = fused(ROWS, loops, [(0, 1)] * 3, REFERENCE, in_tasks=False)
    assert words.to_text(schedule) == "s0: i j; s1: i j; s2: i j; share s0 s1 at 2; share s1 s2 at 1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: share(s, 1, 2), "s2 needs of s1 what other iterations of their 2 shared loops write"),
        (lambda s: share(s, 2, 1), "there is no statement after s2"),
        (lambda s: split(s, 0, 1, 16), "j can't be split by 16"),
        (lambda s: nested(s, 0, [Loop(1), Loop(1, 4), Loop(0)]), "nothing walks a block of j"),
        (lambda s: nested(s, 0, [Loop(0)]), "no loop over j"),
        (lambda s: unroll(split(s, 0, 1, 3), 0, 1), "blocks of j are not all whole"),
        (lambda s: unroll(share(s, 0, 1), 1, 0), "s1: i is a task, or a loop of others, too"),
        (lambda s: unroll(divide(s, range(1), 1, 1), 0, 0), "s0: i is a task, or a loop of others, too"),
        (lambda s: divide(s, range(1, 2), 2, 1), "no 2 are parallel"),
        (lambda s: tile(s, 0), "no kernel of vectors"),
    ],
)
def test_what_would_change_results_is_refused(change, message):
    with pytest.raises(Illegal, match=message):
        change(Schedule.of(ROWS))


def test_what_is_too_short_for_vectors_is_unrolled():
    """Of rows of three the loop around them is innermost; not where others share theirs, or bodies would be long."""
    points = Statement(
        (100, 8, 3),
        (False, False, True),
        (
            _read(0, 3, 0, 1, places=(0, 2)),
            _read(1, 0, 3, 1, places=(1, 2)),
            _write(2, 8, 1, 0, places=(0, 1)),
        ),
        1.0,
        ops=3,
    )
    long = points._replace(ops=30)
    assert words.to_text(unrolled(Schedule.of(Nest((points,))))) == "s0: i j k*"
    assert words.to_text(unrolled(Schedule.of(Nest((long,))))) == "s0: i j k"
    alike = share(Schedule.of(Nest((points._replace(extents=(100, 3, 3)),) * 2)), 0, 2)
    assert words.to_text(unrolled(alike)) == "s0: i j k*; s1: i j k*; share s0 s1 at 2"


def test_an_order_that_counts_is_kept():
    ordered = Statement(
        (4, 4), (True, True), (_read(0, 4, 1, places=(0, 1)), _write(1, 0, 0, places=())), 1.0, associative=False
    )
    with pytest.raises(Illegal, match="depend on their order"):
        nested(Schedule.of(Nest((ordered,))), 0, [Loop(1), Loop(0)])


@pytest.mark.parametrize("text", ["s0 i j", "s0: i jj", "share s0 s2 at 1", "s9: i", "parallel s0", "s0: i j:1 j"])
def test_a_text_that_is_no_schedule_says_so(text):
    with pytest.raises(ValueError, match=r"s0|s9|s2|no loop"):
        words.from_text(text, ROWS)


SMALL = replace(REFERENCE, l1_bytes=4096, l2_bytes=1 << 16, parallel_ns=1000, task_ns=500)
LARGE = replace(REFERENCE, l2_bytes=1 << 24, parallel_ns=1 << 40)


@pytest.mark.parametrize("machine", [SMALL, LARGE])
def test_the_machine_does_not_decide_how_sums_are_added(machine):
    for seed in range(examples(100)):
        rng = random.Random(seed)
        nest = draw_nest(rng, sizes=(1, 3, 16, 200, 3000))
        of_lanes = []
        for target in (REFERENCE, machine):
            loops = [candidates.chosen(statement, target, in_tasks=True) for statement in nest.statements]
            schedule = fused(nest, loops, [(0, 1)] * len(loops), target, in_tasks=True)
            sums = [number for number, statement in enumerate(nest.statements) if any(statement.reductions)]
            of_lanes.append([(_innermost(schedule, number), _beside(schedule, number)) for number in sums])
        assert of_lanes[0] == of_lanes[1]


def _innermost(schedule: Schedule, number: int) -> int | None:
    return next((loop.dimension for loop in reversed(schedule.loops[number]) if not loop.unrolled), None)


def _beside(schedule: Schedule, number: int) -> list[int]:
    """The statements in the innermost loop of one."""
    found = [number]
    while found[0] and schedule.shared[found[0] - 1] == len(schedule.loops[number]):
        found.insert(0, found[0] - 1)
    while found[-1] < len(schedule.shared) and schedule.shared[found[-1]] == len(schedule.loops[number]):
        found.append(found[-1] + 1)
    return found
