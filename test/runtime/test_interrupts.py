"""Ctrl-C while a computation runs: it ends the wait, once, whoever waits."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading
sys.path.insert(0, {tests!r})
import numpy as np
from support.llvm_objects import Held
held = Held()
(y,) = held([np.zeros(4, np.float32)])
timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
try:
    timer.start()
    {wait}
    print("finished")
except KeyboardInterrupt:
    print("interrupted", y.is_ready())
timer.join()
held.let_go()
print(np.asarray(y), np.asarray(y + 1))
"""
TESTS = os.path.dirname(os.path.dirname(__file__))


@pytest.mark.parametrize(
    "wait",
    [
        "y.block_until_ready()",
        "np.asarray(y)",
        "np.array([y, y])",
        "memoryview(y)",
        "float(y[0])",
        "np.asarray(y.astype('bfloat16'))",
        "(y + 1).block_until_ready()",
    ],
)
def test_it_ends_the_wait(wait):
    text = PROGRAM.format(wait=wait, tests=TESTS)
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["interrupted False", "[1. 1. 1. 1.] [2. 2. 2. 2.]"]


IN_PLACE = """
import signal, time
import numpy as np
import lamina
from lamina import lax

{program}
for _ in range(8):
    print(f({little}))
def at_last(error):  # no further signal comes while the first is seen to
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise error
signal.signal(signal.SIGALRM, {handler})
start = time.perf_counter()
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.05)
    f({much})
    print("finished")
except BaseException as error:
    print(type(error).__name__)
print(f({little}))
"""
RAISES = "lambda *_: at_last(KeyboardInterrupt)"
RAISES_LATER = "lambda *_: time.perf_counter() - start < 0.5 or at_last(ZeroDivisionError)"
CALLS = """
calls = []
def handle(*_):
    calls.append(f(5))
    if len(calls) > 3:
        at_last(TimeoutError)
"""
COUNTS = "f = lamina.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s * 0.5 + i, 0.0))"
SEARCHES = "f = lamina.jit(lambda a: lax.while_loop(lambda x: x * x != a, lambda x: x + 1, 0))"
READS = """
g = lamina.jit(lambda n, x: lax.while_loop(lambda c: c[0] != n, lambda c: (c[0] + 1, c[1] + x.sum()), (0, 0.))[1])
f = lambda n: g(n, np.ones(3, np.float32))
"""
CALLS_BACK = """
def step(i, x):
    return lax.cond(i == 2, lambda: lamina.pure_callback(lambda x: x, x, x), lambda: x + 1)
f = lamina.jit(lambda n: lax.fori_loop(0, n, step, 0))
"""

@pytest.mark.parametrize(
    ("program", "little", "much", "handler", "error"),
    [
        (COUNTS, 5, 2_000_000_000, RAISES, "KeyboardInterrupt"),
        (COUNTS, 5, 2_000_000_000, RAISES_LATER, "ZeroDivisionError"),
        (CALLS + COUNTS, 5, 2_000_000_000, "handle", "TimeoutError"),
        (SEARCHES, 9, 7, RAISES, "KeyboardInterrupt"),
        (READS, 5, 2_000_000_000, RAISES, "KeyboardInterrupt"),
        (CALLS_BACK, 5, 2_000_000_000, RAISES, "KeyboardInterrupt"),
    ],
)
def test_it_ends_a_call_that_runs_where_it_was_made(program, little, much, handler, error):
    """Calls that were over at once are not handed over to another thread; this one takes long."""
    text = IN_PLACE.format(program=program, little=little, much=much, handler=handler)
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    *first, ended, last = ran.stdout.splitlines()
    assert ended == error
    assert set(first) == {last}


def test_others_run_beside_a_call_that_takes_long():
    text = f"""
import os, signal, threading
import lamina
from lamina import lax
{SEARCHES}
for _ in range(8): f(9)
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    f(7)
except KeyboardInterrupt:
    print("interrupted")
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600)
    assert (ran.stdout, ran.stderr) == ("interrupted\n", "")
