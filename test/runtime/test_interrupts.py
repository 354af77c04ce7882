"""Ctrl-C while a computation runs: it ends the wait, once, whoever waits."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, threading, time
import numpy as np
import lamina
from lamina import lax

@lamina.jit
def long(x, steps):
    return lax.fori_loop(0, steps, lambda i, x: lamina.numpy.sin(x) + 1, x)

def seconds():
    start = time.perf_counter()
    long(x, 500).block_until_ready()
    return time.perf_counter() - start

x = np.zeros(100_000, np.float32)
steps = int(500 * 4 / min(seconds() for _ in range(6)))  # four seconds, more on a busy machine
want = long(x, 3)
y = long(x, steps)
timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
try:
    {wait}
    print("finished")
except KeyboardInterrupt:
    print("interrupted", y.is_ready())
timer.join()
print(np.asarray(want).shape, np.asarray(y).shape, np.asarray(y + 1).shape)
"""


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
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(wait=wait)], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    shape = "(100000,)"
    assert ran.stdout.splitlines() == ["interrupted False", f"{shape} {shape} {shape}"]


IN_PLACE = """
import signal, time
import numpy as np
import lamina
from lamina import lax

{program}
for _ in range(8):
    print(f({little}))
signal.signal(signal.SIGALRM, {handler})
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.05)
start = time.perf_counter()
try:
    f({much})
    print("finished")
except BaseException as error:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(type(error).__name__, time.perf_counter() - start < 10)
print(f({little}))
"""
RAISES = "signal.default_int_handler"
RAISES_LATER = "lambda *_: time.perf_counter() - start < 0.5 or 1 / 0"
CALLS = """
calls = []
def handle(*_):
    calls.append(f(5))
    if len(calls) > 3:
        raise TimeoutError
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
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    *first, ended, last = ran.stdout.splitlines()
    assert ended == f"{error} True"
    assert set(first) == {last}


def test_others_run_beside_a_call_that_takes_long():
    text = f"""
import os, signal, threading
import lamina
from lamina import lax
{COUNTS}
for _ in range(8): f(5)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    f(2_000_000_000)
except KeyboardInterrupt:
    print("interrupted")
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.stderr) == ("interrupted\n", "")
