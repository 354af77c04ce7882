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
    """An array before anything is written."""
    return unwritten(tuple(shape), dtype)


def ref_for(memory: Any) -> Ref:
    """New memory of a type, with `shape` and `dtype`."""
    return Ref(unwritten(tuple(memory.shape), memory.dtype))


def run_scoped(f: Callable[..., Any], *types: Any, **kw_types: Any) -> Any:
    """f(*refs, **refs), with new memory of these types."""
    args, kwargs = tree.map(ref_for, (types, kw_types))
    return f(*args, **kwargs)


def with_scoped(*types: Any, **kw_types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function gets new memory of these types after its own arguments."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return run_scoped(
                lambda *refs, **named: f(*args, *refs, **kwargs, **named), *types, **kw_types
            )

        return call

    return decorate


def load(ref: Ref, idx: Any = ..., *, mask: Any = None, other: Any = None, **_: Any) -> Any:
    """ref[idx]; where the mask is False, `other`, or without it anything."""
    value = ref[idx]
    return value if mask is None or other is None else jnp.where(mask, value, other)


def store(ref: Ref, idx: Any, val: Any, *, mask: Any = None, **_: Any) -> None:
    """ref[idx] = val, where the mask is True."""
    ref[idx] = val if mask is None else lax.convert_element_type(
        jnp.where(mask, val, ref[idx]), ref.dtype
    )  # fmt: skip
