"""Small functions on matrices in the last two axes, that rules are written with."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.array_class import Array


def is_complex(x: Any) -> bool:
    """Whether an array's dtype is complex."""
    return dtypes.is_complex(x.dtype)


def conj(x: Any) -> Array:
    """The conjugate, real arrays as they are."""
    return lax.conj(x) if is_complex(x) else x


def real(x: Any) -> Array:
    """The real part, real arrays as they are."""
    return lax.real(x) if is_complex(x) else x


def transposed(x: Any) -> Any:
    """The last two axes exchanged."""
    n = len(x.shape)
    return lax.transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return conj(transposed(x))


def matmul(x: Any, y: Any) -> Any:
    """The product of matrices; leading axes are equal. In full precision."""
    return lax.batch_matmul(x, y, lax.Precision.HIGHEST)


def symmetrize(x: Any) -> Any:
    """(x + x^H) / 2."""
    return lax.div(lax.add(x, adjoint(x)), lax.full((), 2, x.dtype))


def column(x: Any) -> Any:
    """Vectors as matrices of one column."""
    return lax.expand_dims(x, (len(x.shape),))


def row(x: Any) -> Any:
    """Vectors as matrices of one row."""
    return lax.expand_dims(x, (len(x.shape) - 1,))


def offsets(shape: tuple[int, ...]) -> Any:
    """Column number minus row number, for matrices of this shape."""
    place = np.dtype(np.int32)
    return lax.sub(
        lax.broadcasted_iota(place, shape, len(shape) - 1),
        lax.broadcasted_iota(place, shape, len(shape) - 2),
    )


def tril(x: Any, k: int = 0) -> Any:
    """x with zeros above the k-th diagonal."""
    return lax.select(lax.le(offsets(x.shape), np.int32(k)), x, lax.full_like(x, 0))


def triu(x: Any, k: int = 0) -> Any:
    """x with zeros below the k-th diagonal."""
    return lax.select(lax.ge(offsets(x.shape), np.int32(k)), x, lax.full_like(x, 0))


def eye_like(x: Any) -> Any:
    """Identity matrices of x's shape and dtype."""
    return eye(x.shape, x.dtype)


def eye(shape: tuple[int, ...], dtype: Any) -> Any:
    """Matrices with ones on the main diagonal."""
    return lax.convert_element_type(lax.eq(offsets(shape), np.int32(0)), dtype)


def diagonal(x: Any) -> Any:
    """The main diagonals."""
    k = min(x.shape[-2:])
    start, batch = [0] * len(x.shape), list(x.shape[:-2])
    x = lax.slice(x, start, (*batch, k, k))
    masked = lax.select(lax.eq(offsets(x.shape), np.int32(0)), x, lax.full_like(x, 0))
    return lax.reduce_sum(masked, (len(x.shape) - 1,))


def leading(x: Any, rows: int, columns: int) -> Any:
    """The first rows and columns."""
    return lax.slice(x, [0] * len(x.shape), (*x.shape[:-2], rows, columns))
