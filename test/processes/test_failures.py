"""One process that fails ends them all, and says why; none waits for ever."""

from pathlib import Path

import pytest
from processes.ranks import run_ranks

from lamina.runtime import mpi


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("raises", "ValueError: this one has had enough"),
        ("sleeps", "process 1 of 2, which never came to it"),
        ("ends", "process 1 has come to its end"),
        (
            "callback",
            "process 1 failed: [jit_mapped] a Python callback raised ValueError: the callback has had enough",
        ),
        ("differ", "of 2, which never came to it"),
        ("absent", "waited 3 s for 2 processes to call distributed.initialize"),
        ("killed", "Killed (signal 9)"),
        ("unreachable", "process 0 of 2 ends: process 1 can't be reached any more"),
    ],
)
def test_all_end(case: str, said: str, tmp_path: Path) -> None:
    done = run_ranks(2, "failing.py", case, str(tmp_path), LAMINA_COLLECTIVE_TIMEOUT="3600")
    text = done.stdout + done.stderr
    assert done.returncode != 0, text
    assert said in text


def test_without_a_launcher() -> None:
    done = run_ranks(0, "-c", "import lamina; lamina.distributed.initialize('host:1', 4, 2)")
    assert done.returncode == 1
    assert "start all of them at once, by `mpiexec -n 4 python" in done.stderr
    assert "pip install 'lamina[mpi]'" in done.stderr


def test_numbers_that_the_launcher_does_not_know() -> None:
    done = run_ranks(2, "-c", "import lamina; lamina.distributed.initialize(num_processes=3)")
    assert done.returncode != 0
    assert "num_processes is 2, as MPI says, not 3" in done.stderr


def test_a_process_alone_loads_no_mpi() -> None:
    code = (
        "import lamina, sys; lamina.distributed.initialize(); lamina.numpy.ones(3).sum();"
        "print('mpi4py' in sys.modules, 'libmpi' in open('/proc/self/maps').read())"
    )
    done = run_ranks(0, "-c", code)
    assert done.stdout.strip() == "False False", done.stderr


def test_a_process_ends_though_mpi_can_not_end_the_others() -> None:
    code = (
        "import time; from lamina import distributed\n"
        "class Unreachable:\n"
        "    rank, size = 1, 2\n"
        "    def abort(self, code): time.sleep(3600)\n"
        "distributed._mpi, distributed._ABORT_SECONDS = Unreachable(), 0.1\n"
        "distributed._abort('process 1 of 2 ends')"
    )
    done = run_ranks(0, "-c", code)
    assert done.returncode == 1
    assert "process 1 of 2 ends" in done.stderr


def test_mpich_without_shared_memory_is_told_before_it_ends_the_process(monkeypatch) -> None:
    monkeypatch.setattr(mpi, "_SHARED_MEMORY", "/dev/there-is-none")
    with pytest.raises(mpi.MpiError, match="mount a tmpfs on it"):
        mpi._check_shared_memory("MPICH Version: 5.0.2")
    mpi._check_shared_memory("Open MPI v6.0.0")
