"""Programs run by several processes that MPI's launcher starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LAUNCHER = Path(sys.executable).parent / "mpiexec"


def run_ranks(
    count: int, *arguments: str, seconds: float = 600, devices: int = 1, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`python arguments` in so many processes, each with so many devices. Without a launcher: in one."""
    command = [sys.executable, *arguments]
    if count and not os.path.isdir("/dev/shm"):
        pytest.skip("MPICH needs /dev/shm")
    if count:
        command = [str(LAUNCHER), "-n", str(count), *command]
    return subprocess.run(
        command,
        cwd=HERE,
        env=os.environ | {"LAMINA_NUM_CPU_DEVICES": str(devices)} | environment,
        timeout=seconds,
        capture_output=True,
        text=True,
        check=False,
    )


def check_ranks(count: int, *arguments: str, **options: object) -> str:
    """What that prints; it has to succeed."""
    done = run_ranks(count, *arguments, **options)  # type: ignore[arg-type]
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
