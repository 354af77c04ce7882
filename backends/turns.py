"""Threads that take short turns while several processes compile a program's kernels.

What hands kernels to workers and takes them back needs the interpreter for microseconds, many times,
and so does LLVM's thread. Python lets whoever runs keep it for 5 ms: with 1 ms a transformer's
compilation takes a twentieth less, with 0.2 ms no less than that. A program of one kernel, which
no worker sees, takes longer so: it is compiled in turns of the usual length.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS = 0.001
_lock = threading.Lock()
_inside = 0
_before = 0.0


@contextmanager
def short_turns() -> Iterator[None]:
    """No thread waits long for another inside; it is as it was when the last of those inside is out."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_before, _SECONDS))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setswitchinterval(_before)
