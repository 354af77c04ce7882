"""Memory of kernels: refs of their own, and reads and writes under a mask."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.refs import Ref


class MemorySpace(enum.Enum):
    """Kinds of memory. Here there is one, which serves for all of them."""

    ANY = "any"
    HOST = "host"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> MemoryRef:
        """Memory of this kind for an array of a type."""
        return MemoryRef(ShapedArray(tuple(shape), np.dtype(dtype)), self)


ANY = MemorySpace.ANY


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Memory for an array: scratch_shapes and run_scoped take it."""

    inner_aval: Any
    memory_space: Any = ANY

    shape = property(lambda self: tuple(self.inner_aval.shape))
    dtype = property(lambda self: self.inner_aval.dtype)


def unwritten(shape: tuple[int, ...], dtype: Any) -> Any:
    """What memory holds that nobody has written: NaN, the least integer, False; so that reading it
    shows."""
    dtype = np.dtype(dtype)
    value: Any = False
    if dtypes.is_inexact(dtype):
        value = np.nan
    elif dtypes.is_integer(dtype):
        value = dtypes.iinfo(dtype).min
    return jnp.full(shape, value, dtype)


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array before anything is written: NaN, the least integer, False, so that reading it shows.

    shape  a tuple of ints.
    dtype  of its elements.

    >>> print(lamina.experimental.pallas.empty((2,), "float32"))
    [nan nan]
    """
    return unwritten(tuple(shape), dtype)


def ref_for(memory: Any) -> Ref:
    """New memory of a type, with `shape` and `dtype`."""
    return Ref(unwritten(tuple(memory.shape), memory.dtype))


def run_scoped(f: Callable[..., Any], *types: Any, **kw_types: Any) -> Any:
    """f(*refs, **refs), with new memory that is gone after it.

    f         a function of refs, whose result is given.
    types     types with `shape` and `dtype`, such as MemorySpace.ANY((2,), "float32"),
    kw_types  and those of refs by name.

    >>> pallas = lamina.experimental.pallas
    >>> def scratch(ref):
    ...     ref[...] = jnp.ones(2)
    ...     return ref[...] + 1
    >>> print(pallas.run_scoped(scratch, pallas.ANY((2,), "float32")))
    [2. 2.]
    """
    args, kwargs = tree.map(ref_for, (types, kw_types))
    return f(*args, **kwargs)


def with_scoped(*types: Any, **kw_types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function gets new memory after its own arguments.

    types     types with `shape` and `dtype`,
    kw_types  and those of refs by name.

    >>> pallas = lamina.experimental.pallas
    >>> @pallas.with_scoped(pallas.ANY((2,), "float32"))
    ... def add(x, ref):
    ...     ref[...] = jnp.full(2, x)
    ...     return ref[...].sum()
    >>> print(add(3.0))
    6.0
    """

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return run_scoped(
                lambda *refs, **named: f(*args, *refs, **kwargs, **named), *types, **kw_types
            )

        return call

    return decorate


def load(ref: Ref, idx: Any = ..., *, mask: Any = None, other: Any = None, **_: Any) -> Any:
    """ref[idx], under a mask.

    ref    memory of a kernel.
    idx    an index as of an array.
    mask   booleans of the part's shape; None: all are read.
    other  what is given where the mask is False; without it anything.

    >>> pallas = lamina.experimental.pallas
    >>> def first_two(x_ref, out_ref):
    ...     out_ref[...] = pallas.load(x_ref, ..., mask=jnp.arange(3) < 2, other=0)
    >>> print(pallas.pallas_call(first_two, jnp.arange(3))(jnp.array([5, 6, 7])))
    [5 6 0]
    """
    value = ref[idx]
    return value if mask is None or other is None else jnp.where(mask, value, other)


def store(ref: Ref, idx: Any, val: Any, *, mask: Any = None, **_: Any) -> None:
    """ref[idx] = val, under a mask.

    ref   memory of a kernel.
    idx   an index as of an array.
    val   an array of the part's shape.
    mask  booleans of this shape: True where val is written; None: everywhere.

    >>> pallas = lamina.experimental.pallas
    >>> def first_two(x_ref, out_ref):
    ...     out_ref[...] = jnp.zeros(3, int)
    ...     pallas.store(out_ref, ..., x_ref[...], mask=jnp.arange(3) < 2)
    >>> print(pallas.pallas_call(first_two, jnp.arange(3))(jnp.array([5, 6, 7])))
    [5 6 0]
    """
    ref[idx] = val if mask is None else lax.convert_element_type(
        jnp.where(mask, val, ref[idx]), ref.dtype
    )  # fmt: skip
