"""compiler_options: settings for one program, which go before those of the process and of blocks."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from lamina import config
from lamina.core.library import library

CompilerOptions = dict[str, str | bool]
Settings = tuple[tuple[str, Any], ...]
"""Names and values of settings, checked."""


def settings_of(options: Mapping[str, Any] | None) -> Settings:
    """What of compiler_options are settings of ours; XLA's do nothing but warn.

    Raises ValueError for a name that is neither, and for a value that a setting does not take.
    """
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(
            "compiler_options is a dict of names and values, such as "
            f"{{'matrix_products': 'library'}}; got {options!r}"
        )
    known = {name: o for name, o in config.options().items() if o.of_programs}
    found, of_xla = {}, []
    for name, value in (options or {}).items():
        short = str(name).removeprefix("lamina_")
        if short in known:
            known[short].checked(value)
            found[short] = value
        elif str(name).startswith("xla_"):
            of_xla.append(name)
        else:
            raise ValueError(f"No such compile option: {name!r}. {_hint(str(name), list(known))}")
    if of_xla:
        warnings.warn(
            f"compiler_options are XLA's and do nothing in lamina: {', '.join(of_xla)}; its own are "
            f"{', '.join(known)}, and settings are in {library}.config",
            stacklevel=3,
        )
    return tuple(sorted(found.items()))


def _hint(name: str, known: list[str]) -> str:
    import difflib

    if name in config.options():
        return f"It is a setting: use {library}.config.update({name!r}, ...) or a with block."
    close = difflib.get_close_matches(name, known, 1)
    return (f"Did you mean {close[0]}? " if close else "") + f"There is {', '.join(known)}."


def current() -> Settings:
    """The values that hold here."""
    return tuple((name, o.value) for name, o in config.options().items() if o.of_programs)


@contextlib.contextmanager
def applied(settings: Settings) -> Iterator[None]:
    """A block in which the settings hold."""
    options = config.options()
    with contextlib.ExitStack() as stack:
        for name, value in settings:
            stack.enter_context(options[name](value))
        yield


def refuse_nested(settings: Settings, name: str) -> None:
    """Raises ValueError where a jit with settings of its own is called within another transformation:
    there is one program then, and it is not this one."""
    if settings:
        given = dict(settings)
        raise ValueError(
            f"`compiler_options` can only be passed to top-level `{library}.jit`. Got "
            f"compiler_options={given} specified on a nested jit with name: {name}. Give them to the "
            f"outermost jit, or call it in `with {library}.config.{settings[0][0]}({settings[0][1]!r}):`."
        )
