"""The streams of the driver made of Python: queues whose work is done when somebody waits for it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.fake_cuda import c_calls as fake_c
from support.fake_cuda.c_calls import PTR, UINT, set_word
from support.fake_cuda.graphs import Work

if TYPE_CHECKING:
    from support.fake_cuda.driver import FakeDriver

_NOT_READY = 600

CALLS: fake_c.Calls = {}
_call = functools.partial(fake_c.register, CALLS)


class NotReadyError(Exception):
    """Raised by work that needs what another stream has not been given yet, or will never do."""


class Stream:
    """Work in order, done when somebody waits for it."""

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self.queue: list[Work] = []
        self.done = 0
        self.issued = 0
        self.captured: list[Work] | None = None  # what is issued goes here instead
        self.milliseconds = 0.0  # that its work took, as the driver is told

    def put(self, work: Work) -> None:
        if self.captured is not None:
            self.captured.append(work)
            return
        self.queue.append(work.launched_on(self) if hasattr(work, "launched_on") else work)
        self.issued += 1

    def step(self) -> None:
        if not self.queue:
            return
        work = self.queue[0]
        try:
            work()
        except NotReadyError:
            raise
        except BaseException:  # as a test's time-out: nobody waits for it again
            self._drop(work)
            raise
        self._drop(work)

    def _drop(self, work: Work) -> None:
        if self.queue and self.queue[0] is work:  # work of others that needs this one's result may have done it
            self.queue.pop(0)
            self.done += 1

    def reach(self, place: int) -> None:
        while self.done < place:
            self.step()


@dataclass
class Event:
    stream: Stream | None = None
    place: int = 0
    time: float = 0.0


_call("cuStreamCreate", PTR, UINT)(lambda self, out, flags: set_word(out, self.handle(Stream(self.device))))
_call("cuEventCreate", PTR, UINT)(lambda self, out, flags: set_word(out, self.handle(Event())))
_call("cuEventDestroy_v2", PTR)(lambda self, event: 0)


@_call("cuStreamSynchronize", PTR)
def _synchronize(self: FakeDriver, stream: int) -> int:
    held: Stream = self.objects[stream]
    self.wait(held, held.issued)
    return self.broken


@_call("cuStreamWaitEvent", PTR, PTR, UINT)
def _stream_wait(self: FakeDriver, stream: int, event: int, flags: int) -> None:
    recorded = self.objects[event]
    there, place = recorded.stream, recorded.place
    self.objects[stream].put(lambda: there.reach(place))


@_call("cuEventRecord", PTR, PTR)
def _record(self: FakeDriver, event: int, stream: int) -> None:
    held = self.objects[stream]
    recorded = self.objects[event]

    def note() -> None:
        recorded.time = held.milliseconds

    held.put(note)
    recorded.stream, recorded.place = held, held.issued


@_call("cuEventQuery", PTR)
def _query(self: FakeDriver, event: int) -> int:
    held: Event = self.objects[event]
    assert held.stream is not None
    if held.stream.done < held.place:
        with contextlib.suppress(NotReadyError):
            held.stream.step()
        return self.broken or _NOT_READY
    return self.broken


@_call("cuEventSynchronize", PTR)
def _event_synchronize(self: FakeDriver, event: int) -> int:
    held: Event = self.objects[event]
    assert held.stream is not None
    self.wait(held.stream, held.place)
    return self.broken


@_call("cuEventElapsedTime", PTR, PTR, PTR)
def _elapsed(self: FakeDriver, out: int, before: int, after: int) -> None:
    passed = self.objects[after].time - self.objects[before].time
    ctypes.c_float.from_address(out).value = passed
