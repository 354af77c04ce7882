"""The thread pool: every iteration once, nesting, settings, fork."""

import collections
import ctypes
import os
import subprocess
import sys
import threading
import time

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


def shared_runs(loops, worker_waits):
    """Of so many runs of one loop, those that a worker took part in, where each of its chunks takes it so long."""
    caller, shared = threading.get_ident(), []
    task = Task(lambda *_: shared.append(1) or time.sleep(worker_waits) if threading.get_ident() != caller else None)
    address = runtime.symbols()["lamina_parallel_for"]
    loop = ctypes.CFUNCTYPE(None, Task, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    runs = []
    for _ in range(loops):
        shared.clear()
        loop(task, None, 100, 1)
        runs.append(bool(shared))
    return runs


def test_a_loop_that_sharing_makes_longer_runs_alone_until_it_has_paid():
    runtime.set_num_threads(2)
    runs = shared_runs(2000, 0.005)  # the caller's chunks take microseconds
    assert sum(runs) < 20, "a loop whose worker is slow is shared again and again"
    runtime.set_num_threads(2)  # forgets
    caller, mine, others = threading.get_ident(), [], []

    def task(*_):
        (mine if threading.get_ident() == caller else others).append(1)
        time.sleep(0.001)  # as long for all, and at the same time

    for _ in range(10):
        parallel_for(task, 100, 1)
    assert len(others) > 20, "a loop that gains by sharing is not shared"


def run_python(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_settings_from_the_environment_and_the_affinity():
    code = "from lamina import runtime; print(runtime.get_num_threads(), runtime.worker_count())"
    assert run_python(code, LAMINA_NUM_THREADS="7") == ["7", "0"]
    one_cpu = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);" + code
    assert run_python(one_cpu) == ["1", "0"]


@pytest.mark.parametrize("text", ["0", "-2", "two", "2.5", "4,2"])
def test_a_count_that_is_none_is_refused(text):
    done = subprocess.run([sys.executable, "-c", "import lamina"], capture_output=True, text=True,
                          env={**os.environ, "LAMINA_NUM_THREADS": text}, timeout=600)  # fmt: skip
    assert done.returncode and f"LAMINA_NUM_THREADS={text!r}: expected how many threads" in done.stderr


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


SERVED = """
import os, sys, threading
import numpy as np
import numpy.testing  # now: a child of a fork can't, while another thread does
import lamina
x = np.random.default_rng(0).normal(size=(700, 700)).astype(np.float32)
double = lamina.jit(lambda x: x * 2 + x.sum())
product = lamina.jit(lambda x: x @ x, compiler_options={"matrix_products": "library"})
wanted = np.asarray(double(x)), np.asarray(product(x))
def check():
    for found, want in zip((double(x), product(x)), wanted):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-3)
"""

IN_THE_MIDDLE = (
    SERVED
    + """
stop = threading.Event()
def work():
    while not stop.is_set():
        check()
others = [threading.Thread(target=work) for _ in range(2)]
for thread in others: thread.start()
for count in (2, 3, 1, 4):
    lamina.set_num_threads(count)
    for _ in range(3):
        pending = double(x)  # queued maybe, when the child is made
        child = os.fork()
        if child == 0:
            assert lamina.get_num_threads() == count
            check()
            lamina.set_num_threads(3 - count % 3)
            check()
            fresh = lamina.jit(lambda x: (x * 3).sum(0))(x)  # compiles
            np.testing.assert_allclose(fresh, (x * 3).sum(0), rtol=1e-3, atol=1e-2)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        np.testing.assert_allclose(pending, wanted[0], rtol=1e-4)
    check()
stop.set()
for thread in others: thread.join()
print("ok")
"""
)


def test_forks_in_the_middle_of_everything():
    """Kernels, products by BLAS, calls under way and other threads: parent and child go on."""
    assert run_python(IN_THE_MIDDLE, LAMINA_NUM_THREADS="3")[-1] == "ok"


AMONG_COMPILATIONS = """
import os, threading
import numpy as np
import lamina
x = np.ones(100, np.float32)
stop = threading.Event()
def work():
    number = 0
    while not stop.is_set():
        number += 1
        lamina.jit(lambda x: lamina.numpy.sin(x * (number + 0.5)) + x.sum())(x)
others = [threading.Thread(target=work) for _ in range(2)]
for thread in others: thread.start()
lamina.jit(lambda x: x * 3)(x)
for count in range(8):
    child = os.fork()
    if child == 0:
        np.asarray(lamina.jit(lambda x: x * 7 + count)(x))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in others: thread.join()
print("ok")
"""


def test_forks_while_other_threads_compile():
    """A child finds LLVM at rest, and its locks free."""
    out = run_python(AMONG_COMPILATIONS, LAMINA_COMPILE_WORKERS="0", LAMINA_CACHE="0")
    assert out[-1] == "ok"


AMONG_WORKERS = (
    SERVED
    + """
from lamina.backends import workers
def large(seed):
    def f(x):
        for i in range(60):
            x = lamina.numpy.sin(x * (seed + i)) + x.sum(i % 2, keepdims=True) / 700
            x = lamina.numpy.cumsum(x, i % 2) / 700
        return x
    return f
lamina.jit(large(1))(x[:40, :50])
assert len(workers._workers) == 2, "no worker compiled"
thread = threading.Thread(target=lambda: lamina.jit(large(2))(x[:40, :50]))
thread.start()
child = os.fork()
if child == 0:
    check()
    found = lamina.jit(large(3))(x[:30, :20])
    assert np.isfinite(np.asarray(found)).all()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
thread.join()
check()
print("ok")
"""
)


def test_a_fork_while_other_processes_compile():
    """Their pipes stay the parent's: the child has workers of its own, or compiles itself."""
    out = run_python(AMONG_WORKERS, LAMINA_COMPILE_WORKERS="2", LAMINA_CACHE="0")
    assert out[-1] == "ok"


NAMES = """
import contextlib, os, time
def count():  # threads by name
    found = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found.append(open(f"/proc/self/task/{task}/comm").read().strip())
    return found
def workers():
    return count().count("lamina-worker")
def wait_for_workers(number):  # a thread names itself, and is listed for a moment when it has been joined
    end = time.monotonic() + 200
    while workers() != number and time.monotonic() < end: time.sleep(0.01)
    assert workers() == number, count()
"""

FIRST_NEED = (
    NAMES
    + """
import numpy as np
before = len(count())
import lamina, lamina.numpy as jnp
assert len(count()) == before, count()
add = lamina.jit(lambda x: x + 1)
assert float(add(1.0)) == 2 and (np.asarray(add(np.ones(1000))) == 2).all()
lamina.set_num_threads(5)
assert lamina.get_num_threads() == 5 and workers() == 0, count()
lamina.jit(lambda x: x @ x)(np.ones((30, 30), np.float32)).block_until_ready()
assert workers() == 0, count()
add(np.ones((2000, 2000), np.float32)).block_until_ready()
wait_for_workers(4)
with lamina.num_threads(1):
    wait_for_workers(0)
    add(np.ones((2000, 2000), np.float32)).block_until_ready()
    assert workers() == 0, count()
print("ok")
"""
)


def test_no_thread_before_the_first_need():
    assert run_python(FIRST_NEED, LAMINA_NUM_THREADS="3")[-1] == "ok"


ONE_POOL = (
    NAMES
    + """
import ctypes, sys
import numpy as np
import lamina
from lamina.runtime import executable
lamina.set_num_threads(3)
x = np.random.default_rng(0).normal(size=(1200, 1200)).astype(np.float32)
product = lamina.jit(lambda x: x @ x, compiler_options={"matrix_products": "library"})
assert "openblas.gemm" in product.lower(x).compile().as_text("fused")
product(x).block_until_ready()  # opens OpenBLAS
time.sleep(0.5)  # until its threads have gone to sleep
def used():  # seconds of processor time by kind of thread
    found = {}
    for task in os.listdir("/proc/self/task"):
        text = open(f"/proc/self/task/{task}/stat").read()
        name, fields = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        own = name.startswith("lamina") or int(task) == os.getpid()
        found[own] = found.get(own, 0) + int(fields[11]) / os.sysconf("SC_CLK_TCK")
    return found
before = used()
for _ in range(10): product(x).block_until_ready()
after = used()
assert after[True] - before[True] > 0.05, (before, after)
assert after.get(False, 0) - before.get(False, 0) < 0.02, (before, after)  # OpenBLAS's have slept
assert executable._openblas().scipy_openblas_get_num_threads() == 1
wait_for_workers(2)
lamina.set_num_threads(1)
product(x).block_until_ready()
wait_for_workers(0)
print("ok")
"""
)


def test_one_pool_rules():
    """A product by OpenBLAS is done by our threads, as many as there may be, whatever its own count is."""
    assert run_python(ONE_POOL, OPENBLAS_NUM_THREADS="6", OMP_NUM_THREADS="6")[-1] == "ok"


def test_workers_compute_with_the_callers_rounding_and_flushing():
    """A task sees denormals as the calling thread does, whichever thread runs it."""
    runtime.set_num_threads(4)
    barrier = threading.Barrier(4, timeout=600)
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
