"""Kernels that other processes compile are those that this one would, and there when they fail."""

from __future__ import annotations

import math
import os
import sys
import time

import pytest

from lamina.backends import kernels as kernels_module
from lamina.backends import workers, workforce
from lamina.backends.cpu.kernel import KernelObject
from lamina.backends.kernels import Kernels
from lamina.backends.machine import compile_times
from lamina.backends.planned import kernels_of
from lamina.backends.stages import run_fuse, run_optimize, run_plan, working_copy
from lamina.backends.target import Target
from lamina.dialects.context import parse
from lamina.dialects.vendors import ir
from lamina.passes.framework import instrumentation
from lamina.passes.framework.instrumentation import Instrumentation

COUNT = 10


def fused() -> ir.Module:
    """A program of many small kernels, each of a size of its own."""
    kinds = [f"tensor<{n + 2}xf32>" for n in range(COUNT)]
    given = ", ".join(f"%a{n}: {kind}" for n, kind in enumerate(kinds))
    body = "\n".join(f"%{n} = stablehlo.sine %a{n} : {kind}" for n, kind in enumerate(kinds))
    results = ", ".join(f"%{n}" for n in range(COUNT))
    listed = ", ".join(kinds)
    text = f"func.func @main({given}) -> ({listed}) {{\n{body}\nreturn {results} : {listed}\n}}"
    module, watch = working_copy(parse(text)), Instrumentation()
    run_optimize(module, watch)
    run_fuse(module, watch)
    return module


def compiled() -> dict[str, KernelObject]:
    """The kernels, of which workers may take some before there is a plan."""
    module = fused()
    with Kernels(Target.host(), None) as kernels:
        kernels.offer(module)
        run_plan(module, Instrumentation())
        return kernels.compiled(kernels.distinct(kernels_of(module)).values())


