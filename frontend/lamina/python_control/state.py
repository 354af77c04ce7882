"""The variables of a rewritten function: read, written, and compared between branches."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NoReturn

from lamina.core import tree
from lamina.core.source_info import current
from lamina.core.trace import Tracer, get_aval, is_array_like
from lamina.python_control.jumps import RESULT


class _Unbound:
    def __repr__(self) -> str:
        return "not assigned"


UNBOUND: Final = _Unbound()
"""Stands for a variable that has no value; set, it deletes the variable."""


class Undefined:
    """The value of a variable that is there in one branch only: reading it raises
    UnboundLocalError with the reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "reason", reason)

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise UnboundLocalError(self.reason)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._raise()


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul "
    "lt le gt ge eq ne neg pos abs invert and rand or ror xor rxor bool int float index len iter "
    "getitem setitem call contains enter array hash lshift rshift"
).split():
    setattr(Undefined, f"__{_name}__", Undefined._raise)


@dataclasses.dataclass(frozen=True)
class State:
    """The variables that a block assigns: how to read them all, and how to write them.

    mutated  the attributes and items that it assigns, as written.
    changed  gives the calls that change containers, as written, with what they are called on.
    """

    names: tuple[str, ...]
    get: Callable[[], tuple[Any, ...]]
    set: Callable[[Any], None]
    mutated: tuple[str, ...]
    changed: Callable[[], tuple[tuple[str, Any], ...]] = tuple

    def refuse_mutation(self, what: str) -> None:
        """Raises TypeError where the block changes objects: it is traced whether taken or not."""
        if self.mutated:
            raise TypeError(
                f"{self.mutated[0]} is assigned in {what} at {where()}, and whether that happens "
                "is known only when the program runs. Assign a variable, or use x.at[...].set(...)."
            )
        for text, container in self.changed():
            if isinstance(container, (list, dict, set, deque)):
                raise TypeError(
                    f"`{text}` in {what} at {where()} changes a {type(container).__name__}, and "
                    "whether or how often that happens is known only when the program runs. Collect "
                    "values in an array of known size: x = x.at[i].set(value)."
                )


def peek(read: Callable[[], Any]) -> Any:
    """A variable's value, or UNBOUND."""
    try:
        return read()
    except NameError:
        return UNBOUND


def is_bound(value: Any) -> bool:
    """Whether a variable has a value that may be read."""
    return value is not UNBOUND and type(value) is not Undefined


def is_arrays(value: Any) -> bool:
    """Whether a value is a pytree of arrays and numbers."""
    return is_bound(value) and all(is_array_like(x) for x in tree.leaves(value))


def decided(value: Any) -> bool:
    """Whether Python can know now if a value is true."""
    return not isinstance(value, Tracer) or value.concrete() is not None


def where() -> str:
    """The user's line: file:line (function)."""
    return current().summary()


def describe(value: Any) -> str:
    """A value's type for messages: f32[3], (f32[], i32[]), a str."""
    if not is_bound(value):
        return "not assigned"
    if not is_arrays(value):
        return f"a {type(value).__name__}" if value is not None else "None"
    leaves, treedef = tree.flatten(value)
    shown = [get_aval(x).str_short() for x in leaves]
    return shown[0] if treedef == tree.structure(0) else str(tree.unflatten(treedef, shown))


def called(name: str) -> str:
    """How messages call a variable."""
    return "the function's result" if name == RESULT else f"`{name}`"
