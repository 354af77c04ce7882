"""CSR and CSC: a sparse matrix by rows, and by columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from lamina import numpy as jnp
from lamina.experimental.sparse.base import SparseMatrix
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.bcsr import BCSR
from lamina.tree_registration import register_pytree_node_class

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]


class _Compressed(SparseMatrix):
    """What both have: values `data` and `indices` (nse,), and where each row or column begins, `indptr`."""

    indices: Any
    indptr: Any
    _compressed: int  # which axis `indptr` is of

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)
        if (
            len(self.shape) != 2
            or not self.data.shape == self.indices.shape == (self.nse,)
            or self.indptr.shape != (self.shape[self._compressed] + 1,)
        ):
            name = type(self).__name__
            raise ValueError(
                f"[{name}] data, indices and indptr of shapes {self.data.shape}, {self.indices.shape} and "
                f"{self.indptr.shape} do not fit shape {self.shape}: (nse,), (nse,) and "
                f"({('rows', 'columns')[self._compressed]} + 1,) of a matrix expected"
            )

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], Any]:
        """The arrays, and what else there is."""
        return (self.data, self.indices, self.indptr), self.shape

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> Self:
        """The inverse, for any values."""
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.shape = rest
        return made

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Self:
        """The elements of a matrix that are not zero; arguments and errors as in BCOO.fromdense."""
        mat = jnp.asarray(mat)
        by_rows = mat.T if cls._compressed and mat.ndim == 2 else mat
        rows = BCSR.fromdense(by_rows, nse=nse, index_dtype=index_dtype)
        return cls((rows.data, rows.indices, rows.indptr), shape=mat.shape)


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix by rows: values `data` (nse,) in the columns `indices` (nse,); those of row i are from
    indptr[i] to indptr[i + 1]. Values beyond indptr[-1] are padding.

    args   (data, indices, indptr).
    shape  of the matrix.
    Raises ValueError where the parts do not fit a matrix.
    """

    _compressed = 0

    def to_bcoo(self) -> BCOO:
        """The same as values with their indices; padding is beyond the shape."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """Rows and columns exchanged: the same parts, by columns."""
        self._check_axes(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix by columns: values `data` (nse,) in the rows `indices` (nse,); those of column j are
    from indptr[j] to indptr[j + 1]. Values beyond indptr[-1] are padding.

    args   (data, indices, indptr).
    shape  of the matrix.
    Raises ValueError where the parts do not fit a matrix.
    """

    _compressed = 1

    def to_bcoo(self) -> BCOO:
        """The same as values with their indices; padding is beyond the shape."""
        return self.transpose().to_bcoo().T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Rows and columns exchanged: the same parts, by rows."""
        self._check_axes(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """A dense matrix as a CSR, which keeps its elements that are not zero, row by row.

    mat          a matrix.
    nse          how many elements are kept, needed within jit; None: as many as are not zero.
    index_dtype  of the indices.

    >>> print(lamina.experimental.sparse.csr_fromdense(jnp.array([[0, 5], [6, 0]])).indptr)
    [0 1 2]
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: CSR) -> Any:
    """A CSR as a dense array: mat.todense().

    mat  the CSR.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.csr_todense(sparse.csr_fromdense(jnp.array([[0, 5], [6, 0]]))))
    [[0 5]
     [6 0]]
    """
    return mat.todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """The product of a CSR with a vector, a dense one.

    mat        the CSR.
    v          an array of one dimension.
    transpose  whether mat is transposed first.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.csr_matvec(sparse.csr_fromdense(jnp.array([[0, 5], [6, 0]])), jnp.array([1, 2])))
    [10  6]
    """
    return mat.times(v, 1, transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """The product of a CSR with a dense matrix, a dense one.

    mat        the CSR.
    B          an array of two dimensions.
    transpose  whether mat is transposed first.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.csr_matmat(sparse.csr_fromdense(jnp.array([[0, 5], [6, 0]])), jnp.eye(2)))
    [[0. 5.]
     [6. 0.]]
    """
    return mat.times(B, 2, transpose)
