"""The cyclic garbage collector, held off while a program is traced and compiled.

This makes hundreds of thousands of objects that live until it ends and hardly a cycle.
Each collection walks them, and everything the process holds besides, to find nothing: a twentieth
of the time alone, more beside a large heap.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_was_enabled = False
_modules_before = 0
_MANY_MODULES = 64


@contextmanager
def held_off() -> Iterator[None]:
    """No automatic collection inside, in any thread; it goes on as it was when the last of those
    inside is out."""
    global _holders, _was_enabled, _modules_before
    with _lock:
        if not _holders:
            _was_enabled = gc.isenabled()
            _modules_before = len(sys.modules)
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if not _holders and _was_enabled:
                if len(sys.modules) - _modules_before >= _MANY_MODULES:
                    _take_for_old()
                gc.enable()


def _take_for_old() -> None:
    """Makes all objects part of the oldest generation, as the next collection would after it had walked
    them: what an import makes stays."""
    if not gc.get_freeze_count():  # what somebody else froze is to stay so
        gc.freeze()
        gc.unfreeze()
