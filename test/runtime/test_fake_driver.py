"""The driver made of Python: a process that used it by way of cuda.core ends well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from support.fake_cuda import core as fake_core
from support.fake_cuda.driver import FakeDriver
with fake_core.installed(FakeDriver()):
    from cuda.core import Device
    device = Device(0)
    device.set_current()
    device.create_stream()
"""


def test_a_process_that_used_cuda_core_ends_well() -> None:
    """Destructors of the main thread call the driver when Python is no longer there."""
    folder = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-1000:]
