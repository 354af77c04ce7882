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
