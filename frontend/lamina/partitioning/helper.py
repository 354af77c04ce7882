"""The process that partitions programs, and what it says: what it runs is the folder shardy."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lamina.dialects.processes import read_message, start, write_message
from lamina.forks import new_lock
from lamina.partitioning.shardy import BEGUN
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
    axes     for each dimension those of the mesh that it is split over.
    term_axes  those along which each device has a term.
    """

    tiles: tuple[int, ...] = ()
    copies: int = 1
    devices: tuple[int, ...] = ()
    terms: int = 1
    combiner: str = ""
    axes: tuple[tuple[str, ...], ...] = ()
    term_axes: tuple[str, ...] = ()

    @classmethod
    def of_row(cls, row: list[Any]) -> Sharding:
        """The sharding that the process tells."""
        tiles, copies, ids, terms, combiner, axes, summed = row
        dims = tuple(map(tuple, axes))
        return cls(tuple(tiles), copies, tuple(ids), terms, combiner, dims, tuple(summed))


class Question(Record):
    """A call whose user says how it is partitioned.

    key       of the user's function.
    operands, results  their types, as MLIR writes them, and how they lie.
    """

    key: str
    operands: list[tuple[str, Sharding]]
    results: list[tuple[str, Sharding]]

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Question:
        """The question that the process asks."""
        operands, results = (
            [(type, Sharding.of_row(one)) for type, one in row[side]] for side in ("operands", "results")
        )
        return cls(row["key"], operands, results)


class Answer(Record):
    """What each device does instead of a call.

    code     a module whose @main it is, in MLIR bytecode of jaxlib.
    inputs, outputs  how the operands and the results lie then: the numbers of parts along each dimension, and the
                     devices in the parts' order; none of either: each device has the whole array.
    """

    code: bytes
    inputs: list[tuple[list[int], list[int]]]
    outputs: list[tuple[list[int], list[int]]]

    def row(self) -> dict[str, Any]:
        """As the process takes it."""
        return {"code": self.code.hex(), "inputs": self.inputs, "outputs": self.outputs}


class Partitioned(Record):
    """The program of one device."""

    code: bytes
    """A portable artifact of StableHLO, or text where it has ops of CHLO."""
    inputs: list[Sharding]
    outputs: list[Sharding]
    inspected: list[tuple[bytes, Sharding | None]]
    """The keys of calls that asked how an array lies, with the answer: None for what a device has for itself."""


@functools.cache
def version() -> str:
    """jaxlib's, "none" where there is none."""
    from importlib import metadata

    try:
        return metadata.version("jaxlib")
    except metadata.PackageNotFoundError:
        return "none"


@functools.cache
def missing() -> str | None:
    """What has to be installed before programs can be partitioned, None where it is all there."""
    found = version()
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if numbers >= _OLDEST:
        return None
    oldest = ".".join(map(str, _OLDEST))
    return f"partitioning takes Shardy, of jaxlib {oldest} or later (lamina[sharding]); there is {found}"


_OLDEST = (0, 12)


