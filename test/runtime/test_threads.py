"""The thread pool: every iteration once, nesting, settings, fork."""

import collections
import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import lamina
from lamina import runtime

Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def parallel_for(task, n, grain):
    address = runtime.symbols()["lamina_parallel_for"]
    function = ctypes.CFUNCTYPE(
        None, Task, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )(address)  # fmt: skip
    function(Task(task), None, n, grain)


@pytest.fixture(autouse=True)
def same_count():
    yield
    runtime.set_num_threads(0)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(("n", "grain"), [(0, 1), (1, 1), (7, 3), (1000, 1), (1000, 999), (64, 64)])
def test_each_iteration_runs_once(threads, n, grain):
    runtime.set_num_threads(threads)
    seen = collections.Counter()
    lock = threading.Lock()

    def task(_, lo, hi):
        with lock:
            seen.update(range(lo, hi))
            assert hi - lo >= min(grain, n) or hi == n

    for _ in range(3):
        parallel_for(task, n, grain)
    assert seen == {i: 3 for i in range(n)}


def test_small_loops_run_on_the_caller():
    runtime.set_num_threads(4)
    idents = []
    parallel_for(lambda *_: idents.append(threading.get_ident()), 100, 100)
    assert idents == [threading.get_ident()]
    assert runtime.worker_count() == 0


def test_nested_loops_run_inline():
    runtime.set_num_threads(3)
    total = collections.Counter()
    lock = threading.Lock()

    def outer(_, lo, hi):
        me = threading.get_ident()

        def inner(_, lo2, hi2):
            assert threading.get_ident() == me
            with lock:
                total.update(range(lo2, hi2))

        for _ in range(lo, hi):
            parallel_for(inner, 10, 1)

    parallel_for(outer, 6, 1)
    assert total == {i: 6 for i in range(10)}


def test_callers_on_several_threads():
    runtime.set_num_threads(3)
    counts = [0] * 4
    lock = threading.Lock()

    def caller(which):
        def task(_, lo, hi):
            with lock:
                counts[which] += hi - lo

        for _ in range(50):
            parallel_for(task, 20, 1)

    threads = [threading.Thread(target=caller, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1000] * 4


def test_the_number_of_threads_can_change_between_loops():
    for count in (2, 5, 1, 3):
        runtime.set_num_threads(count)
        assert runtime.get_num_threads() == count
        assert runtime.worker_count() == 0
        parallel_for(lambda *_: None, 100, 1)
        assert runtime.worker_count() == count - 1


def run_python(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_settings_from_the_environment_and_the_affinity():
    code = "from lamina import runtime; print(runtime.get_num_threads(), runtime.worker_count())"
    assert run_python(code, LAMINA_NUM_THREADS="7") == ["7", "0"]
    one_cpu = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);" + code
    assert run_python(one_cpu) == ["1", "0"]


FORK = """
import ctypes, os, sys
from lamina import runtime
Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
loop = ctypes.CFUNCTYPE(None, Task, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    runtime.symbols()["lamina_parallel_for"])
done = []
task = Task(lambda _, lo, hi: done.append(hi - lo))
def check():
    done.clear()
    loop(task, None, 100, 1)
    assert sum(done) == 100
check()
child = os.fork()
if child == 0:
    assert runtime.worker_count() == 0
    check()
    assert runtime.worker_count() == 2
    os._exit(17)
check()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
print("ok")
"""


def test_a_forked_child_starts_threads_of_its_own():
    assert run_python(FORK, LAMINA_NUM_THREADS="3") == ["ok"]


def test_workers_compute_with_the_callers_rounding_and_flushing():
    """A task sees denormals as the calling thread does, whichever thread runs it."""
    runtime.set_num_threads(4)
    barrier = threading.Barrier(4, timeout=20)
    results = []

    def task(_, lo, hi):
        barrier.wait()
        results.append(float(np.float32(1e-38) * np.float32(1e-3)))

    parallel_for(task, 4, 1)
    assert len(results) == 4 and all(value > 0 for value in results)


def test_the_public_count():
    default = lamina.get_num_threads()
    lamina.set_num_threads(np.int64(3))
    assert lamina.get_num_threads() == 3
    with lamina.num_threads(1):
        assert lamina.get_num_threads() == 1
        assert float(lamina.jit(lambda x: (x * 2).sum())(np.ones((1000, 100), np.float32))) == 2e5
    assert lamina.get_num_threads() == 3
    with pytest.raises(RuntimeError), lamina.num_threads(2):
        raise RuntimeError
    assert lamina.get_num_threads() == 3
    lamina.set_num_threads(None)
    assert lamina.get_num_threads() == default
    for wrong in (0, -2):
        with pytest.raises(ValueError, match="at least one thread"):
            lamina.set_num_threads(wrong)
    with pytest.raises(TypeError, match="an integer or None, got str"):
        lamina.set_num_threads("two")
    assert lamina.get_num_threads() == default
