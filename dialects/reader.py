"""The program of a process that reads bytecode for another (`lamina.dialects.foreign`).

MLIR's reader of bytecode trusts it: what was damaged may corrupt its memory, take all there is, or never
end. So each program is read in a fork of this process, which is as it was for the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from typing import IO, Any, NoReturn

from lamina.dialects.context import make_context, parse
from lamina.dialects.limits import Limits
from lamina.dialects.parse_error import NOT_UTF8, ParseError, is_about_encoding
from lamina.dialects.processes import read_message, write_message
from lamina.dialects.serialize import to_text
from lamina.dialects.vendors import ir

_IDLE_SECONDS = 300.0
_DONE = b"d"


def main() -> None:
    """Read what comes in until nothing has for minutes, or the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not be read as an answer
    with make_context() as context, ir.Location.unknown():
        parse("module {}")  # what is made at first use is there in all forks
        with contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
            write_message(answers, b"ready")
            while select.select([given], [], [], _IDLE_SECONDS)[0]:
                job = json.loads(read_message(given))
                limits = Limits(**job["limits"])
                context.allow_unregistered_dialects = job["allow_unregistered_dialects"]
                _answer(job["name"], read_message(given), limits, answers)


def _answer(name: str, source: bytes, limits: Limits, answers: IO[bytes]) -> None:
    """Let a fork read a program and write the answer, or say what became of the fork."""
    begun, begins = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(begun)
        _read(name, source, limits, begins, answers)
    os.close(begins)
    deadline = time.monotonic() + limits.reader_seconds
    while True:
        waits = select.select([begun], [], [], max(0.0, deadline - time.monotonic()))[0]
        if waits or time.monotonic() >= deadline:
            break
    is_done = bool(waits) and os.read(begun, 1) == _DONE
    os.close(begun)
    if not waits:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if is_done:  # an answer has been begun, at least
        if status != 0:
            raise EOFError
    elif not waits:
        seconds = limits.reader_seconds
        _write_problem(answers, f"reading it takes longer than {seconds:g} s (setting reader_seconds)")
    else:
        problem = f"MLIR's reader was brought down by it ({_ending(status)})"
        if status == -signal.SIGABRT:  # so C++ ends where there is no memory
            problem += f", or {_too_much(limits)}"
        _write_problem(answers, problem)


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"


def _read(name: str, source: bytes, limits: Limits, begins: int, answers: IO[bytes]) -> NoReturn:
    """What a fork does: the program as text, verified."""
    try:
        _limit_memory(limits.reader_bytes)
        text, error = b"", None
        try:
            module = parse(source, name=name)
            module.operation.verify()
            text = to_text(module, debug_info=True, verified=True).encode()
        except ParseError as found:
            error = [found.problem, found.line, found.column, found.excerpt]
        except MemoryError:
            error = [_too_much(limits), 0, 0, ""]
        except (RuntimeError, ValueError) as found:
            if "bad_alloc" in str(found):
                error = [_too_much(limits), 0, 0, ""]
            else:
                error = [NOT_UTF8 if is_about_encoding(found) else str(found), 0, 0, ""]
        os.write(begins, _DONE)
        write_message(answers, json.dumps({"error": error}).encode())
        if error is None:
            write_message(answers, text)
        os._exit(0)
    finally:
        os._exit(1)


def _write_problem(answers: IO[bytes], problem: str) -> None:
    write_message(answers, json.dumps({"error": [problem, 0, 0, ""]}).encode())


def _too_much(limits: Limits) -> str:
    return f"reading it takes more than {limits.reader_bytes} bytes of memory (setting reader_bytes)"


def _limit_memory(size: int) -> None:
    """Let this process have so many bytes more than it has."""
    with open("/proc/self/statm") as file:
        has = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted: Any = has + size
    resource.setrlimit(
        resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most)
    )
