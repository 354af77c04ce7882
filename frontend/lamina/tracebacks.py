"""Tracebacks of errors in user code, without the frames of lamina in between."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from lamina import config
from lamina.core.library import library
from lamina.core.source_info import is_internal

F = TypeVar("F", bound=Callable[..., Any])
_OF_OPERANDS = (TypeError, ValueError, IndexError, OverflowError)


def without_internal_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback of the user's frames alone."""
    frames = []
    while traceback is not None:
        if not is_internal(traceback.tb_frame.f_code):
            frames.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


class FilteredTracebacks:
    """Errors leave the block with the user's frames only, where there are any.

    `tracing` where the block does no more than trace: an error in what lamina itself traces there
    (the program of an operator) is about its operands, and none of the frames helps.
    """

    def __init__(self, *, tracing: bool = False) -> None:
        self._tracing = tracing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None or config.traceback_filtering.value == "off":
            return
        kept = without_internal_frames(traceback)
        if kept is None and not (self._tracing and isinstance(error, _OF_OPERANDS)):
            return
        note = (
            f"{library.name}'s own frames are left out; "
            f"{library.variable('traceback_filtering')}=off shows them."
        )
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        error.__traceback__ = kept


def api_boundary(fun: F) -> F:
    """fun, whose errors leave it with the user's frames only."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with FilteredTracebacks():
            return fun(*args, **kwargs)

    return call  # type: ignore[return-value]
