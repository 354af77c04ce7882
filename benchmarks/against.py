"""The same workloads in another environment: old code there, new code here, turn by turn.

    python -m benchmarks --against ../old/.venv/bin/python

Each of the two is a process that has its environment's lamina and this checkout's workloads; while one works, the
other waits. What they compile is kept nowhere. A workload whose instructions are the same in both is not timed, as
what differed then would be noise.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from benchmarks import report
from benchmarks.measure import Times, repeats
from benchmarks.suite import Timing, Workload

Row = dict[str, Any]
_LEAST_BURSTS, _COMPILATIONS = 5, 5


def measure(python: str, family: str, chosen: Sequence[Workload | Timing], seconds: float) -> list[Row]:
    """For each workload the times of a call here and in the environment of `python`, and processor times of
    compiling; printed on the way. Raises OSError where that can't be started, ValueError where it has no lamina."""
    rows = []
    with _Process(sys.executable, family) as new, _Process(python, family) as old:
        print(f"new: {new.where}\nold: {old.where}\n\n{heading()}")
        for row in chosen:
            if isinstance(row, Timing):
                continue  # they time this process
            try:
                rows.append(_measured(row, new, old, seconds))
            except ValueError as error:  # one workload must not cost the others
                rows.append({"name": row.name, "group": row.group, "error": str(error)})
            print(line(rows[-1]), flush=True)
    return rows


def _measured(row: Workload, new: _Process, old: _Process, seconds: float) -> Row:
    both = (new, old)
    for process in both:
        process.ask("prepare", row.name)
    is_same = new.ask("code") == old.ask("code")
    runs: list[list[float]] = [[], []]
    end = time.perf_counter() + seconds
    while not is_same and (time.perf_counter() < end or len(runs[0]) < _LEAST_BURSTS):
        for process, found in zip(both, runs, strict=True):
            found.append(process.ask("burst"))
    compiling: list[list[float]] = [[], []]
    for _ in range(_COMPILATIONS):
        for process, found in zip(both, compiling, strict=True):
            found.append(process.ask("compile"))
    times = [] if is_same else [Times.of(found) for found in runs]
    processor = [statistics.median(found) for found in compiling]
    return {
        "name": row.name,
        "group": row.group,
        "same code": is_same,
        "new": (asdict(times[0]) if times else {}) | {"compile": processor[0]},
        "old": (asdict(times[1]) if times else {}) | {"compile": processor[1]},
        "run": times[1].median / times[0].median if times else 1.0,
        "compile": processor[1] / processor[0],
    }


def heading() -> str:
    text = f"{'workload':34s} {'new':>11s} {'old':>11s} {'run':>6s} {'compile':>8s}"
    return report.underlined(text)


def line(row: Row) -> str:
    """One row of the table: how many times as fast the new code is."""
    if "error" in row:
        return report.failure(row)
    if row["same code"]:
        times = f"{'the same code':>23s}"
    else:
        times = " ".join(report.seconds_text(row[name]["median"]) for name in ("new", "old"))
    return f"{row['name']:34s} {times} {row['run']:6.2f} {row['compile']:8.2f}"


def summary(rows: Sequence[Row]) -> str:
    """The geometric means, and the least of each."""
    there = [row for row in rows if "error" not in row]
    parts = []
    for what in ("run", "compile") if there else ():
        least = min(there, key=lambda row: row[what])
        mean = report.geometric_mean([row[what] for row in there])
        parts.append(f"{what}: {mean:.3f} times as fast as before, least {least[what]:.2f} ({least['name']})")
    failed = [row["name"] for row in rows if "error" in row]
    return "; ".join(parts) + (f"; failed: {', '.join(failed)}" if failed else "")


class _Process(contextlib.AbstractContextManager["_Process"]):
    """An environment's process, which does one thing at a time."""

    def __init__(self, python: str, family: str) -> None:
        root = str(Path(__file__).resolve().parent.parent)
        environment = os.environ | {"PYTHONPATH": root, "LAMINA_CACHE": "0"}
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.against", family], cwd="/", env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.where = self._answer()

    def ask(self, what: str, *arguments: Any) -> Any:
        """What the process says; raises ValueError with its error."""
        assert self._process.stdin is not None
        pickle.dump((what, *arguments), self._process.stdin)
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        try:
            succeeded, found = pickle.load(self._process.stdout)
        except EOFError:
            raise ValueError(f"{self._process.args[0]} ended: {self._process.wait()}") from None
        if not succeeded:
            raise ValueError(found)
        return found

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class _Worker:
    """What a process does when it is asked."""

    def __init__(self, family: str) -> None:
        from benchmarks.__main__ import FAMILIES
        from benchmarks.suite import lamina_library

        self._rows = {row.name: row for row in FAMILIES[family]}
        self._library = lamina_library()
        self._scope = contextlib.ExitStack()

    def where(self) -> str:
        import lamina

        return str(Path(lamina.__file__).resolve().parent.parent.parent)

    def prepare(self, name: str) -> None:
        """Compile a workload, and see how many calls make a burst."""
        from benchmarks.suite import types_of

        self._scope.close()
        self._row = self._rows[name]
        self._scope.enter_context(types_of(self._row, self._library))
        self._inputs = self._row.inputs()
        library, function = self._library, self._library.jit(self._row.make(self._library))
        arguments = library.tree.tree_map(library.np.asarray, self._inputs)
        self._call = lambda: library.block_until_ready(function(*arguments))
        self._count = repeats(self._call)

    def code(self) -> str:
        """A digest of the workload's instructions, and of which libraries do which of its kernels. Names of kernels
        are left out: they are digests of all that might have decided their code."""
        compiled = self._library.jit(self._row.make(self._library)).lower(*self._inputs).compile()
        libraries = re.findall(r'lamina\.library = "([^"]*)"', compiled.as_text("fused"))
        text = re.sub(r"_[0-9a-f]{16}", "", compiled.as_text("asm"))
        return hashlib.sha256("\n".join((*libraries, text)).encode()).hexdigest()

    def burst(self) -> float:
        """Seconds of a call."""
        start = time.perf_counter()
        for _ in range(self._count):
            self._call()
        return (time.perf_counter() - start) / self._count

    def compile(self) -> float:
        """Seconds of processor time that compiling the workload anew takes."""
        from benchmarks import first_calls

        return first_calls.compiling(self._row, self._inputs, self._library)


def _serve(family: str, questions: BinaryIO, answers: BinaryIO) -> Iterator[None]:
    worker = _Worker(family)
    question: tuple[Any, ...] = ("where",)
    while True:
        try:
            answer = True, getattr(worker, question[0])(*question[1:])
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()
        yield
        question = pickle.load(questions)


if __name__ == "__main__":
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    with contextlib.suppress(EOFError):
        for _ in _serve(sys.argv[1], sys.stdin.buffer, _answers):
            pass
