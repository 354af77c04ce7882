"""Sparse arrays as a list of values and the places where they stand (BCOO).

    a = sparse.BCOO.fromdense(x)
    a @ v, a.T, 2 * a, a + b, a.sum(axis=0), a.todense()

All is made of gathers and sums over segments, and composes with jit, grad and vmap, which maps over batch axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.core.trace import Tracer
from lamina.errors import ConcretizationTypeError
from lamina.experimental.sparse.base import JAXSparse
from lamina.experimental.sparse.layouts import (
    alike,
    as_sparse,
    elements,
    is_inside,
    over_batches,
    parts_of,
    positions,
    reshaped_parts,
    spread,
)
from lamina.experimental.sparse.mapped import lane, of_lanes
from lamina.experimental.sparse.products import Contraction, Places, with_sparse
from lamina.interpreters.mapped_types import register_vmappable
from lamina.numpy.promotion import concrete_or_error
from lamina.ops import segment_sum
from lamina.tree_registration import register_pytree_node_class

__all__ = ["BCOO", "bcoo_eliminate_zeros", "bcoo_fromdense", "bcoo_reduce_sum", "bcoo_sort_indices",
           "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose"]  # fmt: skip


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: values `data` (*batch, nse, *dense) at `indices` (*batch, nse, n_sparse). Values at one
    place add up, those at indices beyond the shape are padding.

    args             (data, indices), of which either may have 1 in place of a batch axis' size.
    indices_sorted   whether indices are in order.
    unique_indices   whether no place is there twice.
    """

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
        n = self.n_batch
        if not (
            self.indices.ndim >= 2
            and self.n_dense >= 0
            and n + self.n_sparse + self.n_dense == len(self.shape)
            and all(
                size in (1, whole)
                for x in (self.data, self.indices)
                for size, whole in zip(x.shape[:n], self.shape[:n], strict=True)
            )
            and self.data.shape[n:] == (self.nse, *self.shape[len(self.shape) - self.n_dense :])
        ):
            raise ValueError(
                f"[BCOO] data of shape {self.data.shape} and indices of shape {self.indices.shape} "
                f"do not fit an array of shape {self.shape}: (*batch, nse, *dense) and (*batch, nse, n_sparse) "
                "expected, for a shape of (*batch, *sparse, *dense)"
            )

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim + 1)

    @property
    def nse(self) -> int:
        """How many values are kept, of each batch element."""
        return self.indices.shape[-2]

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

        nse      how many there are, or places for more; needed where mat is traced.
        n_dense  how many trailing axes are dense: values are arrays, kept where they are not all zero;
        n_batch  and how many leading ones are batch axes, of which each element has nse places.
        Raises ConcretizationTypeError where nse is needed, ValueError for more axes than there are.
        """
        mat = jnp.asarray(mat)
        if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
            raise ValueError(f"[BCOO.fromdense] n_batch={n_batch} and n_dense={n_dense} of shape {mat.shape}")
        batch, sizes, dense = parts_of(mat.shape, n_batch, n_dense)
        is_kept = (mat != 0).reshape(*batch, *sizes, -1).any(-1) if n_dense else mat != 0
        if nse is None:
            if isinstance(mat, Tracer):
                raise ConcretizationTypeError(
                    mat, "The error arose for the nse argument of bcoo_fromdense: in a traced "
                    "function it must be given, BCOO.fromdense(mat, nse=...).",
                )  # fmt: skip
            counts = jnp.count_nonzero(is_kept.reshape(*batch, -1), axis=-1)
            nse = int(counts.max()) if counts.size else 0

        def places(is_kept: Any) -> Any:
            if not sizes:
                return jnp.zeros((nse, 0), index_dtype)
            return jnp.stack(jnp.nonzero(is_kept, size=nse, fill_value=sizes), axis=-1).astype(index_dtype)

        indices = over_batches(places, n_batch)(is_kept)
        data = elements(indices, mat, n_batch)
        if not sizes:  # a single place: further values are padding
            first = np.arange(nse).reshape(nse, *(1,) * n_dense) == 0
            data = jnp.where(first, data, 0)
        return cls((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> BCOO:
        """A SciPy sparse matrix."""
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], axis=-1).astype(index_dtype or np.int32)
        return cls((coo.data, indices), shape=coo.shape)

    def todense(self) -> Any:
        """The array with zeros elsewhere."""
        data, indices = spread(self)
        if not (self.n_batch or self.n_sparse):
            return data.sum(axis=0, dtype=self.dtype)
        zeros = jnp.zeros(self.shape, self.dtype)
        return zeros.at[positions(indices, self.shape[: self.n_batch])].add(data, mode="drop")

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The same array with other numbers of batch and dense axes: bcoo_update_layout."""
        from lamina.experimental.sparse.layouts import bcoo_update_layout

        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def arrays(self) -> tuple[Any, Any]:
        """Values and indices, both with the batch axes in full."""
        return spread(self)

    def _inside(self) -> Any:
        """Which values are not padding, of a shape that broadcasts with data."""
        there = is_inside(self.indices, self.shape[self.n_batch : self.n_batch + self.n_sparse])
        return there.reshape(*there.shape, *(1,) * self.n_dense)

    def _with(self, data: Any) -> BCOO:
        return BCOO.tree_unflatten(self.tree_flatten()[1], (data, self.indices))

    def astype(self, dtype: Any) -> BCOO:
        """The values in another dtype."""
        return self._with(self.data.astype(dtype))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Axes in another order, by default the reverse. Those of each kind stay among themselves."""
        order = self._order(axes)
        n = self.n_batch
        batch, sparse, dense = parts_of(order, n, self.n_dense)
        behind = 1 - self.n_sparse  # from an axis of the array to that of data
        data = self.data.transpose(*batch, n, *(a + behind for a in dense))
        indices = self.indices.transpose(*batch, n, n + 1)[..., np.array(sparse, int) - n]
        shape = tuple(self.shape[a] for a in order)
        return BCOO(
            (data, indices), shape=shape, unique_indices=self.unique_indices,
            indices_sorted=self.indices_sorted and sorted(sparse) == list(sparse),
        )  # fmt: skip

    def _order(self, axes: Sequence[int] | None) -> tuple[int, ...]:
        """Axes of a transposition, checked."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"[BCOO.transpose] axes {order} are no permutation of the {self.ndim} axes")
        every = parts_of(range(self.ndim), self.n_batch, self.n_dense)
        if [sorted(part) for part in parts_of(order, self.n_batch, self.n_dense)] != [list(p) for p in every]:
            raise NotImplementedError(
                f"[BCOO.transpose] axes {order} mix batch, sparse and dense axes ({self.n_batch}, {self.n_sparse} and "
                f"{self.n_dense} of them): bcoo_update_layout makes all sparse"
            )
        return order

    def reshape(self, *shape: Any) -> BCOO:
        """The same elements in row-major order under another shape. Axes of each kind stay among themselves."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        new = np.empty(self.shape, np.int8).reshape(sizes).shape
        old = parts_of(self.shape, self.n_batch, self.n_dense)
        batch, sparse, dense = reshaped_parts(new, old)
        data, indices = spread(self)
        data = data.reshape(*batch, self.nse, *dense)
        indices = indices.reshape(*batch, self.nse, self.n_sparse)
        there = is_inside(indices, old[1])
        if not sparse:  # one place, of which padding must not be a part
            there = there.reshape(*there.shape, *(1,) * len(dense))
            return BCOO((jnp.where(there, data, 0), indices[..., :0]), shape=new)
        flat = jnp.ravel_multi_index(tuple(jnp.moveaxis(indices, -1, 0)), old[1], mode="clip") if old[1] else (
            jnp.zeros(indices.shape[:-1], indices.dtype)
        )  # fmt: skip
        places = jnp.stack(jnp.unravel_index(flat, sparse), axis=-1)
        places = jnp.where(there[..., None], places, np.array(sparse, np.int32)).astype(indices.dtype)
        return BCOO((data, places), shape=new, unique_indices=self.unique_indices)

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """Sums along axes, a sparse array; over all of them, a number."""
        data, indices = spread(self)
        data = jnp.where(self._inside(), data, 0)
        if axis is None:
            return data.sum()
        dropped = {a % self.ndim for a in ((axis,) if isinstance(axis, int) else axis)}
        kept = [a for a in range(self.ndim) if a not in dropped]
        n = self.n_batch
        data = data.sum(axis=tuple(a + 1 - self.n_sparse for a in dropped if a >= n + self.n_sparse))
        indices = indices[..., np.array([a - n for a in kept if n <= a < n + self.n_sparse], int)]
        batch = [a for a in kept if a < n]
        order = (*batch, *(a for a in dropped if a < n), n)  # lists that are summed become one
        shape = tuple(self.shape[a] for a in batch)
        data, indices = (
            x.transpose(*order, *range(n + 1, x.ndim)).reshape(*shape, -1, *x.shape[n + 1 :]) if x.size else
            jnp.zeros((*shape, prod(x.shape[a] for a in order[len(batch) :]), *x.shape[n + 1 :]), x.dtype)
            for x in (data, indices)
        )  # fmt: skip
        return BCOO((data, indices), shape=tuple(self.shape[a] for a in kept))

    def sort_indices(self) -> BCOO:
        """Values in the order of their places. Indices that batch elements share are sorted once."""
        n, data, indices = self.n_batch, self.data, self.indices
        if self.n_sparse:
            order = over_batches(_sorting_order, n)(indices)
            batch = np.broadcast_shapes(data.shape[:n], indices.shape[:n])
            data = jnp.broadcast_to(data, (*batch, *data.shape[n:]))
            of_data = jnp.broadcast_to(order, (*batch, self.nse)).reshape(*batch, self.nse, *(1,) * self.n_dense)
            data = jnp.take_along_axis(data, of_data, axis=n)
            indices = jnp.take_along_axis(indices, order[..., None], axis=n)
        return BCOO((data, indices), shape=self.shape, indices_sorted=True, unique_indices=self.unique_indices)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """One value for each place, in order; with remove_zeros none for those whose values are 0. `nse` is needed
        where the indices are traced."""
        n, sizes = self.n_batch, np.array(self.shape[self.n_batch : self.n_batch + self.n_sparse], np.int32)
        data, indices = spread(self)
        if not self.n_sparse:
            arrays = data.sum(axis=n, keepdims=True), indices[..., :1, :]
            return BCOO(arrays, shape=self.shape, indices_sorted=True, unique_indices=True)
        is_kept = is_inside(indices, sizes)
        if remove_zeros:
            is_kept &= (data != 0).reshape(*data.shape[: n + 1], -1).any(axis=-1)
        indices = jnp.where(is_kept[..., None], indices, sizes.astype(indices.dtype))  # others behind all places
        if nse is None:
            counts = concrete_or_error(
                over_batches(_number_of_places, n)(indices, jnp.broadcast_to(sizes, (*indices.shape[:n], len(sizes)))),
                "The error arose for the nse argument of sum_duplicates: in a traced function it must be given.",
            )
            nse = int(counts.max()) if counts.size else 0

        def summed(data: Any, indices: Any) -> tuple[Any, Any]:
            places, where = jnp.unique(indices, axis=0, return_inverse=True, size=nse, fill_value=sizes)
            return segment_sum(data, where.reshape(-1), nse), places

        arrays = over_batches(summed, n)(data, indices)
        return BCOO(arrays, shape=self.shape, indices_sorted=True, unique_indices=True)

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
        return self if self.unique_indices else self.sum_duplicates(self.nse, remove_zeros=False)

    def __abs__(self) -> BCOO:
        mat = self._by_place()
        return mat._with(abs(mat.data))

    def __pow__(self, exponent: Any) -> BCOO:
        if not isinstance(exponent, (int, float)) or exponent <= 0:
            kind = "integer_pow" if isinstance(exponent, int) else "pow"
            raise NotImplementedError(
                f"sparse rule for {kind} with non-positive exponent {exponent!r}: zeros would not stay zeros"
            )
        mat = self._by_place()
        return mat._with(mat.data**exponent)

    def __mul__(self, other: Any) -> BCOO:
        if isinstance(other, BCOO):
            try:
                shape = np.broadcast_shapes(self.shape, other.shape)
            except ValueError:
                raise ValueError(f"[BCOO] * of shapes {self.shape} and {other.shape}") from None
            a, b = alike(*(_repeated(x, shape) for x in (self, other)))
            every = tuple(range(a.n_sparse))
            made = over_batches(
                lambda *x: _of_both(x[:2], x[2:], a.shape[a.n_batch :], Contraction(((), ()), (every, every))),
                a.n_batch,
            )
            return BCOO(made(*spread(a), *spread(b)), shape=shape)
        dense = jnp.broadcast_to(other, self.shape)
        data, indices = spread(self)
        return self._with(data * elements(indices, dense, self.n_batch))

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
        a, b = alike(self, other)
        data, indices = (jnp.concatenate(pair, a.n_batch) for pair in zip(spread(a), spread(b), strict=True))
        return BCOO((data, indices), shape=self.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def places(self) -> Places:
        """The values and where they stand, all axes sparse."""
        mat = as_sparse(self)
        return Places(mat.data, mat.indices, mat.shape)

    def __matmul__(self, other: Any) -> Any:
        other = other if isinstance(other, BCOO) else jnp.asarray(other)
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(jnp.asarray(other), self)


register_vmappable(BCOO, int, int, lane, of_lanes, None)


def _matmul(left: Any, right: Any) -> Any:
    """`jnp.matmul` of arrays of which at least one is a BCOO."""
    from lamina.experimental.sparse.operations import bcoo_dot_general

    if not (left.ndim and right.ndim):
        raise ValueError(f"[BCOO] @ of shapes {left.shape} and {right.shape}: numbers are multiplied by *")
    batch = [x.shape[:-2] for x in (left, right)]
    common = len(batch[0]) if batch[0] == batch[1] else 0
    if not common and all(batch):
        raise NotImplementedError(
            f"[BCOO] @ of shapes {left.shape} and {right.shape}: leading axes that are the same, or of one operand "
            "alone, are expected"
        )
    contracting = (left.ndim - 1,), (max(right.ndim - 2, 0),)
    out = bcoo_dot_general(left, right, dimension_numbers=(contracting, (tuple(range(common)),) * 2))
    if batch[1] and not common and left.ndim > 1:  # rows of the left stand before the right's leading axes
        order = (*range(1, 1 + len(batch[1])), 0, *range(1 + len(batch[1]), out.ndim))
        out = out.transpose(order)
    return out


def _repeated(mat: BCOO, shape: tuple[int, ...]) -> BCOO:
    """A BCOO along new leading axes, and along those of one element."""
    from lamina.experimental.sparse.operations import bcoo_broadcast_in_dim

    if mat.shape == shape:
        return mat
    dims = range(len(shape) - mat.ndim, len(shape))
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=tuple(dims))


def _of_both(left: Any, right: Any, shape: Sequence[int], numbers: Contraction) -> tuple[Any, Any]:
    """Values and places of a product of two lists of values at places of this shape, dense axes included."""
    sizes = tuple(shape[: left[1].shape[-1]])
    found = with_sparse(Places(left[0], left[1], sizes), Places(right[0], right[1], sizes), numbers)
    return found.data, found.indices


def _sorting_order(indices: Any) -> Any:
    return jnp.lexsort(tuple(indices.T)[::-1])


def _number_of_places(indices: Any, sizes: Any) -> Any:
    """How many places are there, padding and repeated ones apart."""
    rows = indices[_sorting_order(indices)]
    is_first = jnp.concatenate([jnp.ones(min(len(rows), 1), bool), (rows[1:] != rows[:-1]).any(axis=-1)])
    return (is_first & (rows < sizes).all(axis=-1)).sum()


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
    mat.sum_duplicates(nse, remove_zeros=False).

    mat  the BCOO.
    nse  how many elements are kept, needed within jit; None: as many as there are indices.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.BCOO((jnp.array([5, 6]), jnp.array([[1], [1]])), shape=(3,))
    >>> print(sparse.bcoo_sum_duplicates(mat).data)
    [11]
    """
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """A BCOO with one value for each place, and none for those where it is 0.

    mat  the BCOO.
    nse  how many values are kept, needed within jit; None: as many as there are.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.BCOO((jnp.array([5, 0]), jnp.array([[1], [0]])), shape=(3,))
    >>> print(sparse.bcoo_eliminate_zeros(mat).indices)
    [[1]]
    """
    return mat.sum_duplicates(nse)


def __getattr__(name: str) -> Any:
    """The operations on BCOO, which JAX has in this module."""
    if name.startswith("bcoo_"):
        from lamina.experimental import sparse

        return getattr(sparse, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
