"""Programs from outside: text that is looked over before it is parsed, bytecode that another process
reads.

`read` is for what a stranger may have written. What a frontend in this process hands over is no such
thing, and `context.parse` takes it as it is.
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from lamina.dialects.limits import DEFAULT_LIMITS, Limits
from lamina.dialects.look_over import check_size, look_over
from lamina.dialects.parse_error import NOT_UTF8, ParseError, is_about_encoding
from lamina.dialects.processes import read_message, start, write_message

if TYPE_CHECKING:
    from lamina.dialects.vendors import ir

BYTECODE = b"ML\xefR"
"""What bytecode begins with."""
_PATIENCE = 60.0  # seconds beyond the limit, for a process that itself keeps to the limit


def read(
    source: str | bytes,
    *,
    name: str = "<input>",
    isolate: bool | None = None,
    limits: Limits = DEFAULT_LIMITS,
    allow_unregistered_dialects: bool = False,
    keeps_marks: bool = False,
) -> ir.Module:
    """The module in MLIR text, MLIR bytecode or a StableHLO portable artifact, verified.

    isolate  whether another process, which may be brought down by it, reads the program first; by
             default it does with bytecode. Bytecode that one's own process has written needs none.
    limits   what is refused.
    allow_unregistered_dialects  whether that process takes ops of dialects that nobody defines.
    keeps_marks  whether attributes stay by which our passes tell each other (marks.py): for tools that
                 run them one by one.

    Raises ParseError, whose message starts with `name`, for what is no valid module, for what is
    beyond the limits, and for what brings the reading process down.
    """
    is_bytecode = isinstance(source, bytes) and source.startswith(BYTECODE)
    if isolate is None:
        isolate = is_bytecode
    if isinstance(source, bytes):
        check_size(len(source), name, limits)
    elif isolate:
        look_over(source, name, limits)
    if isolate:
        source = _read_elsewhere(source, name, limits, allow_unregistered_dialects)
        is_bytecode = False
    from lamina.dialects.context import decoded, parse
    from lamina.dialects.marks import PREFIX, forget_marks
    from lamina.dialects.sizes import check_sizes

    if not is_bytecode:
        source = decoded(source, name)
        look_over(source, name, limits)
    module = parse(source, name=name)
    check_sizes(module, name)
    if not keeps_marks and isinstance(source, str) and PREFIX in source:
        try:
            forget_marks(module)
        except RuntimeError as error:  # of a name, by way of MLIR's walk
            if not is_about_encoding(error):
                raise
            raise ParseError(name, NOT_UTF8) from None
    return module


def _read_elsewhere(source: str | bytes, name: str, limits: Limits, allow: bool) -> str:
    """The program as text, as the process that reads has it."""
    data = source.encode(errors="surrogatepass") if isinstance(source, str) else source
    with _lock:
        for is_last in (False, True):
            reader = _reader()
            try:
                return reader.read(data, name, limits, allow)
            except (EOFError, OSError) as error:  # it ended meanwhile: idle for long, or killed
                reader.end()
                if is_last:
                    problem = "the process that reads programs was killed"
                    raise ParseError(name, problem) from error
            except ParseError:
                raise
            except BaseException:  # interrupted: what it has still to say is nobody's
                reader.end()
                raise
    raise AssertionError


class _Reader:
    """A process of `lamina.dialects.reader`."""

    def __init__(self) -> None:
        self._process = start("lamina.dialects.reader")
        self._is_ready = False

    def is_there(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def read(self, data: bytes, name: str, limits: Limits, allow: bool) -> str:
        """A program as text. Raises ParseError, or EOFError or OSError where the process is gone."""
        given, answers = self._process.stdin, self._process.stdout
        assert given is not None and answers is not None
        if not self._is_ready:
            read_message(answers)
            self._is_ready = True
        job = {
            "name": name,
            "limits": dataclasses.asdict(limits),
            "allow_unregistered_dialects": allow,
        }
        write_message(given, json.dumps(job).encode())
        write_message(given, data)
        if not select.select([answers], [], [], limits.reader_seconds + _PATIENCE)[0]:
            raise EOFError
        error = json.loads(read_message(answers))["error"]
        if error is not None:
            raise ParseError(name, *error)
        return read_message(answers).decode()

    def end(self) -> None:
        """Let the process go, at once."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


_lock = threading.Lock()
_kept: list[_Reader] = []


def _reader() -> _Reader:
    """The process that reads, started where there is none."""
    if _kept and not _kept[0].is_there():
        _kept.pop().end()
    if not _kept:
        _kept.append(_Reader())
    return _kept[0]


def _forget() -> None:
    """In a forked child: the process is its parent's."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


def _end() -> None:
    for reader in _kept:
        reader.end()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)
