"""A process ends while computations run whose results nobody will see: at once, and in order."""

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, ctypes, os, signal, sys, threading, time
atexit.register(lambda: print("first handler", float(np.asarray(small)[0]), flush=True))
import numpy as np
import lamina
from lamina import lax
atexit.register(lambda: print("last handler", float(np.asarray(small)[0]), flush=True))

@lamina.jit
def long(x, steps):
    return lax.fori_loop(0, steps, lambda i, x: lamina.numpy.sin(x) + 1, x)

x, steps = np.zeros(100_000, np.float32), 100_000_000  # an hour
small = long(x, 3)
small.block_until_ready()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.fputs(b"buffered by C", ctypes.c_void_p(libc.fdopen(os.dup(1), b"w")))
"""
INTERRUPT = """
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
"""
START = """
y = long(x, steps)
"""
WAITER = """
def compiled(callback):
    return lamina.jit(lambda x: lamina.pure_callback(callback, x, x)).lower(x).compile()
echo, sleeping = compiled(lambda x: x), compiled(lambda x: time.sleep(1e6) or x)
def wait(*_):
    started.set()
    {}
started = threading.Event()
threading.Thread(target=wait, daemon=True).start()
started.wait()
time.sleep(0.2)
sys.exit(7)
"""


def run(text):
    """(what the process returned, its lines, its errors), where it ended long before the computation."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM + text],
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return ran.returncode, ran.stdout.splitlines(), ran.stderr


HANDLERS = ["last handler 1.9635907411575317", "first handler 1.9635907411575317", "buffered by C"]


@pytest.mark.parametrize("code", [0, 7])
def test_at_exit(code):
    assert run(f"{START}sys.exit({code})") == (code, HANDLERS, "")


def test_at_exit_with_others_behind_it():
    assert run(f"{START}rest = [long(y, 1), long(x, 5), long(y, steps)]\nsys.exit(3)") == (3, HANDLERS, "")


def test_after_an_exception():
    code, lines, errors = run(f"{START}raise ValueError('so it is')")
    assert (code, lines) == (1, HANDLERS) and errors.endswith("ValueError: so it is\n")


def test_after_ctrl_c():
    code, lines, errors = run(f"{INTERRUPT}{START}y.block_until_ready()")
    assert (code, lines[:2]) == (-signal.SIGINT, HANDLERS[:2])
    assert errors.endswith("KeyboardInterrupt\n")


def test_after_ctrl_c_where_the_queue_is_full():
    fill = "kept = [long(x, 1)]\nfor i in range(200): kept.append(long(x, steps))"
    code, lines, errors = run(f"{INTERRUPT}{fill}")
    assert (code, lines[:2]) == (-signal.SIGINT, HANDLERS[:2])
    assert errors.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize(
    "work",
    [
        "long(x, steps).block_until_ready()",
        "np.asarray(long(x, steps))",
        "for _ in range(200): long(x, steps)",
        "long(x, steps) is None or lamina.runtime.wait_all()",
        "sleeping(x)",
        "echo(long(x, steps))",
    ],
)
def test_under_a_thread_that_waits(work):
    assert run(WAITER.format(work)) == (7, HANDLERS, "")



NATIVE = """
import sys, threading, time
import numpy as np
import lamina
from lamina.dialects.context import parse
from lamina.dialects.interrupts import uninterrupted
from lamina.dialects.vendors import ir

class Lingering:
    def __del__(self, sleep=time.sleep):
        sleep(0.6)

def pause(x=None):
    inside.set()
    time.sleep(0.2)
    return x

@uninterrupted()
def walk():
    module = parse("func.func @main() {{ return }}")
    module.operation.walk(lambda op: pause(ir.WalkResult.ADVANCE))

def trace():
    lamina.jit(pause)(np.ones(3))

x, inside = np.ones(3, np.float32), threading.Event()
callback = lamina.jit(lambda x: lamina.pure_callback(pause, x, x)).lower(x).compile()
threading.Thread(target={}, daemon=True).start()
inside.wait()
sys.lingering = Lingering()  # the interpreter takes so long to end that the thread goes on meanwhile
sys.exit(7)
"""


@pytest.mark.parametrize("work", ["walk", "trace", "lambda: callback(x)"])
def test_a_thread_is_not_unwound_out_of_native_code(work):
    ran = subprocess.run(
        [sys.executable, "-c", NATIVE.format(work)], capture_output=True, text=True, timeout=600
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "", "")
