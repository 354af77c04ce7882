"""Interpreters beside this one that do a part of its work, without the frontend: how they are started,
and messages to them and back."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

_HEAD = struct.Struct("<Q")
# The package `lamina` itself would import the frontend.
_START = """import sys, types
sys.path[:] = {path!r}
for name, folders in {packages!r}.items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = folders
from {module} import main
main()
"""


def start(
    module: str, errors: IO[bytes] | None = None, passed_over: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """An interpreter that runs the function `main` of a module of lamina's, with pipes for its input and
    output. What it writes to its standard error goes to a file, or nowhere. Of the packages `passed_over`, as of lamina
    itself, modules are imported without what the package imports. Raises OSError where none can be started."""
    if not sys.executable:
        raise OSError("Python does not say where its interpreter is (sys.executable)")
    packages = {name: list(sys.modules[name].__path__) for name in ("lamina", *passed_over)}
    return subprocess.Popen(
        [sys.executable, "-c", _START.format(path=sys.path, packages=packages, module=module)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if errors is None else errors,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # it has none multiplied
    )


def write_message(stream: IO[bytes], data: bytes) -> None:
    """Send bytes, their number first."""
    stream.write(_HEAD.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes:
    """What `write_message` sent; raises EOFError where nothing more will come."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    (size,) = _HEAD.unpack(head)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
