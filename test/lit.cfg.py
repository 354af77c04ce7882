"""lit: `lit test` runs every .mlir and .filecheck.py file under test/ by its RUN lines."""

import multiprocessing
import os
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lit.formats

repo = Path(__file__).resolve().parent.parent
bin_dir = Path(sys.executable).parent

config.name = "lamina"  # noqa: F821 (lit gives us `config`)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".filecheck.py"]  # noqa: F821
config.excludes = ["lit.cfg.py", "Inputs", "fuzz"]  # noqa: F821
config.test_source_root = str(repo / "test")  # noqa: F821
config.test_exec_root = str(repo / "build" / "lit")  # noqa: F821
try:
    (repo / "build" / "lit").mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=repo / "build" / "lit").close()
except OSError:  # a checkout that belongs to another user
    temporary = tempfile.TemporaryDirectory(prefix="lamina-lit-")  # goes with this process
    config.test_exec_root = temporary.name  # noqa: F821

config.substitutions += [  # noqa: F821
    ("%lamina-opt", f"{sys.executable} -m lamina.tools.lamina_opt"),
    ("%PYTHON", sys.executable),
    ("%python", sys.executable),
    ("FileCheck", str(bin_dir / "filecheck")),
]
# The tests must not depend on how the caller has set lamina up.
for name, value in os.environ.items():
    if name in ("PATH", "HOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH"):
        config.environment[name] = value  # noqa: F821
config.environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")  # noqa: F821
config.environment["LAMINA_CACHE"] = "0"  # noqa: F821
config.environment["LAMINA_PROCESSOR"] = os.environ.get("LAMINA_TEST_PROCESSOR", "")  # noqa: F821


class ThreadPool(ThreadPoolExecutor):
    """In place of multiprocessing.Pool, as far as lit uses it: tests start processes themselves."""

    def __init__(self, workers, initialize, arguments):
        super().__init__(workers)
        handler = signal.getsignal(signal.SIGINT)
        initialize(*arguments)  # ignores Ctrl-C, as workers do
        signal.signal(signal.SIGINT, handler)

    def apply_async(self, function, args, callback):
        future = self.submit(function, *args)
        future.add_done_callback(lambda done: callback(done.result()))
        future.get = future.result
        return future

    def close(self):
        self.shutdown(wait=False)

    def terminate(self):
        self.shutdown(wait=False, cancel_futures=True)

    def join(self):
        self.shutdown()


try:
    multiprocessing.Lock()
except OSError:  # no /dev/shm, where semaphores are: lit's workers can't be processes
    multiprocessing.Pool = ThreadPool
