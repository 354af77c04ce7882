"""Settings: each has a name, a `LAMINA_<NAME>` environment variable, a default and a meaning.

`config.update("enable_x64", True)` sets one for the process; `with enable_x64(True): ...` sets it
for a block in the current thread. JAX's spelling (`jax_enable_x64`) is accepted by `update`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_options: dict[str, Option] = {}
_epoch = 0
_listeners: list[Callable[[str], None]] = []


class Option(Generic[T]):
    """One setting. Calling it gives a context manager that sets it for a block.

    `affects_trace` marks settings that are part of jit's cache key.
    """

    def __init__(
        self,
        name: str,
        default: T,
        doc: str,
        *,
        parse: Callable[[str], T],
        affects_trace: bool = False,
    ) -> None:
        self.name, self.doc, self.parse, self.affects_trace = name, doc, parse, affects_trace
        self.default = default
        text = os.environ.get(self.variable)
        try:
            self._global: T = parse(text) if text is not None else default
        except ValueError as e:
            raise ValueError(f"environment variable {self.variable}={text!r}: {e}") from None
        self._local = threading.local()
        _options[name] = self

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LAMINA_" + self.name.upper()

    @property
    def value(self) -> T:
        return getattr(self._local, "value", self._global)

    def set(self, value: T) -> None:
        """Sets the process-wide value."""
        self._global = value
        if self.affects_trace:
            _changed("process")

    @contextmanager
    def __call__(self, value: T = True) -> Iterator[None]:  # type: ignore[assignment]
        had = hasattr(self._local, "value")
        old = getattr(self._local, "value", None)
        self._local.value = value
        if self.affects_trace:
            _nesting.depth += 1
            _changed("thread")
        try:
            yield
        finally:
            if had:
                self._local.value = old
            else:
                del self._local.value
            if self.affects_trace:
                _nesting.depth -= 1
                _changed("thread" if _nesting.depth else "thread ends")


class _Nesting(threading.local):
    depth = 0  # how many `with option(...)` blocks this thread is in


_nesting = _Nesting()


def _changed(scope: str) -> None:
    for listener in _listeners:
        listener(scope)


def on_change(listener: Callable[[str], None]) -> None:
    """Calls `listener(scope)` whenever a setting that affects tracing changes: for the "process",
    for this "thread", or when this thread goes back to the process's settings ("thread ends")."""
    _listeners.append(listener)
    listener("process")


def trace_key() -> tuple[Any, ...]:
    """The values of all settings that affect what is traced."""
    return tuple(o.value for o in _options.values() if o.affects_trace)


def update(name: str, value: Any) -> None:
    """Sets a setting by name; `jax_` and `lamina_` prefixes are accepted.

    Raises AttributeError for an unknown name, listing the known ones.
    """
    short = name.removeprefix("jax_").removeprefix("lamina_")
    if short not in _options:
        raise AttributeError(
            f"Unrecognized config option: {name}; known options: {', '.join(sorted(_options))}"
        )
    _options[short].set(value)


def options() -> dict[str, Option]:
    """All settings by name."""
    return dict(_options)


def __getattr__(name: str) -> Any:
    short = name.removeprefix("jax_")
    if short != name and short in _options:
        return _options[short].value
    raise AttributeError(f"module 'lamina.config' has no attribute {name!r}")


def _boolean(text: str) -> bool:
    value = {
        "1": True,
        "true": True,
        "on": True,
        "yes": True,
        "0": False,
        "false": False,
        "off": False,
        "no": False,
        "": False,
    }.get(text.lower())
    if value is None:
        raise ValueError("expected a boolean: 1, 0, true, false, on, off")
    return value


def _words(text: str) -> frozenset[str]:
    return frozenset(w for w in text.replace(",", " ").split() if w)


enable_x64 = Option(
    "enable_x64",
    False,
    "64-bit integers, floats and complex numbers are kept.",
    parse=_boolean,
    affects_trace=True,
)
threefry_partitionable = Option(
    "threefry_partitionable",
    True,
    "Random bits are computed by JAX's partitionable scheme.",
    parse=_boolean,
    affects_trace=True,
)
numpy_rank_promotion = Option(
    "numpy_rank_promotion",
    "allow",
    "What broadcasting arrays of different rank does: allow, warn, raise.",
    parse=str,
    affects_trace=True,
)
default_matmul_precision = Option(
    "default_matmul_precision",
    "default",
    "Precision of dots that name none: default, high, highest.",
    parse=str,
    affects_trace=True,
)
disable_jit = Option(
    "disable_jit",
    False,
    "jit runs its function eagerly, op by op.",
    parse=_boolean,
    affects_trace=True,
)
check_tracer_leaks = Option(
    "check_tracer_leaks",
    False,
    "Raise when a tracer outlives the trace that made it.",
    parse=_boolean,
)
enable_checks = Option(
    "enable_checks", False, "Type-check every jaxpr that is made.", parse=_boolean
)
log: Option[frozenset[str]] = Option(
    "log", frozenset(), "Topics to log: retrace, compile, cache.", parse=_words
)
