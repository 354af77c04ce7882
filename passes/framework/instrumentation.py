"""What can be seen of passes while they run: dumps, timing, statistics, and failures kept.

| variable | effect |
|---|---|
| `LAMINA_DUMP=dir` | a folder for each compilation, with numbered files and their index |
| `LAMINA_DUMP_PASSES=changed` or `all` | with it, the module after each pass (that changed it) |
| `LAMINA_TIMING=1` | a table of passes, the longest first, with statistics and sum on stderr |
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import Literal, TextIO

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import _counts
from lamina.records import Record

Which = Literal["changed", "all"]

_FAILURE = "lamina-failure-"
_FAILURES_KEPT = 5
_LITTLE = 0.001  # of all time, in the table of passes


class Dump(Record, frozen=False):
    """A folder of numbered files, in the order in which one compilation wrote them, which is that of
    its stages. `index.txt` there lists them; that of the folder above, the compilations."""

    folder: Path
    clock: Callable[[], float] = time.perf_counter
    _number: int = 0
    _begin: float = 0.0

    def write(self, name: str, content: str | bytes) -> Path:
        """Keep content as `<number>_<name>`; returns where."""
        if self._number == 0:
            self._begin = self.clock()
            self._make_folder()
        path = self.folder / f"{self._number:04d}_{name}"
        self._number += 1
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(data)
        at = (self.clock() - self._begin) * 1e3
        _append(self.folder, "ms      bytes  file", f"{at:9.1f} {len(data):10d}  {path.name}")
        return path

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            why = f"LAMINA_DUMP: no folder can be made there: {e.strerror}"
            raise OSError(e.errno, why, str(self.folder)) from None
        when = time.strftime("%Y-%m-%d %H:%M:%S")
        _append(self.folder.parent, "date       time      compilation", f"{when}  {self.folder.name}")


def _append(folder: Path, head: str, line: str) -> None:
    """A line more in a folder's index, which begins with a heading."""
    path = folder / "index.txt"
    text = f"{line}\n" if path.exists() else f"{head}\n{line}\n"
    with path.open("a") as file:  # one write: other processes append to the upper one, too
        file.write(text)


class PassRun(Record, frozen=False):
    """One pass that ran."""

    name: str
    seconds: float
    counts: Counter[str]
    changed: bool | None = None


class Instrumentation(Record, frozen=False):
    """What to watch in one compilation, and what was seen."""

    dump: Dump | None = None
    dump_passes: Which | None = None
    print_after: Which | None = None
    timing: bool = False
    stream: TextIO | None = None
    debug_info: bool = False
    clock: Callable[[], float] = time.perf_counter
    runs: list[PassRun] = field(default_factory=list)

    @property
    def wants_every_pass(self) -> bool:
        """Whether upstream passes must run one by one."""
        return self.timing or self.looks_at_every_pass

    @property
    def looks_at_every_pass(self) -> bool:
        """Whether the module is shown after passes."""
        return bool(self.dump_passes or self.print_after)

    @property
    def keeps_refused(self) -> bool:
        """Whether the IR is kept for a program that a pass refuses, too."""
        return self.dump is not None

    @contextmanager
    def around(self, name: str, module: ir.Module) -> Iterator[None]:
        """Watch one pass, or one batch of upstream passes."""
        wants_change = "changed" in (self.dump_passes, self.print_after)
        before = self._text(module) if wants_change else None
        token = _counts.set(Counter())
        begin = self.clock()
        try:
            yield
            seconds = self.clock() - begin
            counts = _counts.get() or Counter()
        finally:
            _counts.reset(token)
        after = self._text(module) if self.dump_passes or self.print_after else ""
        changed = after != before if wants_change else None
        self.runs.append(PassRun(name, seconds, counts, changed))
        if self.dump and self.dump_passes and (self.dump_passes == "all" or changed):
            self.dump.write(f"after_{file_name(name)}.mlir", after)
        if self.print_after and (self.print_after == "all" or changed):
            print(f"// -----// IR Dump After {name} //----- //\n{after}", file=self._out())

    def keep_failure(self, module: ir.Module, passes: str, loaded: Path | None = None) -> str:
        """Keep the module before a failing pass; returns the command that fails again. `loaded` is the
        file that the pass is from, where it is none of lamina's. Without a folder for dumps, only the
        last few of this user are kept."""
        name = f"before_{file_name(passes)}.mlir"
        text = module.operation.get_asm(enable_debug_info=True)
        if self.dump:
            path = self.dump.write(name, text)
        else:
            path = _folder_for_failure() / name
            path.write_text(text)
        pipeline = shlex.quote(f"builtin.module({passes})")
        load = f" --load {shlex.quote(str(loaded))}" if loaded else ""
        return f"lamina-opt {shlex.quote(str(path))}{load} --pass-pipeline={pipeline}"

    def report(self) -> str:
        """The table of passes: time, share, runs, statistics. The longest come first, and their sum
        last; what took nearly nothing, and counted nothing, has one line together."""
        seconds: Counter[str] = Counter()
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for r in self.runs:
            seconds[r.name] += r.seconds  # type: ignore[assignment]
            counts[r.name].update(r.counts)
        runs = Counter(r.name for r in self.runs)
        total = sum(seconds.values()) or 1e-9
        lines, rest = [], []
        for name, spent in seconds.most_common():
            if spent < _LITTLE * total and not counts[name]:
                rest.append(name)
                continue
            said = ", ".join(f"{n} {what}" for what, n in counts[name].items())
            times = f" x{runs[name]}" if runs[name] > 1 else ""
            lines.append(f"{_milliseconds(spent, total)}  {name}{times}  {said}".rstrip())
        if rest:
            spent = sum(seconds[name] for name in rest)
            lines.append(f"{_milliseconds(spent, total)}  {len(rest)} others, below {_LITTLE:.1%} each")
        lines.append(f"{_milliseconds(total, total)}  in {len(self.runs)} runs of {len(seconds)} passes")
        return "\n".join(lines)

    def _text(self, module: ir.Module) -> str:
        return module.operation.get_asm(enable_debug_info=self.debug_info)

    def _out(self) -> TextIO:
        return self.stream or sys.stderr


