"""Ctrl-C while MLIR works: held back, and seen between passes and kernels; and the interpreter's end.

MLIR calls Python: for rewrites, walks, and classes of ops that it looks for in modules. It is built
without exceptions, so that one that comes out of there, as a signal's handler may raise, ends the
process; and a module whose loading was stopped has registered its dialect already, and can't be loaded
again. So does Python itself before 3.14 where the interpreter ends: daemon threads are unwound.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_RAISING = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGVTALRM,
    signal.SIGPROF, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
"""Signals whose handlers programs let raise something."""

_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
_Signal = tuple[int, FrameType | None]
_held: list[_Signal] = []



def _nobody_listens() -> None:
    """Where the runtime is not there, as in processes that read programs."""


_enter_native_code: Callable[[], None] = _nobody_listens
_leave_native_code: Callable[[], None] = _nobody_listens


def set_native_code(enter: Callable[[], None], leave: Callable[[], None]) -> None:
    """What the runtime is told where a thread enters MLIR and leaves it: that nothing may unwind it."""
    global _enter_native_code, _leave_native_code
    _enter_native_code, _leave_native_code = enter, leave


class _Stopped(BaseException):
    """What a handler raised, on its way to where signals were first held back: no `except Exception` in
    between takes it for a failure of its own."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds handlers of signals back to the end of the outermost such block, and threads that the
    interpreter's end meets there. Other threads than the main one never run any handlers."""
    if threading.current_thread() is not threading.main_thread():
        _enter_native_code()
        try:
            yield
        finally:
            _leave_native_code()
        return
    if not hold_back():
        yield
        return
    try:
        yield
    except _Stopped as stopped:
        raise stopped.error from None
    finally:
        with contextlib.ExitStack() as all_held:
            handlers = dict(_handlers)
            for number, frame in reversed(release()):
                all_held.callback(handlers[number], number, frame)


def hold_back() -> bool:
    """Holds handlers back until `release`. False where they are already, and in other threads than the
    main one, which never run any."""
    if _handlers or threading.current_thread() is not threading.main_thread():
        return False
    try:
        for number in _RAISING:
            handler = signal.getsignal(number)
            if callable(handler):
                _handlers[number] = handler
                signal.signal(number, _hold)
    except BaseException:  # one that came before its turn
        release()
        raise
    return True


def release() -> list[_Signal]:
    """Handlers run as they did before `hold_back`; the signals that came meanwhile, and the frames that
    they came in."""
    for held, handler in _handlers.items():
        if signal.getsignal(held) is _hold:  # none has set another meanwhile
            signal.signal(held, handler)
    came = list(_held)
    _held.clear()
    _handlers.clear()
    return came


def let_interrupts_in() -> None:
    """Run the handlers of the signals that have come. What one raises ends the outermost `uninterrupted`
    block, so no MLIR must be between this and that."""
    if not _held or threading.current_thread() is not threading.main_thread():
        return
    try:
        while _held:
            number, frame = _held.pop(0)
            _handlers[number](number, frame)
    except _Stopped:
        raise
    except BaseException as error:
        raise _Stopped(error) from None


def _hold(number: int, frame: FrameType | None) -> None:
    _held.append((number, frame))
