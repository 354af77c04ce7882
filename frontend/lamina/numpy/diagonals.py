"""Diagonals and triangles of matrices: eye tri tril triu diag diagonal and their indices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape, asarray, default_float, placed, zeros_like
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    canonical_axis,
    check_arraylike,
    convert,
    requested_dtype,
)  # fmt: skip
from lamina.numpy.ranges import arange


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *,
        device: Any = None) -> Array:  # fmt: skip
    """An N x M array with ones on the k-th diagonal.

    N, M    the sizes; M is N by default
    k       which diagonal: 0 the main one, above it positive, below it negative
    dtype   the dtype of the result; None: float32
    device  where to put it: a Device or a Sharding; None: the default device

    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = _sizes("eye", N, M)
    to = requested_dtype(dtype, "eye", keep=default_float())
    row = lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 0)
    if type(k) is not int or k != 0:
        row = lax.add(row, _offset("eye", k))
    column = lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 1)
    mask = lax.eq(row, column)
    return placed(mask if to == np.bool_ else lax.convert_element_type(mask, to), device)



def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n x n identity matrix.

    n      the size
    dtype  the dtype of the result; None: float32

    >>> jnp.identity(2, dtype="int32").tolist()
    [[1, 0], [0, 1]]
    """
    return eye(n, dtype=dtype)



def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """An N x M array with ones at and below the k-th diagonal.

    N, M   the sizes; M is N by default
    k      which diagonal: 0 the main one, above it positive, below it negative
    dtype  the dtype of the result; None: float32

    >>> jnp.tri(2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    rows, columns = _sizes("tri", N, M)
    to = requested_dtype(dtype, "tri", keep=default_float())
    row = lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 0)
    if type(k) is not int or k != 0:
        row = lax.add(row, _offset("tri", k))
    mask = lax.ge(row, lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 1))
    return mask if to == np.bool_ else lax.convert_element_type(mask, to)



def _sizes(name: str, n: Any, m: Any) -> tuple[int, int]:
    rows, columns = as_shape((n, n if m is None else m))
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    return rows, columns



def _offset(name: str, k: Any) -> Any:
    if not dtypes.is_integer(get_aval(k).dtype):
        raise TypeError(f"{library}.numpy.{name}: `k` must be an integer, got {k!r}")
    return convert(k, np.dtype(np.int32))



def tril(m: ArrayLike, k: int = 0) -> Array:
    """m with zeros above the k-th diagonal of its last two axes.

    m  an array of at least two axes
    k  which diagonal: 0 the main one, above it positive, below it negative

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    return _triangle("tril", m, k, keep_lower=True)



def triu(m: ArrayLike, k: int = 0) -> Array:
    """m with zeros below the k-th diagonal of its last two axes.

    m  an array of at least two axes
    k  which diagonal: 0 the main one, above it positive, below it negative

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """
    return _triangle("triu", m, k, keep_lower=False)



def _triangle(name: str, m: ArrayLike, k: int, keep_lower: bool) -> Array:
    check_arraylike(name, m)
    m = asarray(m)
    if len(m.shape) < 2:
        raise ValueError(f"Argument to {library}.numpy.{name} must be at least 2D")
    return _on_one_side(m, operator.index(k), keep_lower)


@compiled(static=("k", "keep_lower"))
def _on_one_side(m: Array, k: int, keep_lower: bool) -> Array:
    rows, columns = m.shape[-2:]
    lower = tri(rows, columns, k if keep_lower else k - 1, bool)
    mask = broadcast_to_shape(lower, m.shape)
    zero = zeros_like(m)
    return lax.select(mask, m, zero) if keep_lower else lax.select(mask, zero, m)



def diag(v: ArrayLike, k: int = 0) -> Array:
    """Of a vector: the matrix with it on the k-th diagonal. Of a matrix: its k-th diagonal.

    v  a vector or a matrix; ValueError of other arrays
    k  which diagonal: 0 the main one, above it positive, below it negative

    >>> jnp.diag(jnp.array([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    check_arraylike("diag", v)
    v = asarray(v)
    k = operator.index(k)
    if len(v.shape) == 2:
        return diagonal(v, offset=k)
    if len(v.shape) != 1:
        raise ValueError("diag input must be 1d or 2d")
    n = v.shape[0] + abs(k)
    row = lax.pad(v, np.zeros((), v.dtype)[()], [(max(0, k), max(0, -k), 0)])
    rows = lax.broadcast_in_dim(row, (n, n), (1,))
    return lax.select(eye(n, k=k, dtype=bool), rows, zeros_like(rows))



def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the flattened v on its k-th diagonal.

    v  an array
    k  which diagonal: 0 the main one, above it positive, below it negative

    >>> jnp.diagflat(jnp.array([[1], [2]])).tolist()
    [[1, 0], [0, 2]]
    """
    check_arraylike("diagflat", v)
    v = asarray(v)
    return diag(lax.reshape(v, (v.size,)), k)



def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The entries with index (i, i + offset) in two axes, along a new last axis.

    a             an array of at least two axes
    offset        which diagonal
    axis1, axis2  the two axes

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    check_arraylike("diagonal", a)
    a = asarray(a)
    ndim = len(a.shape)
    if ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    first, second = canonical_axis(axis1, ndim), canonical_axis(axis2, ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    offset = operator.index(offset)
    rest = [i for i in range(ndim) if i not in (first, second)]
    a = lax.transpose(a, [*rest, first, second]) if [*rest, first, second] != [*range(ndim)] else a
    *outer, m, n = a.shape
    count = max(0, min(m + min(offset, 0), n - max(offset, 0)))
    if count == 0:
        return lax.full((*outer, 0), 0, a.dtype)
    # In the flattened matrix the diagonal is a slice with stride n + 1.
    start = offset if offset >= 0 else -offset * n
    flat = lax.reshape(a, (*outer, m * n))
    return lax.slice(flat, (*(0 for _ in outer), start),
                     (*outer, start + (count - 1) * (n + 1) + 1),
                     (*(1 for _ in outer), n + 1))  # fmt: skip



def _count(n: Any) -> int:
    """A number of rows, which must be an integer: NumPy would round others up."""
    return operator.index(n)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The row and column indices of the lower triangle of an n x m array.

    n  the number of rows
    k  which diagonal: 0 the main one, above it positive, below it negative
    m  the number of columns; None: n

    >>> [i.tolist() for i in jnp.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = np.tril_indices(_count(n), k, m)
    return _index_arrays(rows, columns)



def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The row and column indices of the upper triangle of an n x m array.

    n  the number of rows
    k  which diagonal: 0 the main one, above it positive, below it negative
    m  the number of columns; None: n

    >>> [i.tolist() for i in jnp.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = np.triu_indices(_count(n), k, m)
    return _index_arrays(rows, columns)



def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with ndim axes of size n.

    n     the size
    ndim  how many axes

    >>> [i.tolist() for i in jnp.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    return (arange(operator.index(n)),) * operator.index(ndim)



def _index_arrays(rows: np.ndarray, columns: np.ndarray) -> tuple[Array, Array]:
    return asarray(rows), asarray(columns)
