"""Settings of the process that are changed while any of its threads wants them so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lamina.forks import new_lock


class ProcessSetting:
    """Changed when the first thread comes in, and as it was when the last is out. In a forked child,
    where the threads that were inside are not, it is as it was before them.

    `change` returns what changes it back.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change = change
        self._undo: Callable[[], None] | None = None
        self._inside: set[object] = set()
        self._lock = new_lock()
        os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def changed(self) -> Iterator[None]:
        """The setting is changed inside."""
        token = object()
        with self._lock:
            if not self._inside:
                self._undo = self._change()
            self._inside.add(token)
        try:
            yield
        finally:
            with self._lock:
                if token in self._inside:
                    self._inside.remove(token)
                    self._change_back()

    def _change_back(self) -> None:
        if not self._inside and self._undo is not None:
            undo, self._undo = self._undo, None
            undo()

    def _forget(self) -> None:
        self._inside.clear()
        self._change_back()
