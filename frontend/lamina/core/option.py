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
    compiler_options. `other` is a value that its help shows, where that is not to be the default.
    What is no setting of ours, `is_setting=False`, is not among `options` and has no variable.
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
        other: T | None = None,
        is_setting: bool = True,
    ) -> None:
        self.convert, self.then = convert, then
        self.name, self.doc, self.parse, self.affects_trace = name, doc, parse, affects_trace
        self.default, self.check, self.values = default, check, values
        self.affects_calls, self.of_programs = affects_trace or affects_calls, of_programs
        self.is_setting = is_setting
        self.__doc__ = self._help(default if other is None else other)

        class Values(threading.local):
            """A thread's value hides the process's, which is the class's."""

        Values.value = default  # type: ignore[attr-defined]
        if is_setting and self.variable in os.environ:
            Values.value = self._in_environment(self.variable)  # type: ignore[attr-defined]
        self._values: Any = Values()
        _options[name] = self

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LAMINA_" + self.name.upper()

    def _help(self, shown: T) -> str:
        kinds = ", ".join(map(repr, self.values)) or type(self.default).__name__
        if self.default is None:
            kinds = "None or a value of its kind"
        return f"""{self.doc}

new_val  {kinds}; the default is {self.default!r}.

A call is a context manager that sets it for a block in this thread. For the process it is set by
`config.update("{self.name}", ...)`, before a start by the environment variable {self.variable}.
Raises ValueError for a value that the setting does not take.

>>> with lamina.config.{self.name}({shown!r}):
...     print(lamina.config.{self.name}.value)
{shown}
"""

    def _in_environment(self, variable: str) -> T:
        text = os.environ[variable]
        try:
            value = self.parse(text)
            if self.check is not None:
                self.check(value)
            return value
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

    def get_global(self) -> T:
        """The process-wide value, whatever holds in this thread."""
        found: T = type(self._values).value
        return found

    def set_global(self, value: T) -> None:
        """JAX's name of `set`."""
        self.set(value)

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
            thread_changed(True, False)
        try:
            yield
        finally:
            if had:
                self._values.value = old
            else:
                del self._values.value
            if self.affects_calls:
                thread_changed(False, True)


class _Nesting(threading.local):
    depth = 0  # how many things this thread has otherwise than the process: a block of an option each, a mesh


_nesting = _Nesting()


def thread_changed(differs: bool, differed: bool) -> None:
    """Tells the listeners that something is otherwise in this thread, which then differs from the process in it
    or does not, as it did before or did not."""
    _nesting.depth += differs - differed
    _changed("thread" if _nesting.depth else "thread ends")


def _changed(scope: str) -> None:
    for listener in _listeners:
        listener(scope)


def on_change(listener: Callable[[str], None]) -> None:
    """Calls a listener whenever a setting that affects calls changes.

    listener  called with "process" or "thread", where the setting has a new value for it, and with
              "thread ends" when this thread goes back to the process's settings.

    >>> seen = []
    >>> lamina.config.on_change(seen.append)
    >>> with lamina.enable_x64(True):
    ...     print(seen)
    ['process', 'thread']
    """
    _listeners.append(listener)
    listener("process")


def trace_key() -> tuple[Any, ...]:
    """The values of all settings that affect what is traced: part of jit's keys.

    >>> before = lamina.config.trace_key()
    >>> with lamina.enable_x64(True):
    ...     print(lamina.config.trace_key() == before)
    False
    """
    return tuple(o.value for o in _options.values() if o.affects_trace)


def call_key() -> tuple[Any, ...]:
    """The values of all settings that a call's fast path has to know.

    >>> before = lamina.config.call_key()
    >>> with lamina.enable_x64(True):
    ...     print(lamina.config.call_key() == before)
    False
    """
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
    """Sets a setting for the process.

    name   its name; `jax_` and `lamina_` before it are accepted.
    value  what it is to be.

    Raises AttributeError for an unknown name, with suggestions; ValueError for a value that the
    setting does not take.

    >>> lamina.config.update("jax_log_compiles", False)
    >>> lamina.config.update("enable_x46", True)
    Traceback (most recent call last):
        ...
    AttributeError: ...
    """
    _option(name).set(value)


def read(name: str) -> Any:
    """The value that a setting has here.

    name  its name, as in update.

    Raises AttributeError for an unknown name.

    >>> lamina.config.read("jax_enable_x64")
    False
    """
    return _option(name).value


def values() -> dict[str, Any]:
    """The values of all settings by name: a dict.

    >>> lamina.config.values()["enable_x64"]
    False
    """
    return {name: option.value for name, option in options().items()}


def options() -> dict[str, Option]:
    """All settings by name: a dict of Options, which tell their meaning, default and variable.

    >>> lamina.config.options()["enable_x64"].variable
    'LAMINA_ENABLE_X64'
    """
    return {name: option for name, option in _options.items() if option.is_setting}


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


def flag(
    name: str,
    default: bool,
    doc: str,
    *,
    affects_trace: bool = False,
    affects_calls: bool = False,
) -> Option[bool]:
    """A setting that is on or off."""
    return Option(
        name,
        default,
        doc,
        parse=boolean,
        check=is_boolean,
        affects_trace=affects_trace,
        affects_calls=affects_calls,
        other=not default,
    )


def choice(
    name: str,
    values: tuple[Any, ...],
    doc: str,
    *,
    affects_trace: bool = False,
    affects_calls: bool = False,
    of_programs: bool = False,
) -> Option[Any]:
    """A setting that is one of these words (None among them where nothing may be said), by default
    the first."""

    def check(value: Any) -> None:
        if value not in values:
            raise ValueError(f"expected one of {', '.join(map(str, values))}; got {value!r}")

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
        affects_calls=affects_calls,
        of_programs=of_programs,
        values=tuple(value for value in values if value is not None),
        other=next(value for value in values[1:] if value is not None),
    )
