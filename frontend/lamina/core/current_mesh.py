"""The meshes that a thread's blocks name, of which programs are made: part of jit's keys.

What they mean stands in sharding/mesh.py; here is what is current, since the keys are made below it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lamina.core.option import thread_changed

Key = tuple[Any, Any, Any]


class _State(threading.local):
    set: Any = None  # by set_mesh: its devices run programs
    entered: tuple[Any, ...] = ()  # by `with mesh:`
    abstract: Any = None  # by use_abstract_mesh, within set_mesh or `with mesh:`


_state = _State()


def key() -> Key:
    """What of it decides how a function is traced and where it runs."""
    return (_state.set, _state.entered[-1:], _state.abstract)


def of_programs() -> Any:
    """The mesh whose devices run this thread's programs, as set_mesh said; None where none is set."""
    return _state.set


def entered() -> Any:
    """The mesh of the innermost `with mesh:`; None outside."""
    return _state.entered[-1] if _state.entered else None


def abstract() -> Any:
    """The axes that use_abstract_mesh named last; None where a mesh of devices was named after them."""
    return _state.abstract


def swap(*, set: Any, entered: tuple[Any, ...], abstract: Any) -> dict[str, Any]:
    """Makes these current, and gives what was, to be swapped back."""
    before = saved()
    was, _state.set, _state.entered, _state.abstract = key(), set, entered, abstract
    now = key()
    if now != was:
        thread_changed(now != _NONE, was != _NONE)
    return before


@contextmanager
def running_on(mesh: Any) -> Iterator[None]:
    """For a block, this mesh's devices run programs, as if set_mesh had said so."""
    before = swap(**saved() | {"set": mesh})
    try:
        yield
    finally:
        swap(**before)


def saved() -> dict[str, Any]:
    """All of it."""
    return {"set": _state.set, "entered": _state.entered, "abstract": _state.abstract}


_NONE: Key = (None, (), None)
