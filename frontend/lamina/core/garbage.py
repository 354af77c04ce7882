"""The cyclic garbage collector, held off while a program is traced and compiled.

This makes hundreds of thousands of objects that live until it ends and hardly a cycle.
Each collection walks them, and everything the process holds besides, to find nothing: a twentieth
of the time alone, more beside a large heap.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from lamina.process_setting import ProcessSetting

_MANY_MODULES = 64


def held_off() -> AbstractContextManager[None]:
    """No automatic collection inside, in any thread; it goes on as it was when the last of those
    inside is out."""
    return _held_off.changed()


def _disable() -> Callable[[], None]:
    was_enabled, modules_before = gc.isenabled(), len(sys.modules)
    gc.disable()

    def undo() -> None:
        if was_enabled:
            if len(sys.modules) - modules_before >= _MANY_MODULES:
                _take_for_old()
            gc.enable()

    return undo


_held_off = ProcessSetting(_disable)


def _take_for_old() -> None:
    """Makes all objects part of the oldest generation, as the next collection would after it had walked
    them: what an import makes stays."""
    if not gc.get_freeze_count():  # what somebody else froze is to stay so
        gc.freeze()
        gc.unfreeze()
