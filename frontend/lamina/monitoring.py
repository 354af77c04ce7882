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
    """Tells listeners that something happened."""
    for listener in tuple(_of_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells listeners how many seconds something took."""
    for listener in tuple(_of_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tells listeners when something began and ended, in seconds of `time.time()`."""
    for listener in tuple(_of_time_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells listeners a number."""
    for listener in tuple(_of_scalars):
        listener(event, value, **kwargs)


@contextmanager
def measured(event: str, **kwargs: str | int) -> Iterator[None]:
    """Records how long a block takes, and when; nothing where it raises."""
    start = time.time()
    yield
    if _of_durations or _of_time_spans:
        end = time.time()
        record_event_duration_secs(event, end - start, **kwargs)
        record_event_time_span(event, start, end, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Calls callback(event, **kwargs) for each `record_event`."""
    _of_events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Calls callback(event, seconds, **kwargs) for each duration."""
    _of_durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Calls callback(event, start, end, **kwargs) for each time span."""
    _of_time_spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Calls callback(event, value, **kwargs) for each scalar."""
    _of_scalars.append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Calls a listener no more. AssertionError where it is none."""
    _remove(_of_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Calls a listener to durations no more. AssertionError where it is none."""
    _remove(_of_durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Calls a listener to time spans no more. AssertionError where it is none."""
    _remove(_of_time_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Calls a listener to scalars no more. AssertionError where it is none."""
    _remove(_of_scalars, callback)


def _remove(listeners: list[Any], callback: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(f"{callback!r} is no registered listener")
    listeners.remove(callback)


def clear_event_listeners() -> None:
    """Forgets all listeners of all kinds."""
    for listeners in (_of_events, _of_durations, _of_time_spans, _of_scalars):
        listeners.clear()
