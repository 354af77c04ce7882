"""COO: a sparse matrix as its values with their rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.experimental.sparse.base import SparseMatrix
from lamina.experimental.sparse.bcoo import BCOO
from lamina.tree_registration import register_pytree_node_class

__all__ = ["COO", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]


@register_pytree_node_class
class COO(SparseMatrix):
    """A sparse matrix: values `data`, their rows `row` and columns `col`, each (nse,). Values at one place
    add up; those beyond the shape are padding.

    args         (data, row, col).
    shape        of the matrix.
    rows_sorted  whether rows are in order; cols_sorted the same of columns.
    Raises ValueError where the parts do not fit a matrix.
    """

    row: Any
    col: Any

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:
        self.data, self.row, self.col = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.rows_sorted, self.cols_sorted = rows_sorted, cols_sorted
        if len(self.shape) != 2 or not self.data.shape == self.row.shape == self.col.shape == (self.nse,):
            raise ValueError(
                f"[COO] data, row and col of shapes {self.data.shape}, {self.row.shape} and {self.col.shape} "
                f"do not fit shape {self.shape}: (nse,) each, of a matrix, expected"
            )

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], Any]:
        """The arrays, and what else there is."""
        return (self.data, self.row, self.col), (self.shape, self.rows_sorted, self.cols_sorted)

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> COO:
        """The inverse, for any values."""
        made = object.__new__(cls)
        made.data, made.row, made.col = children
        made.shape, made.rows_sorted, made.cols_sorted = rest
        return made

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """The elements of a matrix that are not zero; arguments and errors as in BCOO.fromdense."""
        return cls.from_bcoo(BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> COO:
        """A BCOO matrix in this format. ValueError where it is no matrix."""
        if arr.ndim != 2:
            raise ValueError(f"[COO] a matrix is expected, got shape {arr.shape}")
        row, col = arr.indices.T
        return cls((arr.data, row, col), shape=arr.shape, rows_sorted=arr.indices_sorted)

    def to_bcoo(self) -> BCOO:
        """The same as values with their indices."""
        indices = jnp.stack([self.row, self.col], axis=-1)
        return BCOO((self.data, indices), shape=self.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """Rows and columns exchanged. NotImplementedError for another order of the axes."""
        self._check_axes(axes)
        return COO(
            (self.data, self.col, self.row), shape=self.shape[::-1], rows_sorted=self.cols_sorted,
            cols_sorted=self.rows_sorted,
        )  # fmt: skip


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """A dense matrix as a COO, which keeps its elements that are not zero.

    mat          a matrix.
    nse          how many elements are kept, needed within jit; None: as many as are not zero.
    index_dtype  of rows and columns.

    >>> print(lamina.experimental.sparse.coo_fromdense(jnp.array([[0, 5], [6, 0]])).col)
    [1 0]
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Any:
    """A COO as a dense array: mat.todense().

    mat  the COO.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.coo_todense(sparse.coo_fromdense(jnp.array([[0, 5], [6, 0]]))))
    [[0 5]
     [6 0]]
    """
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """The product of a COO with a vector, a dense one.

    mat        the COO.
    v          an array of one dimension.
    transpose  whether mat is transposed first.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.coo_matvec(sparse.coo_fromdense(jnp.array([[0, 5], [6, 0]])), jnp.array([1, 2])))
    [10  6]
    """
    return mat.times(v, 1, transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """The product of a COO with a dense matrix, a dense one.

    mat        the COO.
    B          an array of two dimensions.
    transpose  whether mat is transposed first.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.coo_matmat(sparse.coo_fromdense(jnp.array([[0, 5], [6, 0]])), jnp.eye(2)))
    [[0. 5.]
     [6. 0.]]
    """
    return mat.times(B, 2, transpose)
