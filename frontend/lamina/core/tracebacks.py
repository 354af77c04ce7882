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


def raised_by_library(traceback: TracebackType | None) -> bool:
    """Whether the innermost frame is one of lamina that stands at a `raise`: an error that is meant for
    the user, unlike one that an operation of Python's or a function of another library had there."""
    if traceback is None:
        return False
    from opcode import opmap

    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return is_internal(code) and code.co_code[traceback.tb_lasti] == opmap["RAISE_VARARGS"]


def _called_wrongly(error: BaseException, traceback: TracebackType | None) -> bool:
    """Whether lamina called a function of the user's with arguments that it does not take: Python says
    so in the frame of the caller."""
    if not isinstance(error, TypeError) or traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    called, bracket, _ = str(error).partition("()")
    return bool(bracket) and any(
        getattr(value, "__qualname__", None) == called and not is_internal(value.__code__)
        for value in traceback.tb_frame.f_locals.values()
        if hasattr(value, "__code__")
    )


def _leave_out(error: BaseException, traceback: TracebackType | None, tracing: bool) -> None:
    if config.traceback_filtering.value == "off":
        return
    note = (
        f"For simplicity, {library.name}'s own frames are left out; "
        f"{library.variable('traceback_filtering')}=off shows them."
    )
    notes = getattr(error, "__notes__", ())
    kept = without_internal_frames(traceback)
    meant_for_user = (
        note in notes
        or (tracing and isinstance(error, _OF_OPERANDS))
        or _called_wrongly(error, traceback)
        or (raised_by_library(traceback) and not isinstance(error, AssertionError))
    )
    if kept is None and not meant_for_user:
        return
    if note not in notes:
        error.add_note(note)
    error.__traceback__ = kept


class FilteredTracebacks:
    """Errors leave the block with the user's frames only, where there are any or where the error is one
    that lamina raises; what else goes wrong in lamina keeps its frames.

    `tracing` where the block does no more than trace: an error in what lamina itself traces there
    (the program of an operator) is about its operands, and none of the frames helps.
    """

    def __init__(self, *, tracing: bool = False) -> None:
        self._tracing = tracing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            _leave_out(error, traceback, self._tracing)


def api_boundary(fun: F) -> F:
    """fun, whose errors leave it as they leave FilteredTracebacks: for what users call with functions
    of theirs."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except BaseException as error:
            _leave_out(error, error.__traceback__, False)
            raise

    return call  # type: ignore[return-value]
