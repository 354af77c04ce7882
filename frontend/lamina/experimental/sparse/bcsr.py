"""BCSR: a sparse matrix by rows: values, their columns, and where each row's begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.experimental.sparse.base import JAXSparse
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.layouts import over_batches
from lamina.experimental.sparse.mapped import lane, of_lanes
from lamina.experimental.sparse.operations import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dot_general,
    bcoo_extract,
)
from lamina.interpreters.mapped_types import register_vmappable
from lamina.tree_registration import register_pytree_node_class


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse matrix: values `data` (nse,) in the columns `indices` (nse,); those of row i are from
    indptr[i] to indptr[i + 1]. Values beyond indptr[-1] are padding. Or matrices of arrays: data
    (*batch, nse, *dense), indices (*batch, nse) and indptr (*batch, rows + 1).

    args  (data, indices, indptr).
    Raises ValueError where their shapes do not fit.
    """

    n_sparse = 2
    indices: Any
    indptr: Any

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        n = self.n_batch
        if (
            min(n, self.n_dense) < 0
            or n + 2 + self.n_dense != len(self.shape)
            or self.indices.shape != (*self.shape[:n], self.nse)
            or self.indptr.shape != (*self.shape[:n], self.shape[n] + 1)
            or self.data.shape != (*self.indices.shape, *self.shape[n + 2 :])
        ):
            raise ValueError(
                f"[BCSR] data of shape {self.data.shape}, indices of shape {self.indices.shape} and "
                f"indptr of shape {self.indptr.shape} do not fit an array of shape {self.shape}: "
                "(*batch, nse, *dense), (*batch, nse) and (*batch, rows + 1) expected, for a shape of "
                "(*batch, rows, columns, *dense)"
            )

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)

    @property
    def nse(self) -> int:
        """How many values are kept, of each matrix."""
        return self.indices.shape[-1]

    def arrays(self) -> tuple[Any, Any, Any]:
        """Values, columns and where rows begin."""
        return self.data, self.indices, self.indptr

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], Any]:
        """The arrays, and what else there is."""
        rest = self.shape, self.indices_sorted, self.unique_indices
        return (self.data, self.indices, self.indptr), rest

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> BCSR:
        """The inverse, for any values."""
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.shape, made.indices_sorted, made.unique_indices = rest
        return made

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """The elements of a matrix that are not zero; arguments and errors as in BCOO.fromdense."""
        coo = BCOO.fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )
        return cls.from_bcoo(coo)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """A BCOO matrix by rows. ValueError where it has not two sparse axes."""
        if arr.n_sparse != 2:
            raise ValueError(
                f"[BCSR.from_bcoo] two sparse axes are expected, got {arr.n_sparse} of shape {arr.shape}: "
                "bcoo_update_layout makes others of them"
            )
        arr = arr if arr.indices_sorted else arr.sort_indices()
        data, indices = arr.arrays()
        rows = jnp.arange(arr.shape[arr.n_batch] + 1)
        starts = over_batches(lambda column: jnp.searchsorted(column, rows), arr.n_batch)(indices[..., 0])
        return cls(
            (data, indices[..., 1], starts.astype(indices.dtype)), shape=arr.shape,
            indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices,
        )  # fmt: skip

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """A SciPy sparse matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("[BCSR.from_scipy_sparse] n_batch and n_dense must be 0: SciPy has matrices")
        csr = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((csr.data, csr.indices.astype(kind), csr.indptr.astype(kind)), shape=csr.shape)

    def to_bcoo(self) -> BCOO:
        """The same as values with their indices; padding is beyond the shape."""
        places, count = jnp.arange(self.nse), self.shape[self.n_batch]

        def rows_of(indptr: Any) -> Any:
            rows = jnp.searchsorted(indptr, places, side="right") - 1
            return jnp.where(places < indptr[-1], rows, count)

        rows = over_batches(rows_of, self.n_batch)(self.indptr)
        indices = jnp.stack([rows.astype(self.indices.dtype), self.indices], axis=-1)
        return BCOO(
            (self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )  # fmt: skip

    def todense(self) -> Any:
        """The matrix with zeros elsewhere."""
        return self.to_bcoo().todense()

    def transpose(self, axes: Sequence[int] | None = None) -> BCSR:
        """Axes in another order, by default the reverse. Those of each kind stay among themselves."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """One value for each place, with remove_zeros where it is not 0. `nse` is needed where the indices are
        traced."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def __getitem__(self, index: Any) -> BCSR:
        found = self.to_bcoo()[index]
        if found.n_sparse != self.n_sparse:
            raise NotImplementedError(f"a BCSR indexed by {index!r} is none: take to_bcoo() of it")
        return BCSR.from_bcoo(found)

    def __neg__(self) -> BCSR:
        return self._with(-self.data)

    def _with(self, data: Any) -> BCSR:
        return BCSR.tree_unflatten(self.tree_flatten()[1], (data, self.indices, self.indptr))

    def __mul__(self, other: Any) -> BCSR:
        return self._with((self.to_bcoo() * other).data)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        return self.to_bcoo() @ other

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.to_bcoo()

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, BCSR):
            return self.todense() + other
        return BCSR.from_bcoo(self.to_bcoo() + other.to_bcoo())

    __radd__ = __add__


