"""Events of a running program, for whoever listens: compilations, cache hits, and a user's own.

lamina records, with the names that JAX gives them and `fun_name`,

    /jax/core/compile/jaxpr_trace_duration            tracing a function
    /jax/core/compile/jaxpr_to_mlir_module_duration   lowering it to StableHLO
    /jax/core/compile/backend_compile_duration        all that makes machine code of that
    /jax/compilation_cache/cache_hits, cache_misses   looking a program up in the disk store
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "CACHE_HIT",
    "CACHE_MISS",
    "COMPILE",
    "LOWER",
    "Listener",
    "TRACE",
    "clear_event_listeners",
    "measured",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

Listener = Callable[..., None]

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
CACHE_HIT = "/jax/compilation_cache/cache_hits"
CACHE_MISS = "/jax/compilation_cache/cache_misses"

_of_events: list[Listener] = []
_of_durations: list[Listener] = []
_of_time_spans: list[Listener] = []
_of_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells listeners that something happened.

    event   its name, such as "/my/cache/hit".
    kwargs  more about it.

    >>> seen = []
    >>> listener = lambda event, **kwargs: seen.append(event)
    >>> lamina.monitoring.register_event_listener(listener)
    >>> lamina.monitoring.record_event("/my/event")
    >>> lamina.monitoring.unregister_event_listener(listener)
    >>> print(seen)
    ['/my/event']
    """
    for listener in tuple(_of_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells listeners to durations how long something took.

    event     its name.
    duration  seconds.
    kwargs    more about it.

    >>> seen = []
    >>> listener = lambda event, seconds, **kwargs: seen.append((event, seconds))
    >>> lamina.monitoring.register_event_duration_secs_listener(listener)
    >>> lamina.monitoring.record_event_duration_secs("/my/step", 0.5)
    >>> lamina.monitoring.unregister_event_duration_listener(listener)
    >>> print(seen)
    [('/my/step', 0.5)]
    """
    for listener in tuple(_of_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tells listeners to time spans when something began and ended.

    event       its name.
    start_time  seconds of time.time(),
    end_time    likewise.
    kwargs      more about it.

    >>> seen = []
    >>> listener = lambda event, start, end, **kwargs: seen.append(end - start)
    >>> lamina.monitoring.register_event_time_span_listener(listener)
    >>> lamina.monitoring.record_event_time_span("/my/step", 10.0, 12.0)
    >>> lamina.monitoring.unregister_event_time_span_listener(listener)
    >>> print(seen)
    [2.0]
    """
    for listener in tuple(_of_time_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells listeners to scalars a number.

    event   what it counts.
    value   the number.
    kwargs  more about it.

    >>> seen = []
    >>> listener = lambda event, value, **kwargs: seen.append(value)
    >>> lamina.monitoring.register_scalar_listener(listener)
    >>> lamina.monitoring.record_scalar("/my/loss", 0.25)
    >>> lamina.monitoring.unregister_scalar_listener(listener)
    >>> print(seen)
    [0.25]
    """
    for listener in tuple(_of_scalars):
        listener(event, value, **kwargs)


@contextmanager
def measured(event: str, **kwargs: str | int) -> Iterator[None]:
    """A context manager that records how long a block takes, and when; nothing where it raises.

    event   its name.
    kwargs  more about it.

    >>> seen = []
    >>> listener = lambda event, seconds, **kwargs: seen.append(event)
    >>> lamina.monitoring.register_event_duration_secs_listener(listener)
    >>> with lamina.monitoring.measured("/my/block"):
    ...     total = sum(range(10))
    >>> lamina.monitoring.unregister_event_duration_listener(listener)
    >>> print(seen)
    ['/my/block']
    """
    start = time.time()
    yield
    if _of_durations or _of_time_spans:
        end = time.time()
        record_event_duration_secs(event, end - start, **kwargs)
        record_event_time_span(event, start, end, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Calls callback(event, **kwargs) for each record_event from now on.

    callback  the listener.

    >>> lamina.monitoring.register_event_listener(print)
    >>> lamina.monitoring.record_event("/my/event")
    /my/event
    >>> lamina.monitoring.unregister_event_listener(print)
    """
    _of_events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Calls callback(event, seconds, **kwargs) for each duration from now on, those of tracing,
    lowering and compiling among them.

    callback  the listener.

    >>> seen = set()
    >>> listener = lambda event, seconds, **kwargs: seen.add(event)
    >>> lamina.monitoring.register_event_duration_secs_listener(listener)
    >>> y = lamina.jit(lambda x: x + 1)(1.0)
    >>> lamina.monitoring.unregister_event_duration_listener(listener)
    >>> print(lamina.monitoring.TRACE in seen)
    True
    """
    _of_durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Calls callback(event, start, end, **kwargs) for each time span from now on, in seconds of
    time.time().

    callback  the listener.

    >>> listener = lambda event, start, end, **kwargs: print(event)
    >>> lamina.monitoring.register_event_time_span_listener(listener)
    >>> lamina.monitoring.record_event_time_span("/my/step", 10.0, 12.0)
    /my/step
    >>> lamina.monitoring.unregister_event_time_span_listener(listener)
    """
    _of_time_spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Calls callback(event, value, **kwargs) for each scalar from now on.

    callback  the listener.

    >>> listener = lambda event, value, **kwargs: print(event, value)
    >>> lamina.monitoring.register_scalar_listener(listener)
    >>> lamina.monitoring.record_scalar("/my/loss", 0.25)
    /my/loss 0.25
    >>> lamina.monitoring.unregister_scalar_listener(listener)
    """
    _of_scalars.append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Calls a listener to events no more.

    callback  what was registered; AssertionError where it was not.

    >>> lamina.monitoring.register_event_listener(print)
    >>> lamina.monitoring.unregister_event_listener(print)
    """
    _remove(_of_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Calls a listener to durations no more.

    callback  what was registered; AssertionError where it was not.

    >>> lamina.monitoring.register_event_duration_secs_listener(print)
    >>> lamina.monitoring.unregister_event_duration_listener(print)
    """
    _remove(_of_durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Calls a listener to time spans no more.

    callback  what was registered; AssertionError where it was not.

    >>> lamina.monitoring.register_event_time_span_listener(print)
    >>> lamina.monitoring.unregister_event_time_span_listener(print)
    """
    _remove(_of_time_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Calls a listener to scalars no more.

    callback  what was registered; AssertionError where it was not.

    >>> lamina.monitoring.register_scalar_listener(print)
    >>> lamina.monitoring.unregister_scalar_listener(print)
    """
    _remove(_of_scalars, callback)


def _remove(listeners: list[Any], callback: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(f"{callback!r} is no registered listener")
    listeners.remove(callback)


def clear_event_listeners() -> None:
    """Forgets all listeners of all kinds.

    >>> lamina.monitoring.register_event_listener(print)
    >>> lamina.monitoring.clear_event_listeners()
    >>> lamina.monitoring.record_event("/my/event")
    """
    for listeners in (_of_events, _of_durations, _of_time_spans, _of_scalars):
        listeners.clear()
