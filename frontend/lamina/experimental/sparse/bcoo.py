"""Sparse arrays as a list of values and the places where they stand (BCOO).

    a = sparse.BCOO.fromdense(x)
    a @ v, a.T, 2 * a, a + b, a.sum(axis=0), a.todense()

All is made of gathers and sums over segments, and composes with jit, grad and vmap. There are no
batch and dense dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.core.trace import Tracer
from lamina.errors import ConcretizationTypeError
from lamina.experimental.sparse.base import JAXSparse
from lamina.experimental.sparse.products import Contraction, Places, with_dense, with_sparse
from lamina.ops import segment_sum
from lamina.tree_registration import register_pytree_node_class

__all__ = ["BCOO", "bcoo_fromdense", "bcoo_reduce_sum", "bcoo_sort_indices", "bcoo_sum_duplicates",
           "bcoo_todense", "bcoo_transpose", "todense"]  # fmt: skip


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: values `data` (nse,) at `indices` (nse, ndim). Values at one place add up,
    those at indices beyond the shape are padding.

    args             (data, indices).
    indices_sorted   whether indices are in order.
    unique_indices   whether no place is there twice.
    """

    n_batch = n_dense = 0
    data: Any
    indices: Any

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if self.data.ndim != 1 or self.indices.shape != (len(self.data), len(self.shape)):
            raise ValueError(
                f"[BCOO] data of shape {self.data.shape} and indices of shape {self.indices.shape} "
                f"do not fit an array of shape {self.shape}: (nse,) and (nse, {len(self.shape)}) "
                "expected; batch and dense dimensions are not supported"
            )

    n_sparse = property(lambda self: len(self.shape))

    @property
    def nse(self) -> int:
        """How many values are kept."""
        return self.data.shape[0]

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        """The arrays, and what else there is."""
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> BCOO:
        """The inverse, for any values."""
        made = object.__new__(cls)
        made.data, made.indices = children
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
    ) -> BCOO:
        """The elements of an array that are not zero.

        nse  how many there are, or places for more; needed where mat is traced.
        Raises ConcretizationTypeError where it is needed, NotImplementedError for batch and dense
        dimensions.
        """
        if n_dense or n_batch:
            raise NotImplementedError("[BCOO.fromdense] n_batch and n_dense must be 0")
        mat = jnp.asarray(mat)
        if nse is None:
            if isinstance(mat, Tracer):
                raise ConcretizationTypeError(
                    mat, "The error arose for the nse argument of bcoo_fromdense: in a traced "
                    "function it must be given, BCOO.fromdense(mat, nse=...).",
                )  # fmt: skip
            nse = int(jnp.count_nonzero(mat))
        places = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
        data = mat.at[places].get(mode="fill", fill_value=0)
        indices = jnp.stack(places, axis=-1).astype(index_dtype)
        return cls((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> BCOO:
        """A SciPy sparse matrix."""
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], axis=-1).astype(index_dtype or np.int32)
        return cls((coo.data, indices), shape=coo.shape)

    def todense(self) -> Any:
        """The array with zeros elsewhere."""
        if not self.shape:
            return self.data.sum(dtype=self.dtype)
        zeros = jnp.zeros(self.shape, self.dtype)
        return zeros.at[tuple(jnp.moveaxis(self.indices, -1, 0))].add(self.data, mode="drop")

    def _with(self, data: Any) -> BCOO:
        return BCOO.tree_unflatten(self.tree_flatten()[1], (data, self.indices))

    def astype(self, dtype: Any) -> BCOO:
        """The values in another dtype."""
        return self._with(self.data.astype(dtype))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Axes in another order, by default the reverse."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        shape = tuple(self.shape[a] for a in order)
        return BCOO(
            (self.data, self.indices[:, np.array(order, int)]), shape=shape,
            unique_indices=self.unique_indices,
        )  # fmt: skip

    def reshape(self, *shape: Any) -> BCOO:
        """The same elements in row-major order under another shape."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        new = np.empty(self.shape, np.int8).reshape(sizes).shape
        there = self.places().inside()
        if not new:  # one element, of which padding must not be a part
            return BCOO((jnp.where(there, self.data, 0), self.indices[:, :0]), shape=new)
        flat = jnp.ravel_multi_index(tuple(self.indices.T), self.shape, mode="clip") if self.shape else (
            jnp.zeros(self.nse, self.indices.dtype)
        )  # fmt: skip
        places = jnp.stack(jnp.unravel_index(flat, new), axis=-1)
        places = jnp.where(there[:, None], places, np.array(new, np.int32))
        return BCOO(
            (self.data, places.astype(self.indices.dtype)), shape=new,
            unique_indices=self.unique_indices,
        )  # fmt: skip

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """Sums along axes, a sparse array; over all of them, a number."""
        if axis is None:
            return jnp.where(self.places().inside(), self.data, 0).sum()
        dropped = {a % self.ndim for a in ((axis,) if isinstance(axis, int) else axis)}
        kept = [a for a in range(self.ndim) if a not in dropped]
        shape = tuple(self.shape[a] for a in kept)
        data = jnp.where(self.places().inside(), self.data, 0)
        return BCOO((data, self.indices[:, np.array(kept, int)]), shape=shape)

    def sort_indices(self) -> BCOO:
        """Values in the order of their places."""
        columns = tuple(self.indices.T)
        if not columns:
            return self
        order = jnp.lexsort(columns[::-1])
        return BCOO(
            (self.data[order], self.indices[order]), shape=self.shape, indices_sorted=True,
            unique_indices=self.unique_indices,
        )  # fmt: skip

    def sum_duplicates(self, nse: int | None = None) -> BCOO:
        """One value for each place. `nse` is needed where the indices are traced."""
        places, where = jnp.unique(
            self.indices, axis=0, return_inverse=True, size=nse,
            fill_value=np.array(self.shape, np.int32),
        )  # fmt: skip
        data = segment_sum(self.data, where.reshape(-1), places.shape[0])
        return BCOO((data, places), shape=self.shape, indices_sorted=True, unique_indices=True)

    def __getitem__(self, index: Any) -> BCOO:
        from lamina.experimental.sparse.parts import part

        return part(self, index)

    def __iter__(self) -> Iterator[BCOO]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d BCOO")
        return (self[i] for i in range(self.shape[0]))

    def __pos__(self) -> BCOO:
        return self

    def __neg__(self) -> BCOO:
        return self._with(-self.data)

    def _by_place(self) -> BCOO:
        """The same with one value for each place, for functions that are not linear."""
        return self if self.unique_indices else self.sum_duplicates(self.nse)

    def __abs__(self) -> BCOO:
        mat = self._by_place()
        return mat._with(abs(mat.data))

    def __pow__(self, exponent: Any) -> BCOO:
        if not isinstance(exponent, (int, float)) or exponent <= 0:
            raise NotImplementedError(
                f"[BCOO] ** {exponent!r}: a positive number is expected, so that zeros stay zeros"
            )
        mat = self._by_place()
        return mat._with(mat.data**exponent)

    def __mul__(self, other: Any) -> BCOO:
        if isinstance(other, BCOO):
            if self.shape != other.shape:
                raise ValueError(f"[BCOO] * of shapes {self.shape} and {other.shape}")
            every = tuple(range(self.ndim))
            found = with_sparse(self.places(), other.places(), Contraction(((), ()), (every, every)))
            return BCOO((found.data, found.indices), shape=found.shape)
        dense = jnp.broadcast_to(other, self.shape)
        return self._with(self.data * dense.at[tuple(self.indices.T)].get(mode="fill", fill_value=0))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> BCOO:
        return self * (1 / jnp.asarray(other))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, BCOO):
            if np.broadcast_shapes(self.shape, np.shape(other)) != np.shape(other):
                raise NotImplementedError(
                    f"[BCOO] + an array of shape {np.shape(other)}, where the sum has shape {self.shape}: it "
                    "is not sparse. Take todense() first, where that is wanted."
                )
            return self.todense() + other
        if self.shape != other.shape:
            raise ValueError(f"[BCOO] + of shapes {self.shape} and {other.shape}")
        data = jnp.concatenate([self.data, other.data])
        return BCOO((data, jnp.concatenate([self.indices, other.indices])), shape=self.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def places(self) -> Places:
        """The values and where they stand."""
        return Places(self.data, self.indices, self.shape)

    def __matmul__(self, other: Any) -> Any:
        other = other if isinstance(other, BCOO) else jnp.asarray(other)
        if not 1 <= self.ndim <= 2 or not 1 <= other.ndim <= 2:
            raise NotImplementedError(
                f"[BCOO] @ of shapes {self.shape} and {other.shape}: vectors and matrices only"
            )
        numbers = Contraction(((self.ndim - 1,), (0,)))
        if not isinstance(other, BCOO):
            return with_dense(self.places(), other, numbers)
        found = with_sparse(self.places(), other.places(), numbers)
        return BCOO((found.data, found.indices), shape=found.shape)

    def __rmatmul__(self, other: Any) -> Any:
        out = self.T @ jnp.asarray(other).T
        return out.T


def bcoo_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCOO:  # fmt: skip
    """A dense array as a BCOO, which keeps its elements that are not zero: BCOO.fromdense.

    mat          an array.
    nse          how many elements are kept, needed within jit; None: as many as are not zero.
    n_batch      how many leading axes are batch axes,
    n_dense      and how many trailing ones are dense.
    index_dtype  of the indices.

    >>> print(lamina.experimental.sparse.bcoo_fromdense(jnp.array([[0, 5], [0, 0]])).data)
    [5]
    """
    return BCOO.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


def bcoo_todense(mat: BCOO) -> Any:
    """A BCOO as a dense array: mat.todense().

    mat  the BCOO.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_todense(sparse.bcoo_fromdense(jnp.array([[0, 5], [0, 0]]))))
    [[0 5]
     [0 0]]
    """
    return mat.todense()


def todense(arr: Any) -> Any:
    """A sparse array as a dense one; a dense one as it is.

    arr  an array, a BCOO or a BCSR.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.todense(sparse.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    return arr.todense() if isinstance(arr, JAXSparse) else jnp.asarray(arr)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """A BCOO with its axes in another order: mat.transpose(permutation).

    mat          the BCOO.
    permutation  axis i of the result is axis permutation[i] of mat.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.bcoo_fromdense(jnp.array([[0, 5], [0, 0]]))
    >>> print(sparse.bcoo_transpose(mat, permutation=(1, 0)).todense())
    [[0 0]
     [5 0]]
    """
    return mat.transpose(permutation)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum of a BCOO over some axes, a sparse array in any case.

    mat   the BCOO.
    axes  a tuple of ints.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.bcoo_fromdense(jnp.array([[1, 5], [2, 0]]))
    >>> print(sparse.bcoo_reduce_sum(mat, axes=(0,)).todense())
    [3 5]
    """
    return mat.sum(axes)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """A BCOO whose indices are in order: mat.sort_indices().

    mat  the BCOO.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.BCOO((jnp.array([5, 6]), jnp.array([[1], [0]])), shape=(3,))
    >>> print(sparse.bcoo_sort_indices(mat).data)
    [6 5]
    """
    return mat.sort_indices()


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """A BCOO with one element for each index, the sum of those that mat has:
    mat.sum_duplicates(nse).

    mat  the BCOO.
    nse  how many elements are kept, needed within jit; None: as many as there are indices.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.BCOO((jnp.array([5, 6]), jnp.array([[1], [1]])), shape=(3,))
    >>> print(sparse.bcoo_sum_duplicates(mat).data)
    [11]
    """
    return mat.sum_duplicates(nse)


def __getattr__(name: str) -> Any:
    """The operations on BCOO, which JAX has in this module."""
    if name.startswith("bcoo_"):
        from lamina.experimental import sparse

        return getattr(sparse, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
