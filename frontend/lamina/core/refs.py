"""Mutable arrays: a box with a value, and who looks into it while functions are traced.

A ref holds an array or a tracer. Reading and writing are functional operations on that value, so a
ref that a function makes and uses alone costs nothing. What a traced function does to a ref from
outside is found by running it under `recording`; `lifted` makes the ref's value an argument and a
result of it. jit, scan, while_loop and cond do so (control_flow/mutation.py).
"""

from __future__ import annotations

import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lamina.core import source_info
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
    sharding = property(lambda self: self.inner_aval.sharding)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_long()}}}"


class _Readable:
    """What reads as an array: a ref, or a part of one."""

    __slots__ = ()

    @abstractmethod
    def read(self) -> Any:
        """The value."""

    @property
    def aval(self) -> AbstractRef:
        return AbstractRef(get_aval(self.read()))

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @property
    def at(self) -> _At:
        """at[i] is a ref of that part: `ref.at[1:3][0] = x`."""
        return _At(self)


class Ref(_Readable):
    """An array that can be changed: `ref[...]`, `ref[i]`, `ref[i] = x`, `ref[i] += x`.

    argument   what the argument is called that it stands for, where it stands for one.
    by_values  derivatives take no notice of what is written to it.
    """

    __slots__ = ("__weakref__", "_ended", "_home", "_origin", "_value", "by_values")

    def __init__(self, value: Any, argument: str | None = None, by_values: bool = False) -> None:
        alive.add(self)
        self._value, self._home, self.by_values = value, current_trace(), by_values
        self._origin = argument or source_info.current()
        self._ended = False
        for watcher in _watchers.stack:
            if isinstance(watcher, Recording):
                watcher.born.append(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ref of rank 0")
        return int(self.shape[0])

    @property
    def sharding(self) -> Any:
        """Where the value lies."""
        return self.read().sharding

    def origin(self) -> str:
        """Where it came from, for messages."""
        if isinstance(self._origin, str):
            return f"was passed in as the argument {self._origin}"
        return f"was created on line {self._origin.summary()}"

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
        if self._ended:
            raise ValueError(
                f"a ref that {self.origin()} is written after the function that it was given to returned, as by a "
                "rule of derivatives within scan, cond or vmap: nobody would see it. Let the rule's function be "
                "outside of them"
            )
        told = _tell(self, True)
        if self.by_values:
            value = _undifferentiated(value, self._home)
        if not told and isinstance(value, Tracer):
            _check_home(self, value)
        self._value = value

    def end(self) -> Any:
        """The value, after which nothing may be written."""
        self._ended = True
        return self.read()

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

    def get(self, idx: Any = ...) -> Any:
        """ref[idx], or all of it."""
        return self[idx]

    def set(self, value: Any, idx: Any = ...) -> None:
        """ref[idx] = value."""
        self[idx] = value

    def swap(self, value: Any, idx: Any = ...) -> Any:
        """ref[idx] as it was, with value in its place."""
        old = self[idx]
        self[idx] = value
        return old

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """ref[idx] += value, adding up where an index is there twice."""
        value, old = self._like(value), self.read()
        self.write(old + value if idx is Ellipsis else old.at[idx].add(value))

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


class RefView(_Readable):
    """A part of a ref, which reads and writes there."""

    __slots__ = ("_index", "_whole")

    def __init__(self, whole: Any, index: Any) -> None:
        self._whole, self._index = whole, index

    @property
    def ref(self) -> Ref:
        """The ref that it is a part of."""
        whole = self._whole
        return whole if isinstance(whole, Ref) else whole.ref

    def read(self) -> Any:
        """What is there."""
        return self._whole[self._index]

    def __getitem__(self, index: Any) -> Any:
        value = self.read()
        return value if index is Ellipsis else value[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._whole[self._index] = value if index is Ellipsis else self.read().at[index].set(value)

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """As that of a ref."""
        if idx is Ellipsis:
            self._whole.addupdate(value, self._index)
        else:
            self[...] = self.read().at[idx].add(value)

    def __repr__(self) -> str:
        return f"{self._whole!r}.at[{self._index!r}]"


class _At:
    __slots__ = ("_whole",)

    def __init__(self, whole: _Readable) -> None:
        self._whole = whole

    def __getitem__(self, index: Any) -> RefView:
        return RefView(self._whole, index)


alive: weakref.WeakSet[Ref] = weakref.WeakSet()
"""The refs there are: where there is none, nobody looks for uses of one."""


class Recording:
    """The refs from outside that functions have used, and those that they have written."""

    def __init__(self) -> None:
        self.kept = False  # whether rules of the user's were given refs
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


def keep() -> None:
    """Tells who records that a rule of the user's keeps refs, which it may write when derivatives are taken."""
    for watcher in _watchers.stack:
        if isinstance(watcher, Recording):
            watcher.kept = True


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


def _undifferentiated(value: Any, home: Trace | None) -> Any:
    """A value without the tangents that it has above a ref's home."""
    while isinstance(value, Tracer) and value._trace is not home:
        primal = getattr(value, "primal", None)
        if primal is None:
            return value
        value = primal
    return value


def _check_home(ref: Ref, value: Tracer) -> None:
    """Raises where a value belongs to a transformation within which the ref was not made."""
    trace: Trace | None = value._trace
    while trace is not None and trace is not ref._home:
        trace = trace.parent
    if trace is ref._home and value._trace is not ref._home:
        batched = "(vmap)" in value._trace.name()
        what = (
            "a value that differs within the batch is written to an unbatched array reference, made outside "
            "of the vmap. Give the reference to the function as an argument that is mapped, or make it inside"
            if batched
            else f"{type(value).__name__} {get_aval(value)} is written to a ref that was made outside of the "
            "transformation that traces it. Move the array reference into the transformed function, give it "
            "to it as an argument, or give the value back as a result; what is made with "
            "kind='no_grad_no_remat' takes values without their derivatives"
        )
        raise ValueError(f"{what}. The ref {ref.origin()}.")
