"""Handlers that go on after they have returned: tasks, which run at once, and futures, which are waited for."""

from __future__ import annotations

import ctypes
import itertools
import threading

from lamina.ffi.errors import HEAD, Function, take_error

_Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Schedule(ctypes.Structure):
    _fields_ = [*HEAD, ("context", ctypes.c_void_p), ("task", ctypes.c_void_p), ("data", ctypes.c_void_p)]


class _NumThreads(ctypes.Structure):
    _fields_ = [*HEAD, ("context", ctypes.c_void_p), ("count", ctypes.POINTER(ctypes.c_int64))]


class _OfFuture(ctypes.Structure):
    _fields_ = [*HEAD, ("future", ctypes.c_void_p), ("error", ctypes.c_void_p)]


class _Future:
    """What a handler promises."""

    def __init__(self) -> None:
        self.is_set = threading.Event()
        self.error: int | None = None


_numbers = itertools.count(1)
_futures: dict[int, _Future] = {}  # what a handler holds is a number


@Function
def _schedule(address: int) -> None:
    args = _Schedule.from_address(address)
    _Task(args.task)(args.data)


@Function
def _num_threads(address: int) -> None:
    _NumThreads.from_address(address).count[0] = 1


@Function
def _create(address: int) -> None:
    number = next(_numbers)
    _futures[number] = _Future()
    _OfFuture.from_address(address).future = number


@Function
def _set_available(address: int) -> None:
    _futures[_OfFuture.from_address(address).future].is_set.set()


@Function
def _set_error(address: int) -> None:
    args = _OfFuture.from_address(address)
    future = _futures[args.future]
    future.error = args.error
    future.is_set.set()


FUNCTIONS = {
    "ThreadPool_Schedule": _schedule,
    "ThreadPool_NumThreads": _num_threads,
    "Future_Create": _create,
    "Future_SetAvailable": _set_available,
    "Future_SetError": _set_error,
}
"""By their names in the table."""


def wait_for(number: int) -> None:
    """Waits for what a handler promised; raises JaxRuntimeError where it failed."""
    future = _futures[number]
    future.is_set.wait()
    del _futures[number]
    take_error(future.error)
