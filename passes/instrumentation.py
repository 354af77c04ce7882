"""What can be seen of passes while they run: dumps, timing, statistics, and failures kept.

| variable | effect |
|---|---|
| `LAMINA_DUMP=dir` | a folder for each compilation, with numbered files |
| `LAMINA_DUMP_PASSES=changed` or `all` | with it, the module after each pass (that changed it) |
| `LAMINA_TIMING=1` | a table of passes, times and statistics on stderr |
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
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import Literal, TextIO

from lamina.dialects.vendors import ir
from lamina.passes.base import _counts
from lamina.passes.records import Record

Which = Literal["changed", "all"]

_FAILURE = "lamina-failure-"
_FAILURES_KEPT = 5


class Dump(Record, frozen=False):
    """A folder of numbered files: what one compilation handed from stage to stage."""

    folder: Path
    _number: int = 0

    def write(self, name: str, content: str | bytes) -> Path:
        """Keep content as `<number>_<name>`; returns where."""
        path = self.folder / f"{self._number:02d}_{name}"
        self._number += 1
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            why = f"LAMINA_DUMP: no folder can be made there: {e.strerror}"
            raise OSError(e.errno, why, str(self.folder)) from None
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


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
        """The table of passes: time, share, statistics."""
        total = sum(r.seconds for r in self.runs) or 1e-9
        lines = [f"{total * 1e3:9.3f} ms  in {len(self.runs)} passes"]
        for r in self.runs:
            counts = ", ".join(f"{n} {what}" for what, n in r.counts.items())
            share = f"{100 * r.seconds / total:5.1f}%"
            lines.append(f"{r.seconds * 1e3:9.3f} ms {share}  {r.name}  {counts}".rstrip())
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


def file_name(text: str) -> str:
    """A text made fit for a file name."""
    return re.sub(r"[^\w.\-]+", "_", text)[:80].strip("_")


def _from_environment(name: str) -> Instrumentation:
    folder, passes = os.environ.get("LAMINA_DUMP"), os.environ.get("LAMINA_DUMP_PASSES")
    if passes not in (None, "", "changed", "all"):
        raise ValueError(f"LAMINA_DUMP_PASSES={passes}: expected changed or all")
    dump = None
    if folder:
        dump = Dump(Path(folder) / f"{next(_number):03d}_{file_name(name)}.{os.getpid()}")
    timing = os.environ.get("LAMINA_TIMING", "0") not in ("", "0")
    return Instrumentation(dump=dump, dump_passes=passes or None, timing=timing)  # type: ignore[arg-type]
