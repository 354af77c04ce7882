"""Mutable arrays: `ref = lamina.new_ref(x)`, then `ref[...]`, `ref[i] = y`, `ref[i] += y`.

A ref may be made within a traced function, given to it as an argument (vmap and scan give each call its part), or
used by it from outside; loops and branches may write it. Derivatives are taken through refs that the
differentiated function makes.
"""

from __future__ import annotations

from typing import Any

from lamina.core.refs import AbstractRef as AbstractRef
from lamina.core.refs import Ref as Ref

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]


def new_ref(
    init_val: Any, *, memory_space: Any = None, kind: str | None = None, pin: bool = False
) -> Ref:
    """A mutable array.

    init_val      its first value, an array or a number.
    kind          None, or "no_grad_no_remat": what a differentiated function writes is kept without its
                  derivative, also to a ref from outside.
    memory_space  without effect; so is
    pin           (which asks for a buffer that stays where it is).

    Raises TypeError where the value is a ref itself.

    >>> ref = lamina.new_ref(lamina.numpy.zeros(3))
    >>> ref[1] = 2.0
    >>> ref[...]
    Array([0., 2., 0.], dtype=float32)
    """
    from lamina import numpy as jnp

    if isinstance(init_val, Ref):
        raise TypeError("new_ref takes an array, not a ref: give ref[...] for a copy")
    return Ref(jnp.asarray(init_val), by_values=kind is not None)


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A mutable array before anything is written: zeros.

    ty                 what has a shape and a dtype, such as a ShapeDtypeStruct.
    memory_space, pin  accepted for JAX's programs.

    >>> ref = lamina.empty_ref(lamina.ShapeDtypeStruct((2,), jnp.float32))
    >>> ref[...].tolist()
    [0.0, 0.0]
    """
    from lamina import numpy as jnp

    return Ref(jnp.zeros(ty.shape, ty.dtype))


def freeze(ref: Ref) -> Any:
    """The value of a ref that nobody writes any more.

    ref  a mutable array, from new_ref.

    >>> ref = lamina.new_ref(jnp.zeros(2))
    >>> ref[0] = 5.0
    >>> lamina.freeze(ref).tolist()
    [5.0, 0.0]
    """
    return ref.read()


def free_ref(ref: Ref) -> None:
    """Gives a ref's array up; RuntimeError where it is used later.

    ref  a mutable array, from new_ref.

    >>> lamina.free_ref(lamina.new_ref(jnp.zeros(3)))
    """
    ref.free()


def get(ref: Ref, idx: Any = None) -> Any:
    """ref[idx], or all of it.

    ref  a mutable array, from new_ref.
    idx  an index, as in ref[idx].

    >>> ref = lamina.new_ref(jnp.array([1, 2, 3]))
    >>> int(lamina.ref.get(ref, 1))
    2
    """
    return ref[... if idx is None else idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """ref[idx] = value.

    ref    a mutable array, from new_ref.
    idx    an index, as in ref[idx].
    value  what fits ref[idx].

    >>> ref = lamina.new_ref(jnp.array([1, 2, 3]))
    >>> lamina.ref.set(ref, 1, 7)
    >>> ref[...].tolist()
    [1, 7, 3]
    """
    ref[... if idx is None else idx] = value


def swap(ref: Ref, idx: Any, value: Any) -> Any:
    """ref[idx] as it was, with value in its place.

    ref    a mutable array, from new_ref.
    idx    an index, as in ref[idx].
    value  what fits ref[idx].

    >>> ref = lamina.new_ref(jnp.array([1, 2, 3]))
    >>> int(lamina.ref.swap(ref, 1, 7)), ref[...].tolist()
    (2, [1, 7, 3])
    """
    return ref.swap(value, ... if idx is None else idx)


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """ref[idx] += x, adding up where an index is there twice.

    ref  a mutable array, from new_ref.
    idx  an index, as in ref[idx].
    x    what fits ref[idx].

    >>> ref = lamina.new_ref(jnp.array([1, 2, 3]))
    >>> lamina.ref.addupdate(ref, 0, 10)
    >>> ref[...].tolist()
    [11, 2, 3]
    """
    ref.addupdate(x, ... if idx is None else idx)
