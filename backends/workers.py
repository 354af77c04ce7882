"""Other processes that compile kernels, where a program has many.

MLIR's bindings hold the interpreter's lock and llvmlite one of its own, so threads do not help. A
worker is an interpreter of its own that reads kernels as text and gives objects. Workers are started
when a program comes that is large enough and processors are idle (`workforce.py`), and kept for the
next; one that has nothing to do for a minute ends, and so does one whose parent is gone. What a
worker can't do, for whatever reason, the caller does itself. `LAMINA_COMPILE_WORKERS` says how many
there are instead, however busy the machine is.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress

from lamina.backends.machine.compile_times import PER_COST, PER_OPERATION
from lamina.backends.target import Target
from lamina.backends.turns import short_turns
from lamina.backends.workforce import (
    idle_processors,
    worth_starting,
)
from lamina.dialects.processes import read_message, start, write_message
from lamina.runtime import machine_limits

LEAST_KERNELS = 8  # code
"""Fewer are compiled before a worker has started, if none is there."""
LEAST_OPERATIONS = 500  # code
"""Of a program for which workers may be started before it is known how many kernels it has."""
_PATIENCE = 120.0  # seconds for a kernel that this process would be done with in a tenth

_lock = threading.Condition()
_workers: list[_Worker] = []
_batches: list[Batch] = []


class Batch:
    """Kernels to be compiled by whoever is free, the longest first: so nobody is left with a long one
    when all others are done."""

    def __init__(self, target: Target, *, alone: bool = False) -> None:
        """With `alone` workers get none."""
        self.target, self._alone = target, alone
        self._count = 0
        self._done: dict[str, Future[bytes | None]] = {}
        self._waiting: deque[tuple[str, str]] = deque()
        self._turns = ExitStack()

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *exc: object) -> None:
        with _lock:
            self._waiting.clear()
            if self in _batches:
                _batches.remove(self)
        self._turns.close()

    def add(self, sources: Mapping[str, str]) -> None:
        """More of them: symbol -> text. One alone is the caller's."""
        self._count += len(sources)
        if self._count >= LEAST_KERNELS and not self._alone:
            left = (*(text for _, text in self._waiting), *sources.values())
            prepare(PER_COST * sum(map(_cost, left)))
        with _lock:
            longest = sorted((*self._waiting, *sources.items()), key=lambda each: -_cost(each[1]))
            self._waiting = deque(longest)
            if self._count > 1 and not self._alone and self not in _batches:
                _batches.append(self)
                self._turns.enter_context(short_turns())
            _lock.notify_all()

    def take(self, most: int = 1) -> list[str]:
        """The symbols of kernels that the caller has to compile: none when all are taken, and fewer than
        `most` where few are left, so that a worker has some of them."""
        with _lock:
            count = min(most, -(-len(self._waiting) // most))
            return [self._waiting.popleft()[0] for _ in range(count)]

    def hand_out(self) -> tuple[str, str, Future[bytes | None]] | None:
        """Symbol and text of a kernel for a worker, and where the result goes."""
        if not self._waiting:
            return None
        symbol, source = self._waiting.popleft()
        future = self._done[symbol] = Future()
        return symbol, source, future

    def result(self, symbol: str) -> bytes | None:
        """What a worker made of a kernel that it took; None if it could not."""
        future = self._done.get(symbol)
        try:
            return None if future is None else future.result(_PATIENCE)
        except TimeoutError:
            return None


# What takes longer than its text, in characters that take as long: fitted to 70 kernels, whose order by
# time this gives with a correlation of 0.82 (their lengths alone: 0.59).
_FUNCTIONS = ("sine", "cosine", "exponential", "log", "tanh", "logistic", "power")
_COSTS = {
    "dot_general": 1150,
    **{f"stablehlo.{name}": 400 for name in _FUNCTIONS},
    "stablehlo.pad": 800,
    "stablehlo.concatenate": 500,
}


def _cost(source: str) -> int:
    """About how long a kernel takes to compile, in a unit of its own."""
    return len(source) + sum(cost * source.count(word) for word, cost in _COSTS.items())


def prepare(seconds: float = math.inf) -> None:
    """Start the workers that are worth it for so many seconds of compiling and not there yet; they are of
    use as soon as they are ready."""
    with _lock:
        _workers[:] = [worker for worker in _workers if worker.is_there()]
        wanted = _wanted(seconds)
        while len(_workers) < wanted:
            try:
                _workers.append(_Worker())
            except OSError:  # no processes to be had: the caller compiles alone
                return


def expect(operations: int, target: Target | None = None) -> None:
    """Says that a program of so many operations is about to be lowered, and then compiled: of a large
    one the workers are ready by the time it has kernels."""
    if operations >= LEAST_OPERATIONS and (target is None or target.kind == "cpu"):
        prepare(PER_OPERATION * operations)


def _wanted(seconds: float) -> int:
    text = os.environ.get("LAMINA_COMPILE_WORKERS")
    if text is None:
        if not sys.executable:
            return 0
        threads, _ = machine_limits()  # what a cgroup pays for, where that is less than the CPUs
        return worth_starting(seconds, threads, idle_processors(own=1 + len(_workers)) + len(_workers))
    if not text.strip().isdecimal():
        raise ValueError(
            f"environment variable LAMINA_COMPILE_WORKERS={text!r}: expected how many processes may "
            "compile beside this one, 0 for none"
        )
    return int(text)


class _Worker:
    """A process, and the thread of this one that feeds it."""

    def __init__(self) -> None:
        self._process = start("lamina.backends.worker")
        threading.Thread(target=self._feed, name="lamina-worker", daemon=True).start()

    def is_there(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Let the process go, at once."""
        self._process.kill()
        self._process.wait()

    def _feed(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        future: Future[bytes | None] | None = None
        try:
            read_message(self._process.stdout)  # it is ready
            while True:
                target, (symbol, source, future) = self._next_job()
                job = {"symbol": symbol, "source": source, "target": target.describe()}
                write_message(self._process.stdin, json.dumps(job).encode())
                future.set_result(read_message(self._process.stdout) or None)
        except (OSError, EOFError):  # it ended: idle for long, killed, or never started
            if future is not None and not future.done():
                future.set_result(None)
            with _lock:
                if self in _workers:
                    _workers.remove(self)
            self.end()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    pipe.close()

    def _next_job(self) -> tuple[Target, tuple[str, str, Future[bytes | None]]]:
        with _lock:
            while True:
                if not self.is_there():
                    raise EOFError
                for batch in _batches:
                    job = batch.hand_out()
                    if job is not None:
                        return batch.target, job
                _lock.wait()


def _forget() -> None:
    """In a forked child: the workers are its parent's, and the threads are not there."""
    global _lock
    _lock = threading.Condition()
    _workers.clear()
    _batches.clear()


def _end_all() -> None:
    for worker in list(_workers):
        worker.end()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end_all)

