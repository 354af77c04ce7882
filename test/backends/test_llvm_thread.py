"""LLVM's thread: an interrupt while it starts, work at the interpreter's end, and forked children."""

import os
import subprocess
import sys
import threading

import pytest

from lamina.backends import llvm_thread

INTERRUPTED = """
import threading, time
start = threading.Thread.start
def interrupted(self):
    start(self)
    threading.Thread.start = start
    raise KeyboardInterrupt
threading.Thread.start = interrupted
try:
    f(x)
except KeyboardInterrupt:
    print("interrupted")
time.sleep({idle})  # the thread that nobody knows is done with what there was
print(g(x))
"""
PROGRAM = """
import atexit, sys, os
import numpy as np
import lamina
{handler}
x = np.ones(3, np.float32)
f, g = lamina.jit(lambda x: x * 2 + 1), lamina.jit(lambda x: x * 3 + 1)
{work}
"""


def run(tmp_path, work, handler=""):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work, handler=handler)],
        env={**os.environ, "LAMINA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("idle", [0, 1])
def test_an_interrupt_while_it_starts_is_no_hang_at_exit(tmp_path, idle):
    ran = run(tmp_path, INTERRUPTED.format(idle=idle))
    assert (ran.stdout, ran.stderr, ran.returncode) == ("interrupted\n[4. 4. 4.]\n", "", 0)


def test_handlers_at_exit_compile(tmp_path):
    ran = run(tmp_path, "f(x)", "atexit.register(lambda: print(g(x)))")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("[4. 4. 4.]\n", "", 0)


def test_a_forked_child_has_its_own(tmp_path):
    forks = "import warnings\nwarnings.simplefilter('ignore')  # of threads, which are known\n"
    ran = run(tmp_path, f"{forks}f(x)\nif os.fork() == 0: print(g(x))\nelse: print(os.wait()[1])")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("[4. 4. 4.]\n0\n", "", 0)


def test_what_a_function_raises_is_its_caller_s():
    class Wrong(Exception):
        pass

    def wrong(error):
        raise error

    futures = [llvm_thread.submit(wrong, Wrong("a")), llvm_thread.submit(threading.get_ident)]
    with pytest.raises(Wrong, match="a"):
        futures[0].result()
    assert futures[1].result() != threading.get_ident()
