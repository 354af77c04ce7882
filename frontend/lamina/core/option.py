"""What a setting is: `Option`, those there are by name, and who is told when one changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_options: dict[str, Option] = {}
_listeners: list[Callable[[str], None]] = []
_other_names = {"compilation_cache_dir": "cache_dir", "platform_name": "platforms"}


class Option(Generic[T]):
    """One setting. Calling it gives a context manager that sets it for a block.

    Of a value that is given `check` raises ValueError where the setting does not take it, and
    `convert` makes what is kept; `then` is called with each new value of the process.
    `affects_trace` marks settings that are part of jit's cache key, `affects_calls` those that only
    the fast path of calls must know, `of_programs` those that one program can be given in its
    compiler_options.
    """

    def __init__(
        self,
        name: str,
        default: T,
        doc: str,
        *,
        parse: Callable[[str], T],
        check: Callable[[Any], None] | None = None,
        convert: Callable[[Any], Any] | None = None,
        then: Callable[[Any], None] | None = None,
        affects_trace: bool = False,
        affects_calls: bool = False,
        of_programs: bool = False,
        values: tuple[str, ...] = (),
    ) -> None:
        self.convert, self.then = convert, then
        self.name, self.doc, self.parse, self.affects_trace = name, doc, parse, affects_trace
        self.default, self.check, self.values = default, check, values
        self.affects_calls, self.of_programs = affects_trace or affects_calls, of_programs
        class Values(threading.local):
            """A thread's value hides the process's, which is the class's."""

        Values.value = default  # type: ignore[attr-defined]
        if self.variable in os.environ:
            Values.value = self._in_environment(self.variable)  # type: ignore[attr-defined]
        self._values: Any = Values()
        _options[name] = self

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LAMINA_" + self.name.upper()

    def _in_environment(self, variable: str) -> T:
        text = os.environ[variable]
        try:
            return self.parse(text)
        except ValueError as e:
            raise ValueError(f"environment variable {variable}={text!r}: {e}") from None

    def read_also(self, variable: str) -> None:
        """Sets the process-wide value as another environment variable says, where its own does not."""
        if variable in os.environ and self.variable not in os.environ:
            self.set(self._in_environment(variable))

    @property
    def value(self) -> T:
        found: T = self._values.value
        return found

    def set(self, value: T) -> None:
        """Sets the process-wide value; ValueError where it is none that the setting takes."""
        value = self.checked(value)
        type(self._values).value = value
        if self.then is not None:
            self.then(value)
        if self.affects_calls:
            _changed("process")

    def checked(self, value: Any) -> T:
        """The value as it is kept; ValueError where the setting does not take it."""
        try:
            if self.check is not None:
                self.check(value)
            kept: T = value if self.convert is None else self.convert(value)
            return kept
        except ValueError as e:
            raise ValueError(f"config option {self.name}: {e}") from None

    @contextmanager
    def __call__(self, new_val: T = True) -> Iterator[None]:  # type: ignore[assignment]
        new_val = self.checked(new_val)
        had = "value" in vars(self._values)
        old = self._values.value
        self._values.value = new_val
        if self.affects_calls:
            _nesting.depth += 1
            _changed("thread")
        try:
            yield
        finally:
            if had:
                self._values.value = old
            else:
                del self._values.value
            if self.affects_calls:
                _nesting.depth -= 1
                _changed("thread" if _nesting.depth else "thread ends")


class _Nesting(threading.local):
    depth = 0  # how many `with option(...)` blocks this thread is in


_nesting = _Nesting()


def _changed(scope: str) -> None:
    for listener in _listeners:
        listener(scope)


def on_change(listener: Callable[[str], None]) -> None:
    """Calls `listener(scope)` whenever a setting that affects calls changes: for the "process",
    for this "thread", or when this thread goes back to the process's settings ("thread ends")."""
    _listeners.append(listener)
    listener("process")


def trace_key() -> tuple[Any, ...]:
    """The values of all settings that affect what is traced."""
    return tuple(o.value for o in _options.values() if o.affects_trace)


def call_key() -> tuple[Any, ...]:
    """The values of all settings that a call's fast path has to know."""
    return tuple(o.value for o in _options.values() if o.affects_calls)


def _option(name: str) -> Option:
    short = name.removeprefix("jax_").removeprefix("lamina_")
    short = _other_names.get(short, short)
    if short in _options:
        return _options[short]
    import difflib

    close = difflib.get_close_matches(short, _options, 3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise AttributeError(
        f"Unrecognized config option: {name}.{hint} Known options: {', '.join(sorted(_options))}"
    )


def update(name: str, value: Any) -> None:
    """Sets a setting by name; `jax_` and `lamina_` prefixes are accepted.

    Raises AttributeError for an unknown name, with suggestions; ValueError for a value that the
    setting does not take.
    """
    _option(name).set(value)


def read(name: str) -> Any:
    """The value of a setting, by name as in update."""
    return _option(name).value


def values() -> dict[str, Any]:
    """The values of all settings by name."""
    return {name: option.value for name, option in _options.items()}


def options() -> dict[str, Option]:
    """All settings by name."""
    return dict(_options)


# ---- kinds of settings --------------------------------------------------------------------------
def boolean(text: str) -> bool:
    """What a word of an environment variable says."""
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


def words(text: str) -> frozenset[str]:
    """The words of a list, with commas or spaces between."""
    return frozenset(w for w in text.replace(",", " ").split() if w)


def is_boolean(value: Any) -> None:
    """Raises ValueError where a value is none."""
    if not isinstance(value, (bool, int)):
        raise ValueError(f"expected a boolean, got {value!r}")


def flag(name: str, default: bool, doc: str, *, affects_trace: bool = False) -> Option[bool]:
    """A setting that is on or off."""
    return Option(
        name, default, doc, parse=boolean, check=is_boolean, affects_trace=affects_trace
    )


def choice(
    name: str,
    values: tuple[str, ...],
    doc: str,
    *,
    affects_trace: bool = False,
    of_programs: bool = False,
) -> Option[str]:
    """A setting that is one of these words, by default the first."""

    def check(value: Any) -> None:
        if value not in values:
            raise ValueError(f"expected one of {', '.join(values)}; got {value!r}")

    def parse(text: str) -> str:
        check(text)
        return text

    return Option(
        name,
        values[0],
        doc,
        parse=parse,
        check=check,
        affects_trace=affects_trace,
        of_programs=of_programs,
        values=values,
    )
