"""Ctrl-C while MLIR's modules load: it comes after them, and the next program compiles."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from lamina.dialects.loading import uninterrupted


def test_ctrl_c_is_held_back_to_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append(True)
    assert done
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_other_threads_hold_nothing_back():
    done = []

    def work():
        with uninterrupted():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.getsignal(signal.SIGINT)]


PROGRAM = """
import signal, sys
import numpy as np
import lamina

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name in at:
            at.discard(name)
            signal.raise_signal(signal.SIGINT)

at = set(sys.argv[1:])
sys.meta_path.insert(0, Interrupts())
x, hit = np.arange(12, dtype=np.float32).reshape(3, 4), 0
for _ in range(5):
    try:
        got = lamina.jit(lambda x: lamina.numpy.sin(x) @ lamina.numpy.cos(x).T)(x)
    except KeyboardInterrupt:
        hit += 1
np.testing.assert_allclose(got, np.sin(x) @ np.cos(x).T, rtol=1e-5, atol=1e-5)
print(hit, len(at))
"""


def test_the_next_program_compiles(tmp_path):
    modules = ["torch_mlir.ir", "torch_mlir._mlir_libs._site_initialize_0", "torch_mlir.rewrite",
               "torch_mlir.dialects._func_ops_ext", "torch_mlir.dialects._vector_ops_gen"]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *modules],
        capture_output=True, text=True, timeout=600, env={**os.environ, "LAMINA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    hit, left = map(int, ran.stdout.split())
    assert hit and left < len(modules), "none of the modules was loaded by a program"
