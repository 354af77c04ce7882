"""What a program spends its time on, as a trace for a browser (ui.perfetto.dev, chrome://tracing).

    with lamina.profiler.trace("/tmp/profile"):
        step(params).block_until_ready()

In the trace are the calls of compiled programs with the shapes of their arguments, each until its
results are ready; tracing, lowering and compiling of functions; and annotated blocks. It is a file
`plugins/profile/<time>/<host>.trace.json.gz` in the folder, as JAX's is.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lamina import config, monitoring
from lamina.core.library import library

__all__ = [
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "start_trace",
    "stop_trace",
    "timed_call",
    "trace",
]

_MICROSECONDS = 1e6


class _Session:
    """The events of one trace."""

    def __init__(self, folder: str | os.PathLike[str], for_perfetto: bool) -> None:
        self.folder, self.for_perfetto = Path(folder), for_perfetto
        self.events: list[dict[str, Any]] = []

    def add(self, name: str, start: float, end: float, arguments: dict[str, Any]) -> None:
        event = {
            "ph": "X",
            "name": name,
            "pid": os.getpid(),
            "tid": threading.get_native_id(),
            "ts": start * _MICROSECONDS,
            "dur": (end - start) * _MICROSECONDS,
        }
        self.events.append(event | ({"args": arguments} if arguments else {}))

    def add_stage(self, event: str, start: float, end: float, **kwargs: Any) -> None:
        stage = event.rsplit("/", 1)[-1].removesuffix("_duration")
        self.add(f"{stage} {kwargs.get('fun_name', '')}".strip(), start, end, kwargs)

    def write(self) -> None:
        names = [(os.getpid(), None, "process_name", f"lamina {platform.node()}")] + [
            (os.getpid(), thread.native_id, "thread_name", thread.name)
            for thread in threading.enumerate()
        ]
        meta = [
            {"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": {"name": name}}
            for pid, tid, kind, name in names
        ]
        path = self.folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        path.mkdir(parents=True, exist_ok=True)
        file = path / f"{platform.node()}.trace.json.gz"
        with gzip.open(file, "wt") as stream:
            json.dump({"displayTimeUnit": "ns", "traceEvents": meta + self.events}, stream)
        if self.for_perfetto:
            (path / "perfetto_trace.json.gz").write_bytes(file.read_bytes())


_session: _Session | None = None


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Begins a trace of compilations and calls, which stop_trace writes into a folder, for
    TensorBoard, chrome://tracing or ui.perfetto.dev.

    log_dir                the folder.
    create_perfetto_link   must be False: nothing is served; open the file at ui.perfetto.dev.
    create_perfetto_trace  writes perfetto_trace.json.gz beside it, the same events.
    profiler_options       without effect.

    Raises RuntimeError where a trace is being made already; NotImplementedError for a link.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lamina.profiler.start_trace(folder)
    ...     y = lamina.jit(lambda x: x + 1)(1.0)
    ...     lamina.profiler.stop_trace()
    ...     print([file.name.split(".", 1)[1] for file in pathlib.Path(folder).rglob("*.gz")])
    ['trace.json.gz']
    """
    global _session
    if create_perfetto_link:
        raise NotImplementedError(
            f"[start_trace] create_perfetto_link: {library.name} serves no traces; open the file "
            "that stop_trace writes at https://ui.perfetto.dev"
        )
    if _session is not None:
        raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
    _session = _Session(log_dir, create_perfetto_trace)
    monitoring.register_event_time_span_listener(_session.add_stage)
    config.profiling.set(True)


def stop_trace() -> None:
    """Ends the trace that start_trace began and writes it.

    Raises RuntimeError where none has begun.

    >>> lamina.profiler.stop_trace()
    Traceback (most recent call last):
        ...
    RuntimeError: No profile started
    """
    global _session
    if _session is None:
        raise RuntimeError("No profile started")
    session, _session = _session, None
    config.profiling.set(False)
    monitoring.unregister_event_time_span_listener(session.add_stage)
    session.write()


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """A context manager that traces a block: start_trace before, stop_trace after it.

    log_dir                the folder that the trace is written into.
    create_perfetto_link   must be False.
    create_perfetto_trace  writes perfetto_trace.json.gz too, the same events.
    profiler_options       without effect.

    Raises RuntimeError where a trace is being made already; NotImplementedError for a link.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with lamina.profiler.trace(folder, create_perfetto_trace=True):
    ...         y = lamina.jit(lambda x: x + 1)(1.0)
    ...     print(len(list(pathlib.Path(folder).rglob("*.gz"))))
    2
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def timed_call(name: str, entry: Callable[[Any], Any], leaves: Sequence[Any]) -> Any:
    """The results of a compiled program's call, which is in the trace until they are ready.

    name    what the trace calls it.
    entry   a function of a list of arrays.
    leaves  the list.

    >>> lamina.profiler.timed_call("add", sum, [1, 2])
    3
    """
    from lamina.core.trace import get_aval
    from lamina.devices import block_until_ready

    types = {f"argument {i}": str(get_aval(x)) for i, x in enumerate(leaves)}
    start = time.time()
    result = block_until_ready(entry(leaves))
    if _session is not None:
        _session.add(name, start, time.time(), types)
    return result


class TraceAnnotation:
    """A block with a name in the trace: `with TraceAnnotation("load", batch=3): ...`."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name, self._arguments = name, kwargs
        self._start = 0.0

    def __enter__(self) -> TraceAnnotation:
        self._start = time.time()
        return self

    def __exit__(self, *exception: object) -> None:
        if _session is not None:
            _session.add(self.name, self._start, time.time(), self._arguments)

    @staticmethod
    def is_enabled() -> bool:
        """Whether a trace is being made."""
        return _session is not None


class StepTraceAnnotation(TraceAnnotation):
    """A step of training: `with StepTraceAnnotation("train", step_num=7): ...`."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)


def annotate_function(
    func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any
) -> Callable[..., Any]:
    """func, whose calls are in traces under a name.

    func              any function.
    name              the name; None: the function's own.
    decorator_kwargs  further values for the trace, as of TraceAnnotation.

    >>> @lamina.profiler.annotate_function
    ... def load(batch):
    ...     return batch + 1
    >>> load(1)
    2
    """
    shown = name or str(getattr(func, "__qualname__", type(func).__name__))

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated
