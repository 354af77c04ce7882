"""Pass options as text, `{max-ops=64 verbose}`, to and from their values, by their types."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from typing import Any

from lamina.passes.framework.base import Pass

_BOOLEANS = {"": True, "true": True, "1": True, "false": False, "0": False}
_KINDS = {int: "an integer", float: "a number", bool: "true or false", str: "text"}


def make(cls: type[Pass], given: Sequence[tuple[str, str]]) -> Pass:
    """The pass with options set from (name, text) pairs; raises ValueError saying what it takes."""
    if not given:
        return cls()
    hints = typing.get_type_hints(cls)
    fields = {name.replace("_", "-"): name for name in cls.defaults}
    values = {}
    for name, text in given:
        field = fields.get(name)
        if field is None:
            takes = describe(cls) or "no options"
            raise ValueError(f"{cls.name} has no option {name!r}; it takes {takes}")
        try:
            values[field] = _value(hints[field], text)
        except ValueError as error:
            raise ValueError(f"{cls.name}{{{name}={text}}}: {error}") from None
    return cls(**values)


def describe(cls: type[Pass]) -> str:
    """`max-ops=64 (an integer), ...`: the options with their defaults."""
    hints = typing.get_type_hints(cls)
    return ", ".join(
        f"{name.replace('_', '-')}={_text(default)} ({_kind(hints[name])})"
        for name, default in cls.defaults.items()
    )


def to_text(of: Pass) -> str:
    """`name{option=value ...}` with the options that differ from their defaults."""
    given = [
        f"{name.replace('_', '-')}={_text(value)}"
        for name, value in of.options.items()
        if value != of.defaults[name]
    ]
    return of.name + (f"{{{' '.join(given)}}}" if given else "")


def _value(of: Any, text: str) -> Any:
    origin, arguments = typing.get_origin(of), typing.get_args(of)
    if origin in (typing.Union, types.UnionType):  # X | None
        (inner,) = [a for a in arguments if a is not type(None)]
        return None if text == "none" else _value(inner, text)
    if origin is tuple:
        return tuple(_value(arguments[0], part) for part in text.split(",") if part)
    if origin is typing.Literal:
        if text not in arguments:
            raise ValueError(f"expected one of {', '.join(arguments)}, got {text!r}")
        return text
    if of is bool:
        if text not in _BOOLEANS:
            raise ValueError(f"expected true or false, got {text!r}")
        return _BOOLEANS[text]
    if of in (int, float):
        try:
            return of(text)
        except ValueError:
            raise ValueError(f"expected {_KINDS[of]}, got {text!r}") from None
    if of is str:
        return text
    raise ValueError(f"an option of type {of} can't be written as text")


def _kind(of: Any) -> str:
    origin, arguments = typing.get_origin(of), typing.get_args(of)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("none" if a is type(None) else _kind(a) for a in arguments)
    if origin is tuple:
        return f"a list of {_kind(arguments[0])}"
    if origin is typing.Literal:
        return "one of " + ", ".join(arguments)
    return _KINDS.get(of, str(of))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_text, value)) if isinstance(value, tuple) else str(value)
