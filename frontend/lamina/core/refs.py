"""Mutable arrays: a box with a value, and who looks into it while functions are traced.

A ref holds an array or a tracer. Reading and writing are functional operations on that value, so a
ref that a function makes and uses alone costs nothing. What a traced function does to a ref from
outside is found by running it under `recording`; `lifted` makes the ref's value an argument and a
result of it. jit, scan, while_loop and cond do so (control_flow/mutation.py).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lamina.core.avals import AbstractValue, ShapedArray
from lamina.core.trace import Trace, Tracer, current_trace, get_aval


class AbstractRef(AbstractValue):
    """The type of a ref: that of the array in it."""

    def __init__(self, inner_aval: ShapedArray) -> None:
        self.inner_aval = inner_aval

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_long()}}}"


class Ref:
    """An array that can be changed: `ref[...]`, `ref[i]`, `ref[i] = x`, `ref[i] += x`."""

    __slots__ = ("__weakref__", "_home", "_value")

    def __init__(self, value: Any) -> None:
        alive.add(self)
        self._value, self._home = value, current_trace()
        for watcher in _watchers.stack:
            if isinstance(watcher, Recording):
                watcher.born.append(self)

    @property
    def aval(self) -> AbstractRef:
        return AbstractRef(get_aval(self.read()))

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ref of rank 0")
        return int(self.shape[0])

    @property
    def sharding(self) -> Any:
        """Where the value lies."""
        return self.read().sharding

    def read(self) -> Any:
        """The value."""
        if self._value is None:
            raise RuntimeError("a ref that was freed is read")
        _tell(self, False)
        return self._value

    def write(self, value: Any) -> None:
        """Another value of the same type."""
        have, given = get_aval(self.read()), get_aval(value)
        if given.dtype != have.dtype:
            raise ValueError(
                f"Invalid dtype for `swap`. Ref dtype: {have.dtype}. Value dtype: {given.dtype}."
            )
        if given.shape != have.shape:
            raise ValueError(
                f"Invalid shape for `swap`. Ref shape: {have.shape}. Value shape: {given.shape}."
            )
        if not _tell(self, True) and isinstance(value, Tracer):
            _check_home(self, value)
        self._value = value

    def free(self) -> None:
        """Gives the array up: the ref can't be used any more."""
        if self._value is None:
            raise RuntimeError("a ref is freed that was freed before")
        self._value = None

    def __getitem__(self, index: Any) -> Any:
        value = self.read()
        return value if index is Ellipsis else value[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        value = self._like(value)
        old = self.read()
        if index is Ellipsis:
            self.write(value)
            return
        there = get_aval(old[index])
        if get_aval(value).shape != there.shape:
            raise ValueError(
                f"Invalid shape for `swap`. Ref shape: {get_aval(old).shape}. Expected shape: "
                f"{there.shape}. Value shape: {get_aval(value).shape}."
            )
        self.write(old.at[index].set(value))

    def addupdate(self, index: Any, value: Any) -> None:
        """ref[index] += value, adding up where an index is there twice."""
        value, old = self._like(value), self.read()
        self.write(old + value if index is Ellipsis else old.at[index].add(value))

    def _like(self, value: Any) -> Any:
        """What is written, which takes the ref's dtype where it is a Python number."""
        have, given = get_aval(self.read()), get_aval(value)
        if given.dtype == have.dtype:
            return value if hasattr(value, "at") else self._value.dtype.type(value)
        raise ValueError(
            f"Invalid dtype for `swap`. Ref dtype: {have.dtype}. Value dtype: {given.dtype}."
        )

    def __repr__(self) -> str:
        if self._value is None:
            return "Ref(freed)"
        return f"Ref{str(self._value) if isinstance(self._value, Tracer) else repr(self._value)[5:]}"


alive: weakref.WeakSet[Ref] = weakref.WeakSet()
"""The refs there are: where there is none, nobody looks for uses of one."""


class Recording:
    """The refs from outside that functions have used, and those that they have written."""

    def __init__(self) -> None:
        self.born: list[Ref] = []
        self.used: list[Ref] = []
        self.written: list[Ref] = []
        self.before: list[tuple[Any, Any]] = []

    def note(self, ref: Ref, writes: bool) -> bool:
        if any(x is ref for x in self.born):
            return False
        if not any(x is ref for x in self.used):
            self.used.append(ref)
            self.before.append((ref._value, ref._home))
        if writes and not any(x is ref for x in self.written):
            self.written.append(ref)
        return True


class _Shield:
    """Refs that a lifted function uses: nobody outside of it need know."""

    def __init__(self, refs: Sequence[Ref]) -> None:
        self.refs = refs


class _Watchers(threading.local):
    def __init__(self) -> None:
        self.stack: list[Recording | _Shield] = []


_watchers = _Watchers()


def _tell(ref: Ref, writes: bool) -> bool:
    """Whether someone records what happens to a ref."""
    told = False
    for watcher in reversed(_watchers.stack):
        if isinstance(watcher, _Shield):
            if any(x is ref for x in watcher.refs):
                return told
        elif watcher.note(ref, writes):
            told = True
    return told


@contextmanager
def recording() -> Iterator[Recording]:
    """Finds out what functions do to refs from outside, which are left as they were."""
    found = Recording()
    _watchers.stack.append(found)
    try:
        yield found
    finally:
        _watchers.stack.remove(found)
        for ref, (value, home) in zip(found.used, found.before, strict=True):
            ref._value, ref._home = value, home


def lifted(fun: Callable[..., Any], refs: Sequence[Ref]) -> Callable[..., Any]:
    """(values, *args, **kwargs) -> (fun(*args, **kwargs), values afterwards), of the refs that it
    uses."""

    def call(values: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        before = [(ref._value, ref._home) for ref in refs]
        shield = _Shield(refs)
        _watchers.stack.append(shield)
        try:
            for ref, value in zip(refs, values, strict=True):
                ref._value, ref._home = value, current_trace()
            result = fun(*args, **kwargs)
            return result, [ref._value for ref in refs]
        finally:
            _watchers.stack.remove(shield)
            for ref, (value, home) in zip(refs, before, strict=True):
                ref._value, ref._home = value, home

    return call


def _check_home(ref: Ref, value: Tracer) -> None:
    """Raises where a value belongs to a transformation within which the ref was not made."""
    trace: Trace | None = value._trace
    while trace is not None and trace is not ref._home:
        trace = trace.parent
    if trace is ref._home and value._trace is not ref._home:
        raise ValueError(
            f"{type(value).__name__} {get_aval(value)} is written to a ref that was made outside of "
            "the transformation that traces it. Make the ref inside the transformed function, or give "
            "the value back as a result."
        )
