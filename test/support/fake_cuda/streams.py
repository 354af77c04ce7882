"""The streams of the driver made of Python: queues whose work is done when somebody waits for it."""

from __future__ import annotations

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


class Stream:
    """Work in order, done when somebody waits for it."""

    def __init__(self) -> None:
        self.queue: list[Work] = []
        self.done = 0
        self.issued = 0
        self.captured: list[Work] | None = None  # what is issued goes here instead
        self.milliseconds = 0.0  # that its work took, as the driver is told

    def put(self, work: Work) -> None:
        if self.captured is not None:
            self.captured.append(work)
            return
        self.queue.append(work)
        self.issued += 1

    def step(self) -> None:
        if self.queue:
            self.done += 1  # also of work that raises, as a test's time-out does: nobody waits for it again
            self.queue.pop(0)()

    def reach(self, place: int) -> None:
        while self.done < place:
            self.step()


@dataclass
class Event:
    stream: Stream | None = None
    place: int = 0
    time: float = 0.0


_call("cuStreamCreate", PTR, UINT)(lambda self, out, flags: set_word(out, self.handle(Stream())))
_call("cuEventCreate", PTR, UINT)(lambda self, out, flags: set_word(out, self.handle(Event())))
_call("cuEventDestroy_v2", PTR)(lambda self, event: 0)


@_call("cuStreamSynchronize", PTR)
def _synchronize(self: FakeDriver, stream: int) -> int:
    held: Stream = self.objects[stream]
    held.reach(held.issued)
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
        held.stream.step()
        return self.broken or _NOT_READY
    return self.broken


@_call("cuEventSynchronize", PTR)
def _event_synchronize(self: FakeDriver, event: int) -> int:
    held: Event = self.objects[event]
    assert held.stream is not None
    held.stream.reach(held.place)
    return self.broken


@_call("cuEventElapsedTime", PTR, PTR, PTR)
def _elapsed(self: FakeDriver, out: int, before: int, after: int) -> None:
    passed = self.objects[after].time - self.objects[before].time
    ctypes.c_float.from_address(out).value = passed
