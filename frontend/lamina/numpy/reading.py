"""Arrays from and to bytes, text and files: frombuffer fromstring fromfunction load save ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from lamina.core import dtypes
from lamina.core.library import library
from lamina.numpy.creation import as_shape, asarray
from lamina.numpy.promotion import Array, DTypeLike
from lamina.numpy.ranges import arange


def _unsafe(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{library}.numpy.{name}() is not implemented because it may be non-pure and thus unsafe for "
        f"use with jit and other transformations. Use {library}.numpy.asarray(numpy.{name}(...)) "
        "instead, outside of transformed functions."
    )


def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """An array of the values in a bytes-like object."""
    return asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers in a text, which sep separates."""
    return asarray(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: reading a file is no pure function. NotImplementedError tells what to do."""
    raise _unsafe("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: reading an iterator is no pure function. NotImplementedError tells what to do."""
    raise _unsafe("fromiter")


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float,
                 **kwargs: Any) -> Any:  # fmt: skip
    """function of the indices of each element, which it is given as scalars (by vmap); the result
    is a pytree of arrays whose first axes are `shape`."""
    from lamina.api import vmap

    sizes = as_shape(shape)
    f: Callable[..., Any] = lambda *index: function(*index, **kwargs)  # noqa: E731
    for axis in reversed(range(len(sizes))):
        f = vmap(f, in_axes=tuple(0 if i == axis else None for i in range(len(sizes))))
    return f(*(arange(n, dtype=dtypes.canonicalize(dtype)) for n in sizes))


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.load, with an array as an Array. NumPy writes bfloat16 as two bytes without a type,
    which are read as bfloat16."""
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.ndarray):
        out = asarray(out.view(dtypes.bfloat16) if out.dtype == np.dtype("V2") else out)
    return out
