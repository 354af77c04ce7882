"""Named axes: which names are bound here and how long they are, and which one is being batched.

`vmap(f, axis_name="i")`, pmap and shard_map bind names while they run or trace a function. The
names that are bound belong to the keys under which traces are remembered.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lamina.core.library import library
from lamina.records import Record

if TYPE_CHECKING:
    from lamina.core.jaxpr import Jaxpr
    from lamina.core.primitive import Primitive


class Axis(Record):
    """An axis that vmap maps over; `name` is None where the user gave none."""

    name: Any
    size: int
    spmd_name: tuple[Any, ...] = ()


# (primitive, args, params) -> (args, params): makes operands vary along the same axes.
Align = Callable[[Any, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


class _State(threading.local):
    bound: tuple[tuple[Any, int], ...] = ()
    batching: Axis | None = None
    typed: frozenset[Any] = frozenset()
    mesh: Any = None
    align: Align | None = None
    spread: frozenset[Any] = frozenset()


_state = _State()


def bound() -> tuple[tuple[Any, int], ...]:
    """The names bound here with their sizes, outermost first."""
    return _state.bound


def trace_key() -> tuple[Any, ...]:
    """What of the named axes decides how a function is traced or a jaxpr transformed."""
    axis = _state.batching
    name = (axis.name, axis.spmd_name) if axis is not None else (None, ())
    return (_state.bound, _state.typed, _state.spread, name)


@contextmanager
def bind(
    axes: Iterable[tuple[Any, int]],
    align: Align | None = None,
    mesh: Any = None,
    spread: Iterable[Any] = (),
) -> Iterator[None]:
    """Binds names for a block. With `align` types say along which of these axes, of a mesh, a value varies; over
    those of a mesh in `spread` a batch is spread."""
    old, old_typed, old_align, old_mesh = _state.bound, _state.typed, _state.align, _state.mesh
    old_spread = _state.spread
    _state.spread = old_spread.union(spread)
    axes = tuple(axes)
    _state.bound = (*old, *axes)
    if align is not None:
        _state.typed, _state.align = old_typed.union(name for name, _ in axes), align
        _state.mesh = mesh
    try:
        yield
    finally:
        _state.bound, _state.typed, _state.align, _state.mesh = old, old_typed, old_align, old_mesh
        _state.spread = old_spread


@contextmanager
def none_bound() -> Iterator[None]:
    """A block in which no name is bound, as outside of any transformation."""
    old = dict(_state.__dict__)
    _state.__dict__.clear()
    try:
        yield
    finally:
        _state.__dict__.clear()
        _state.__dict__.update(old)


def typed() -> frozenset[Any]:
    """The mesh axes along which, by their types, values vary or do not."""
    return _state.typed


def spread() -> frozenset[Any]:
    """The axes of meshes over which the batches are spread whose elements a function is applied to here."""
    return _state.spread


def mesh_of_types() -> Any:
    """The AbstractMesh that has these axes."""
    return _state.mesh


def size_of(name: Any, function: str = "what names it") -> int:
    """The size of a bound axis. Raises NameError, which names the function, where the name is not bound."""
    for known, size in reversed(_state.bound):
        if known == name:
            return size
    names = ", ".join(map(str, dict.fromkeys(n for n, _ in _state.bound))) or "none"
    raise NameError(
        f"Found an unbound axis name: {name}. To fix this, please call {function} under `{library}.shard_map`, `pmap` "
        f"or `vmap(f, axis_name=...)`, which bind names; bound here: {names}."
    )


def swap_batching(axis: Axis | None) -> Axis | None:
    """Says which axis batching rules are eliminating from now on; gives the one before."""
    old = _state.batching
    _state.batching = axis
    return old


def batching() -> Axis:
    """The axis that the running batching rule eliminates."""
    return _state.batching or Axis(None, 1)


# ---- which names a program uses ------------------------------------------------------------------
_used: weakref.WeakKeyDictionary[Jaxpr, frozenset[Any]] = weakref.WeakKeyDictionary()


def used_by(primitive: Primitive, params: dict[str, Any]) -> frozenset[Any]:
    """The names that an application of a primitive uses, itself or in its jaxprs."""
    if primitive.axis_names is not None:
        return frozenset(primitive.axis_names(params))
    from lamina.core.jaxpr import subjaxprs

    return frozenset().union(*(used_in(jaxpr) for _, jaxpr in subjaxprs(params)))


def used_in(jaxpr: Jaxpr) -> frozenset[Any]:
    """The names that a jaxpr uses and does not bind."""
    names = _used.get(jaxpr)
    if names is None:
        names = frozenset().union(*(used_by(e.primitive, e.params) for e in jaxpr.eqns))
        _used[jaxpr] = names
    return names
