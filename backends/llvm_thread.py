"""The thread in which LLVM works while this one lowers the next kernel.

It is kept: a new one has no memory yet to work in, and asks the system for it page by page. It is not
an executor of the standard library's: one whose thread was being started when Ctrl-C was pressed waits
for that thread for ever when the interpreter ends, and none takes work from `atexit` handlers.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
_thread: threading.Thread | None = None
_lock = threading.Lock()


def submit(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """What the function gives, or raises, when the thread has come to it."""
    future: Future[T] = Future()

    def job() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    # An interrupt may leave a thread that nobody knows: it works beside the next, and as it is a daemon,
    # nobody waits for it.
    global _thread
    with _lock:
        _jobs.put(job)
        if _thread is None:
            thread = threading.Thread(target=_work, args=(_jobs,), name="lamina-llvm", daemon=True)
            thread.start()
            _thread = thread
    return future


def _work(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # and what it holds, while there is nothing to do
    jobs.put(None)  # for one that nobody knows


def _end() -> None:
    """Leave no thread inside LLVM, whose destructors run next."""
    global _jobs, _thread
    with _lock:
        thread, _thread = _thread, None
        jobs, _jobs = _jobs, SimpleQueue()
    jobs.put(None)
    if thread is not None:
        thread.join()


def _forget() -> None:
    """In a forked child: the thread is its parent's."""
    global _jobs, _thread, _lock
    _jobs, _thread, _lock = SimpleQueue(), None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)
