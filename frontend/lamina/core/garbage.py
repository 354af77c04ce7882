"""The cyclic garbage collector, held off while a program is traced and compiled.

This makes hundreds of thousands of objects that live until it ends and hardly a cycle.
Each collection walks them, and everything the process holds besides, to find nothing: a twentieth
of the time alone, more beside a large heap.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_was_enabled = False


@contextmanager
def held_off() -> Iterator[None]:
    """No automatic collection inside, in any thread; it goes on as it was when the last of those
    inside is out."""
    global _holders, _was_enabled
    with _lock:
        if not _holders:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if not _holders and _was_enabled:
                gc.enable()
