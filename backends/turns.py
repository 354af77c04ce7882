"""Threads that take short turns while several processes compile a program's kernels.

What hands kernels to workers and takes them back needs the interpreter for microseconds, many times,
and so does LLVM's thread. Python lets whoever runs keep it for 5 ms: with 1 ms a transformer's
compilation takes a twentieth less, with 0.2 ms no less than that. A program of one kernel, which
no worker sees, takes longer so: it is compiled in turns of the usual length.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from lamina.process_setting import ProcessSetting

_INTERVAL = 0.001  # seconds


def short_turns() -> AbstractContextManager[None]:
    """No thread waits long for another inside; it is as it was when the last of those inside is out."""
    return _short_turns.changed()


def _shorten() -> Callable[[], None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _INTERVAL))
    return lambda: sys.setswitchinterval(before)


_short_turns = ProcessSetting(_shorten)
