"""Modules of lamina are loaded whole where Ctrl-C comes meanwhile: it is seen when the import is over.

Many are loaded at first use. Python leaves a package whose loading was stopped half there: what it loaded
stays in `sys.modules` and is no attribute of its parent any more, of NumPy's and the standard library's
packages, too, which is an AttributeError or a NameError for the rest of the process.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from lamina.dialects.interrupts import hold_back, release

_SECONDS = 0.0005
"""Between looks whether an import is over."""


class WholeImports:
    """Finds lamina's modules as the others do, and has them loaded whole."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As importlib.abc.MetaPathFinder has it, whose import takes as long as a tenth of lamina's."""
        if not name.startswith("lamina."):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            if (spec := finder.find_spec(name, path, target)) is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    loader: Any = spec.loader
                    loader.exec_module = _whole(loader.exec_module)
                return spec
        return None


def _whole(load: Callable[[ModuleType], Any]) -> Callable[[ModuleType], None]:
    def exec_module(module: ModuleType) -> None:
        if not hold_back():
            load(module)
            return
        try:
            load(module)
        finally:
            came = release()
            if came:
                who = _importer(sys._getframe())
                numbers = [number for number, _ in came]
                threading.Thread(target=_send_later, args=(numbers, who), daemon=True).start()

    return exec_module


def _importer(frame: FrameType | None) -> FrameType | None:
    """What imports, below Python's machinery."""
    while frame is not None and (frame.f_code.co_filename == __file__ or _is_machinery(frame)):
        frame = frame.f_back
    return frame


def _send_later(numbers: list[int], importer: FrameType | None) -> None:
    """Sends the signals to the main thread again when the import is over, so that what it waits in by then ends.
    While this looks, the main thread does not go on."""
    main = threading.main_thread().ident or 0
    while _is_importing(sys._current_frames().get(main), importer):
        time.sleep(_SECONDS)
    for number in numbers:
        signal.pthread_kill(main, number)


def _is_importing(frame: FrameType | None, importer: FrameType | None) -> bool:
    """Whether Python's machinery is at work above the importer, which may be gone."""
    found = False
    while frame is not None and frame is not importer:
        found = found or _is_machinery(frame)
        frame = frame.f_back
    return found and frame is not None


def _is_machinery(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen importlib")


def install() -> None:
    """From now on."""
    if not any(isinstance(finder, WholeImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, WholeImports())
