"""Mutable arrays: `ref = lamina.new_ref(x)`, then `ref[...]`, `ref[i] = y`, `ref[i] += y`.

A ref may be made within a traced function, given to a jitted one, or used by it from outside; loops
and branches may write it. Under grad and vmap a ref is used by the function that makes it.
"""

from __future__ import annotations

from typing import Any

from lamina.core.refs import AbstractRef as AbstractRef
from lamina.core.refs import Ref as Ref


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A mutable array with this value. `memory_space` and `kind` are accepted for JAX's programs."""
    from lamina import numpy as jnp

    if isinstance(init_val, Ref):
        raise TypeError("new_ref takes an array, not a ref: give ref[...] for a copy")
    return Ref(jnp.asarray(init_val))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A mutable array of a type (with `shape` and `dtype`) before anything is written: zeros."""
    from lamina import numpy as jnp

    return Ref(jnp.zeros(ty.shape, ty.dtype))


def freeze(ref: Ref) -> Any:
    """The value of a ref that nobody writes any more."""
    return ref.read()


def free_ref(ref: Ref) -> None:
    """Gives a ref's array up; RuntimeError where it is used later."""
    ref.free()


def get(ref: Ref, idx: Any = None) -> Any:
    """ref[idx], or all of it."""
    return ref[... if idx is None else idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """ref[idx] = value."""
    ref[... if idx is None else idx] = value


def swap(ref: Ref, idx: Any, value: Any) -> Any:
    """ref[idx] as it was, with value in its place."""
    old = get(ref, idx)
    set(ref, idx, value)
    return old


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """ref[idx] += x, adding up where an index is there twice."""
    ref.addupdate(... if idx is None else idx, x)