@pytest.fixture
def one_worker(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAMINA_COMPILE_WORKERS", "1")
    workers.prepare()
    (worker,) = workers._workers
    yield worker
    workers._end_all()
    for _ in range(5000):
        if not workers._workers:
            return
        with workers._lock:
            workers._lock.notify_all()
        time.sleep(0.05)


def test_a_worker_compiles_the_same_and_may_die(one_worker, monkeypatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(workers.Batch, "hand_out", lambda batch: None)
        alone = compiled()

    # With this process waiting, the worker does all but the first.
    taken: list[str] = []
    answered: list[bool] = []
    take, result = workers.Batch.take, workers.Batch.result

    def one_only(batch, most):
        while taken and batch._waiting:
            time.sleep(0.01)
        taken.extend(found := take(batch))
        return found

    def seen(batch, symbol):
        found = result(batch, symbol)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(workers.Batch, "take", one_only)
    monkeypatch.setattr(workers.Batch, "result", seen)
    assert compiled() == alone
    assert answered == [True] * (COUNT - 1)

    # One that is killed with a kernel in hand leaves it to this process.
    taken.clear()
    answered.clear()
    hand_out = workers.Batch.hand_out

    def deadly(batch):
        job = hand_out(batch)
        if job is not None and one_worker.is_there():
            one_worker.end()
            batch._waiting.clear()
        return job

    monkeypatch.setattr(workers.Batch, "hand_out", deadly)
    assert compiled() == alone
    assert True not in answered


@pytest.mark.filterwarnings("ignore:os.fork")  # JAX, imported by other tests, warns
def test_no_workers_for_small_programs_nor_in_forks(one_worker, monkeypatch) -> None:
    monkeypatch.setattr(workers, "prepare", lambda seconds: pytest.fail("workers are started"))
    for few, is_shared in ((1, False), (workers.LEAST_KERNELS - 1, True)):
        batch = workers.Batch(Target.host())
        monkeypatch.setattr(batch, "hand_out", lambda: None)
        with batch:
            batch.add({f"k{n}": "" for n in range(few)})
            assert (batch in workers._batches) is is_shared  # with those that are there
    child = os.fork()
    if not child:
        os._exit(len(workers._workers))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_python_that_cannot_be_started(monkeypatch) -> None:
    monkeypatch.setenv("LAMINA_COMPILE_WORKERS", "1")
    monkeypatch.setattr(workers.sys, "executable", "/nowhere/python")
    workers.prepare()
    assert not workers._workers


def test_workers_start_when_a_large_program_is_to_come(monkeypatch) -> None:
    started: list[float] = []
    monkeypatch.setattr(workers, "prepare", started.append)
    workers.expect(workers.LEAST_OPERATIONS - 1)
    workers.expect(workers.LEAST_OPERATIONS, Target("cuda", "sm_90a"))
    assert not started
    workers.expect(2000)
    assert started == [1.0]
    with workers.Batch(Target.host()) as batch:
        batch.add({f"k{n}": "a" * 10_000 for n in range(workers.LEAST_KERNELS)})
        batch.take(6)  # these are in hand
        batch.add({"another": "a" * 20_000})
    expected = [seconds * compile_times.PER_COST for seconds in (80_000, 80_000)]
    assert started[1:] == pytest.approx(expected)


def test_how_many_workers_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMINA_COMPILE_WORKERS", raising=False)
    monkeypatch.setattr(workers, "idle_processors", lambda own: 63.0)
    for threads, count in ((1, 0), (3, 2), (64, 8)):  # a cgroup may pay for less than there are CPUs
        monkeypatch.setattr(workers, "machine_limits", lambda threads=threads: (threads, 1 << 30))
        assert workers._wanted(math.inf) == count
    assert workers._wanted(0.5) == 0
    monkeypatch.setattr(workers, "idle_processors", lambda own: 0.0)
    assert workers._wanted(math.inf) == 0
    monkeypatch.setenv("LAMINA_COMPILE_WORKERS", "5")  # however busy the machine is
    assert workers._wanted(0.5) == 5
    for wrong in ("-1", "two", "", "1.5"):
        monkeypatch.setenv("LAMINA_COMPILE_WORKERS", wrong)
        with pytest.raises(ValueError, match="LAMINA_COMPILE_WORKERS=.*: expected how many processes"):
            workers._wanted(math.inf)


@pytest.mark.parametrize(
    ("seconds", "processors", "idle", "count"),
    [
        (math.inf, 1, 0.0, 0),
        (0.5, 2, 1.0, 0),  # it would be ready for the last kernel
        (0.9, 2, 1.0, 1),
        (0.9, 8, 7.0, 1),
        (2.2, 8, 7.0, 2),
        (30.0, 8, 7.0, 7),
        (math.inf, 64, 63.0, 8),
        (30.0, 8, 3.4, 3),  # the others are in use
        (30.0, 2, 0.4, 0),
        (30.0, 8, -6.0, 0),  # more want to run than can
    ],
)
def test_workers_are_worth_starting_where_work_is_left_and_processors_are_idle(
    seconds, processors, idle, count
) -> None:
    assert workforce.worth_starting(seconds, processors, idle) == count


def test_processors_are_idle_that_neither_now_nor_lately_ran_anything(monkeypatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for loads, own, idle in (
        ("0.00 0.00 0.00 1/300 4711\n", 1, 3.0),
        ("3.90 1.00 0.50 5/300 4711\n", 1, pytest.approx(0.1)),
        ("3.90 3.90 3.90 1/300 4711\n", 1, 3.0),  # the others have just ended
        ("0.10 0.00 0.00 5/300 4711\n", 1, 3.0),  # or have just begun, perhaps for long
        ("9.00 9.00 9.00 12/300 4711\n", 1, -5.0),
        ("2.00 2.00 2.00 3/300 4711\n", 3, 1.0),
        ("", 1, 4.0),  # no Linux
    ):
        assert workforce.idle_processors(own, loads) == idle
    assert workforce.idle_processors() <= 3.0


def test_turns_are_short_while_workers_may_help_and_as_before_afterwards(monkeypatch) -> None:
    monkeypatch.setenv("LAMINA_COMPILE_WORKERS", "0")
    before = sys.getswitchinterval()
    with workers.Batch(Target.host()) as first, workers.Batch(Target.host()) as second:
        first.add({"alone": ""})
        assert sys.getswitchinterval() == before
        first.add({"another": ""})
        with workers.Batch(Target.host()) as inner:
            inner.add({"one": "", "two": ""})
        second.add({"one": "", "two": ""})
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == before


def test_few_are_taken_together_where_few_are_left() -> None:
    with workers.Batch(Target.host(), alone=True) as batch:
        batch.add({str(number): "" for number in range(14)})
        assert [len(batch.take(4)) for _ in range(7)] == [4, 3, 2, 2, 1, 1, 1]
        assert batch.take(4) == []


def test_kernels_whose_passes_are_shown_are_lowered_one_after_the_other(monkeypatch) -> None:
    taken: list[int] = []
    lower = kernels_module.lower_kernels
    monkeypatch.setenv("LAMINA_COMPILE_WORKERS", "0")
    monkeypatch.setattr(
        kernels_module, "lower_kernels", lambda some, target: taken.append(len(some)) or lower(some, target)
    )
    alone = compiled()
    assert sum(taken) == COUNT and max(taken) > 1
    taken.clear()
    with instrumentation.use(Instrumentation(timing=True)):
        assert compiled() == alone
    assert taken == [1] * COUNT


def test_the_longest_kernel_is_taken_first() -> None:
    product = "stablehlo.dot_general " * 2
    with workers.Batch(Target.host(), alone=True) as batch:
        batch.add({"short": "a", "long": "a" * 1000})
        batch.add({"product": product, "between": "a" * 500})
        assert [batch.take() for _ in range(5)] == [["product"], ["long"], ["between"], ["short"], []]


def test_workers_begin_before_there_is_a_plan(one_worker) -> None:
    with Kernels(Target.host(), None) as kernels:
        kernels.offer(fused())
        for _ in range(2500):
            if not kernels._batch._waiting:  # the worker took them all, this process none
                break
            time.sleep(0.1)
        assert not kernels._batch._waiting
        assert all(kernels._batch.result(symbol) for symbol in list(kernels._objects))