_ambient: ContextVar[Instrumentation | None] = ContextVar("lamina_instrumentation", default=None)
_number = itertools.count()


def current(name: str) -> Instrumentation:
    """The instrumentation in force, or what the environment asks for a compilation of this name."""
    return _ambient.get() or _from_environment(name)


@contextmanager
def use(instrumentation: Instrumentation) -> Iterator[Instrumentation]:
    """Watch all pipelines inside with this."""
    token = _ambient.set(instrumentation)
    try:
        yield instrumentation
    finally:
        _ambient.reset(token)


@contextmanager
def compiling(name: str) -> Iterator[Instrumentation]:
    """One compilation: all pipelines inside share a dump folder, numbers and a timing table."""
    with use(_from_environment(name)) as watch:
        yield watch
    if watch.timing:
        print(f"lamina: {name}\n{watch.report()}", file=sys.stderr)


@contextmanager
def off() -> Iterator[None]:
    """Watch nothing inside."""
    with use(Instrumentation()):
        yield


def _folder_for_failure() -> Path:
    """A new folder of this user alone; of earlier ones in the same place the oldest are removed."""
    earlier = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_FAILURE}*"):
        with suppress(OSError):  # one that another process is removing
            status = folder.lstat()
            if status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode):
                earlier.append((status.st_mtime_ns, folder))
    for _, folder in sorted(earlier, reverse=True)[_FAILURES_KEPT - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=_FAILURE))


def _milliseconds(seconds: float, total: float) -> str:
    return f"{seconds * 1e3:9.3f} ms {100 * seconds / total:5.1f}%"


def file_name(text: str) -> str:
    """A text made fit for a file name."""
    return re.sub(r"[^\w.\-]+", "_", text)[:80].strip("_")


def _from_environment(name: str) -> Instrumentation:
    folder, passes = os.environ.get("LAMINA_DUMP"), os.environ.get("LAMINA_DUMP_PASSES")
    if passes not in (None, "", "changed", "all"):
        raise ValueError(f"LAMINA_DUMP_PASSES={passes}: expected changed or all")
    dump = None
    if folder:
        dump = Dump(Path(folder) / f"{next(_number):04d}_{file_name(name)}.{os.getpid()}")
    timing = os.environ.get("LAMINA_TIMING", "0") not in ("", "0")
    return Instrumentation(dump=dump, dump_passes=passes or None, timing=timing)  # type: ignore[arg-type]