def partition(
    code: bytes,
    devices: int,
    version: str,
    seconds: float = 600.0,
    answered: Callable[[Question], Answer] | None = None,
) -> Partitioned:
    """The program that each of several devices runs, from one on whole arrays with Shardy's annotations.

    code     MLIR: text, bytecode, or a portable artifact of StableHLO.
    devices  how many.
    version  of StableHLO, that of the artifact that is made.
    seconds  the most time that Shardy may take for it, in each of two ways.
    answered says of calls that only their user can partition what each device does.

    Raises PartitionError, which says what Shardy does not partition, or which jaxlib it takes; and what `answered`
    raises.
    """
    failures: list[str] = []
    # The second keeps whole arrays where the first can't cut them.
    for way in range(_WAYS):
        request: dict[str, Any] = {"devices": devices, "version": version, "way": way}
        try:
            answer, made = _asked(request, code, seconds)
            if answered is not None and "questions" in answer:
                questions = map(Question.of_row, answer["questions"])
                try:
                    request["answers"] = [answered(question).row() for question in questions]
                except Exception as error:
                    if failures:  # it has answered before, of arrays that lie otherwise
                        raise PartitionError(failures[0]) from error
                    raise
                answer, made = _asked(request, code, seconds)
        except _Ended as error:
            failures.append(str(error))
            continue
        if "questions" in answer:
            raise PartitionError("a call is partitioned by a function of another process")
        if "error" in answer:
            failures.append(answer["error"])
            if answer["final"]:
                break
            continue
        inputs, outputs = (
            list(map(Sharding.of_row, answer[side])) for side in ("inputs", "outputs")
        )
        inspected = [
            (bytes.fromhex(key), None if row is None else Sharding.of_row(row))
            for key, row in answer["inspected"]
        ]
        return Partitioned(made, inputs, outputs, inspected)
    raise PartitionError(failures[0])


def _asked(request: dict[str, Any], code: bytes, seconds: float) -> tuple[dict[str, Any], bytes]:
    """What the process answers to a request. Raises _Ended."""
    with _lock:
        return _process().ask(request, code, seconds)


def begin() -> None:
    """Lets the process start, so that it is there when a program has been lowered."""
    with _lock:
        _process()


_WAYS = 2
_lock = new_lock()
_running: _Process | None = None


def _process() -> _Process:
    """The one that is kept, or a new one after its end."""
    global _running
    if _running is None or not _running.is_there():
        _end()
        _running = _Process()
    return _running


class _Ended(Exception):
    """The process ended instead of answering, or was ended."""


class _Process:
    """A process of `lamina.partitioning.shardy`."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()
        self._lines: list[str] = []
        self._child = start(
            "lamina.partitioning.shardy.service", self._errors, ["lamina.partitioning"]
        )

    def is_there(self) -> bool:
        """Whether the process has not ended."""
        return self._child.poll() is None

    def ask(
        self, request: dict[str, Any], code: bytes, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """What it answers, and the bytes that come with it. Raises _Ended."""
        given, answers = self._child.stdin, self._child.stdout
        assert given is not None and answers is not None
        self._errors.truncate(0)
        try:
            write_message(given, json.dumps(request).encode())
            write_message(given, code)
            if select.select([answers], [], [], seconds)[0]:
                return json.loads(read_message(answers)), read_message(answers)
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(10)
            self.end()
            said = self._said()
            raise _Ended(f"Shardy ended its process ({self._child.returncode}): {said}") from None
        except BaseException:  # interrupted: what it has still to say is nobody's
            self.end()
            raise
        self.end()
        raise _Ended(
            f"Shardy takes longer than {seconds:g} s (setting partitioner_seconds) {self._where()}"
        )

    def _where(self) -> str:
        """The last that it says to have begun."""
        begun = [line.removeprefix(BEGUN) for line in self._lines if line.startswith(BEGUN)]
        return f"in {begun[-1]}" if begun else "to start"

    def _said(self) -> str:
        """What it was at, and what was said of that."""
        lines = [line for line in self._lines if not line.startswith(BEGUN)] or [
            "it says nothing"
        ]
        said = next((line for line in lines if "rror" in line or "failed" in line), lines[-1])
        return f"{self._where()}: {said[:500]}"

    def end(self) -> None:
        """Let the process go, at once."""
        self._child.kill()
        self._child.wait()
        if not self._errors.closed:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip("\0")
            self._lines = said.strip().splitlines()
        for file in (self._errors, self._child.stdin, self._child.stdout):
            with suppress(OSError):
                if file is not None:
                    file.close()


def _forget() -> None:
    """In a forked child: the process is its parent's."""
    global _running
    _running = None


def _end() -> None:
    global _running
    if _running is not None:
        _running.end()
    _running = None


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)
