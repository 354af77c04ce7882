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
    """An array of the values in a bytes-like object.

    buffer  bytes, or what has the buffer protocol
    dtype   the dtype of the values
    count   how many; -1: all
    offset  the byte to begin at

    >>> jnp.frombuffer(b"ab", dtype="uint8").tolist()
    [97, 98]
    """
    return asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers in a text, which sep separates.

    string  a str
    dtype   the dtype of the result
    count   how many; -1: all
    sep     what stands between numbers

    >>> jnp.fromstring("1 2 3", sep=" ").tolist()
    [1.0, 2.0, 3.0]
    """
    return asarray(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: reading a file is no pure function. NotImplementedError tells what to do.

    args  what numpy.fromfile takes; jnp.asarray of its result does the same

    >>> jnp.asarray(np.array([1, 2])).tolist()
    [1, 2]
    """
    raise _unsafe("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: reading an iterator is no pure function. NotImplementedError tells what to do.

    args  what numpy.fromiter takes; jnp.asarray of its result does the same

    >>> jnp.asarray(np.fromiter(range(3), dtype="int32")).tolist()
    [0, 1, 2]
    """
    raise _unsafe("fromiter")


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float,
                 **kwargs: Any) -> Any:  # fmt: skip
    """function of the indices of each element, which it is given as scalars (by vmap); the result
    is a pytree of arrays whose first axes are `shape`.

    function  called with an int32 or float scalar for each axis
    shape     a tuple of ints
    dtype     of the indices

    >>> jnp.fromfunction(lambda i, j: 2 * i + j, (2, 2), dtype="int32").tolist()
    [[0, 1], [2, 3]]
    """
    from lamina.api import vmap

    sizes = as_shape(shape)
    f: Callable[..., Any] = lambda *index: function(*index, **kwargs)  # noqa: E731
    for axis in reversed(range(len(sizes))):
        f = vmap(f, in_axes=tuple(0 if i == axis else None for i in range(len(sizes))))
    return f(*(arange(n, dtype=dtypes.canonicalize(dtype)) for n in sizes))


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.load, with an array as an Array. NumPy writes bfloat16 as two bytes without a type,
    which are read as bfloat16.

    file  a path or a file open for reading
    args  what numpy.load takes further

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.array([1, 2]))
    >>> jnp.load(io.BytesIO(file.getvalue())).tolist()
    [1, 2]
    """
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.ndarray):
        out = asarray(out.view(dtypes.bfloat16) if out.dtype == np.dtype("V2") else out)
    return out
