"""Norms, condition numbers and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.numpy._eager import compiled
from lamina.numpy.linalg.arguments import check_rank, check_square, matrices
from lamina.numpy.linalg.decompositions import svd
from lamina.numpy.promotion import Array, ArrayLike, canonical_axes
from lamina.numpy.reductions import max, min, sum


@compiled(static=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: int | float | str | None = None,
         axis: None | tuple[int, ...] | int = None, keepdims: bool = False) -> Array:  # fmt: skip
    """A norm of vectors (one axis) or of matrices (two); of all elements where neither axis nor ord
    are given.

    x         an array
    ord       a number, inf, -inf, "fro" or "nuc"; None: the 2-norm or Frobenius norm
    axis      an axis or a pair of them; None: x is one vector or matrix
    keepdims  whether they stay, with size 1

    Raises ValueError for an ord that vectors or matrices do not have.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    (a,) = matrices("norm", x)
    if axis is None and ord is None:
        axes = tuple(range(len(a.shape)))
        return _root_of_squares(a, axes, keepdims)
    axes = canonical_axes(axis, len(a.shape))
    if len(axes) == 1:
        return _vector_norm(a, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(a, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, "
        "or two axes to compute a matrix-norm."
    )


@compiled(static=("axis", "keepdims", "ord"))
def vector_norm(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None,
                keepdims: bool = False, ord: int | float | str = 2) -> Array:  # fmt: skip
    """The norm of all elements along some axes, taken as one vector.

    x         an array
    axis      an axis, several, or None for all
    keepdims  whether they stay, with size 1
    ord       a number, inf or -inf

    >>> jnp.linalg.vector_norm(jnp.array([3.0, -4.0]), ord=1)
    Array(7., dtype=float32)
    """
    (x,) = matrices("vector_norm", x)
    return _vector_norm(x, ord, canonical_axes(axis, len(x.shape)), keepdims)


@compiled(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int | float = "fro"
                ) -> Array:  # fmt: skip
    """The norm of matrices in the last two axes.

    x         matrices (..., m, n)
    keepdims  whether their axes stay, with size 1
    ord       "fro", "nuc", 1, -1, 2, -2, inf or -inf

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)
    """
    (x,) = matrices("matrix_norm", x)
    check_rank("matrix_norm", x)
    return _matrix_norm(x, ord, (len(x.shape) - 2, len(x.shape) - 1), keepdims)


def _squares(x: Array) -> Array:
    """|x|^2, which has a derivative where x is zero."""
    return lax.real(lax.mul(x, lax.conj(x))) if x.dtype.kind == "c" else lax.square(x)


def _root_of_squares(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return lax.sqrt(sum(_squares(x), axes, keepdims=keepdims))


def _vector_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord is None or ord == 2:
        return _root_of_squares(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    size = lax.abs(x)
    if ord == np.inf:
        return max(size, axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min(size, axes, keepdims=keepdims, initial=np.inf)
    if ord == 0:
        return sum(lax.convert_element_type(lax.ne(x, lax.full_like(x, 0)), size.dtype), axes,
                   keepdims=keepdims)  # fmt: skip
    if ord == 1:
        return sum(size, axes, keepdims=keepdims)
    total = sum(size ** size.dtype.type(ord), axes, keepdims=keepdims)
    return total ** size.dtype.type(1 / ord)


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    row, column = axes
    empty = 0 in (x.shape[row], x.shape[column])
    if ord in ("f", "fro"):
        return _root_of_squares(x, axes, keepdims)
    if not isinstance(ord, str) and ord in (1, -1, np.inf, -np.inf):
        inner, outer = (row, column) if ord in (1, -1) else (column, row)
        totals = sum(lax.abs(x), inner, keepdims=True)
        initial = 0 if empty and ord > 0 else None
        out = (max if ord > 0 else min)(totals, outer, keepdims=True, initial=initial)
    elif empty and ord in ("nuc", 2):
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        out = lax.full(shape, 0, dtypes.real_dtype(x.dtype))
    elif ord == "nuc" or (not isinstance(ord, str) and ord in (2, -2)):
        others = [i for i in range(len(x.shape)) if i not in axes]
        s = svd(lax.transpose(x, (*others, row, column)), compute_uv=False)
        out = sum(s, -1) if ord == "nuc" else s[..., 0] if ord == 2 else s[..., -1]
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        out = lax.reshape(out, shape)
    else:
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    return out if keepdims else lax.squeeze(out, axes)


@compiled(static=("p",))
def cond(x: ArrayLike, p: Any = None) -> Array:
    """The condition number in the norm p; in the 2-norm by singular values.

    x  matrices (..., m, n), square unless p is None, 2 or -2
    p  what norm takes for matrices

    >>> print(jnp.linalg.cond(jnp.diag(jnp.array([4.0, 2.0]))).round(3))
    2.0
    """
    from lamina.numpy.linalg.solving import inv
    from lamina.numpy.selection import where

    (x,) = matrices("cond", x)
    check_rank("cond", x)
    if p is None or p in (2, -2):
        s = svd(x, compute_uv=False)
        out = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        check_square("cond", x)
        axes = (len(x.shape) - 2, len(x.shape) - 1)
        out = _matrix_norm(x, p, axes, False) * _matrix_norm(inv(x), p, axes, False)
    # NaN came from dividing by zero, unless x has one itself.
    given = sum(lax.convert_element_type(lax.ne(x, x), np.int32), (-2, -1)) > 0
    return where(lax.bitwise_and(lax.ne(out, out), lax.bitwise_not(given)), np.inf, out)


@compiled(static=("hermitian",))
def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
                tol: ArrayLike | None = None) -> Array:  # fmt: skip
    """How many singular values are above rtol times the largest one (by default the larger size
    times the machine precision), or above tol.

    M          matrices (..., m, n), or a vector
    rtol       a number, or one for each matrix
    hermitian  whether M is, which is quicker
    tol        the absolute bound

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    (x,) = matrices("matrix_rank", M)
    if len(x.shape) < 2:
        return lax.convert_element_type((x != 0).any(), np.int32)
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        bound = _column(tol)
    else:
        if rtol is None:
            rtol = np.array(np.finfo(s.dtype).eps * np.max(x.shape[-2:]), s.dtype)[()]
        bound = s.max(-1, keepdims=True, initial=0) * _column(rtol)
    return sum(lax.convert_element_type(s > bound, np.int32), -1)


def _column(x: ArrayLike) -> Any:
    return x if np.ndim(x) == 0 else x[..., None]  # type: ignore[index]
