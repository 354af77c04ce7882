"""The process that partitions programs, and what it says: what it runs is the folder shardy."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lamina.forks import new_lock
from lamina.records import Record


class PartitionError(Exception):
    """Why a program can't be partitioned."""


class Sharding(Record):
    """How an array lies on the devices.

    tiles    the number of parts along each dimension. Empty: each device has the whole array.
    terms    how many devices have a term each of a part that is their sum, or the like.
    copies   how many devices have each term.
    combiner  what terms are combined with: "SUM", "MAX" or "MIN"; "" where there is one term.
    devices  those that have the parts, in the parts' order, as numbers from 0 in the program's own order.
    """

    tiles: tuple[int, ...] = ()
    copies: int = 1
    devices: tuple[int, ...] = ()
    terms: int = 1
    combiner: str = ""


class Partitioned(Record):
    """The program of one device."""

    code: bytes
    """A portable artifact of StableHLO."""
    inputs: list[Sharding]
    outputs: list[Sharding]


def partition(code: bytes, devices: int, version: str) -> Partitioned:
    """The program that each of several devices runs, from one on whole arrays with Shardy's annotations.

    code     MLIR: text, bytecode, or a portable artifact of StableHLO.
    devices  how many.
    version  of StableHLO, that of the artifact that is made.

    Raises PartitionError, which says what Shardy does not partition, or which jaxlib it takes.
    """
    request = {"devices": devices, "version": version, "bytes": len(code)}
    failures = []
    with _lock:
        # The second keeps whole arrays where the first can't cut them.
        for way in range(_WAYS):
            try:
                answer, made = _process().ask({**request, "way": way}, code)
            except _Ended as error:
                failures.append(str(error))
                continue
            if "error" not in answer:
                inputs, outputs = (
                    [
                        Sharding(tuple(tiles), copies, tuple(ids), terms, combiner)
                        for tiles, copies, ids, terms, combiner in answer[side]
                    ]
                    for side in ("inputs", "outputs")
                )
                return Partitioned(made, inputs, outputs)
            failures.append(answer["error"])
            if answer["final"]:
                break
    raise PartitionError(failures[0])


_WAYS = 2
_lock = new_lock()
_running: _Process | None = None


def _process() -> _Process:
    """The one that is kept, or a new one after its end, and in a process that was forked."""
    global _running
    if _running is None or not _running.is_ours():
        _running = _Process()
        atexit.register(_running.end)
    return _running


class _Ended(Exception):
    """The process ended instead of answering."""


class _Process:
    def __init__(self) -> None:
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile()
        path = [*filter(None, sys.path), str(Path(__file__).parent)]
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "shardy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )

    def is_ours(self) -> bool:
        return self._owner == os.getpid() and self._child.poll() is None

    def ask(self, request: dict[str, Any], code: bytes) -> tuple[dict[str, Any], bytes]:
        """What it answers, and the bytes that come with it. Raises _Ended."""
        to, back = self._child.stdin, self._child.stdout
        assert to is not None and back is not None
        try:
            to.write(json.dumps(request).encode() + b"\n" + code)
            to.flush()
            head = back.readline()
            if head.endswith(b"\n"):
                answer = json.loads(head)
                return answer, back.read(answer["bytes"])
        except BrokenPipeError:
            pass
        except BaseException:  # interrupted: what it has still to say is nobody's
            self._child.kill()
            self._child.wait()
            raise
        self._child.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines() or [
            "it says nothing"
        ]
        said = next((line for line in lines if "rror" in line or "failed" in line), lines[-1])
        raise _Ended(f"Shardy ended its process ({self._child.returncode}): {said[:500]}")

    def end(self) -> None:
        if self._owner == os.getpid() and self._child.stdin is not None:
            self._child.stdin.close()
            self._child.wait()