register_vmappable(BCSR, int, int, lane, of_lanes, None)


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:  # fmt: skip
    """A dense matrix as a BCSR, which keeps its elements that are not zero, row by row.

    mat          an array of two dimensions or more.
    nse          how many elements are kept, needed within jit; None: as many as are not zero.
    n_batch      how many leading axes are batch axes,
    n_dense      and how many trailing ones are dense.
    index_dtype  of the indices.

    >>> print(lamina.experimental.sparse.bcsr_fromdense(jnp.array([[0, 5], [6, 0]])).indptr)
    [0 1 2]
    """
    return BCSR.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


def bcsr_todense(mat: BCSR) -> Any:
    """A BCSR as a dense array: mat.todense().

    mat  the BCSR.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.array([[0, 5], [6, 0]]))))
    [[0 5]
     [6 0]]
    """
    return mat.todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """A BCSR with one element for each index, the sum of those that mat has.

    mat  the BCSR.
    nse  how many elements are kept, needed within jit; None: as many as there are indices.

    >>> sparse = lamina.experimental.sparse
    >>> parts = (jnp.array([5, 6]), jnp.array([1, 1]), jnp.array([0, 2, 2]))
    >>> print(sparse.bcsr_sum_duplicates(sparse.BCSR(parts, shape=(2, 2))).data)
    [11]
    """
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: None = None,
    out_sharding: None = None,
) -> Any:  # fmt: skip
    """`lax.dot_general` of a BCSR with an array, an array.

    lhs, rhs           a BCSR and an array, in either order.
    dimension_numbers  ((lhs, rhs) contracting dimensions, (lhs, rhs) batch dimensions), as for lax.dot_general.
    precision, preferred_element_type, out_sharding  None.

    Raises TypeError where dimensions differ in size, NotImplementedError for the last three.

    >>> sparse = lamina.experimental.sparse
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> mat = sparse.eye(2, sparse_format="bcsr")
    >>> print(sparse.bcsr_dot_general(mat, jnp.array([3., 4.]), dimension_numbers=numbers))
    [3. 4.]
    """
    left, right = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
    return bcoo_dot_general(
        left, right, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type, out_sharding=out_sharding,
    )  # fmt: skip


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements of an array at the places of a BCSR: an array (*batch, nse, *dense).

    indices  the columns (*batch, nse), row by row.
    indptr   where each row's begin (*batch, rows + 1).
    mat      an array (*batch, rows, columns, *dense).

    >>> mat = jnp.array([[1, 2], [3, 4]])
    >>> print(lamina.experimental.sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), mat))
    [2 3]
    """
    mat, indices = jnp.asarray(mat), jnp.asarray(indices)
    zeros = jnp.zeros((*indices.shape, *mat.shape[indices.ndim + 1 :]), mat.dtype)
    return bcoo_extract(BCSR((zeros, indices, indptr), shape=mat.shape).to_bcoo(), mat, assume_unique=True).data


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Several BCSR beneath each other or side by side.

    operands   the BCSR, of the same size along the other axis.
    dimension  0: rows follow rows; 1: columns follow columns.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.eye(2, sparse_format="bcsr")
    >>> print(sparse.bcsr_concatenate([mat, mat], dimension=1).todense())
    [[1. 0. 1. 0.]
     [0. 1. 0. 1.]]
    """
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCSR:
    """A BCSR repeated along its axes of one element.

    mat                   the BCSR.
    shape                 of the result.
    broadcast_dimensions  the axes of the result that those of mat become.
    sharding              None.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.bcsr_fromdense(jnp.array([[0, 5]]))
    >>> print(sparse.bcsr_broadcast_in_dim(mat, shape=(2, 2), broadcast_dimensions=(0, 1)).todense())
    [[0 5]
     [0 5]]
    """
    if sharding is not None:
        raise NotImplementedError("bcsr_broadcast_in_dim: sharding must be None")
    broadcast = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions
    )
    return BCSR.from_bcoo(broadcast)
