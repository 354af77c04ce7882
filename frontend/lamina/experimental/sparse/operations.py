"""What `lax` does to arrays, done to sparse ones: products, slices, other shapes, parts put together."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina import random
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.products import Contraction, with_dense, with_sparse

__all__ = ["bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dot_general_sampled",
           "bcoo_dynamic_slice", "bcoo_extract",
           "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_squeeze",
           "random_bcoo"]  # fmt: skip


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: None = None,
    out_sharding: None = None,
) -> Any:  # fmt: skip
    """`lax.dot_general` where one operand, or both, are sparse. The result is dense where one is, else a BCOO with a
    value for each pair of theirs.

    lhs, rhs           a BCOO or an array each.
    dimension_numbers  ((lhs, rhs) contracting dimensions, (lhs, rhs) batch dimensions), as for lax.dot_general.
    precision, preferred_element_type, out_sharding  None.

    Raises TypeError where dimensions differ in size, NotImplementedError for the last three.

    >>> sparse = lamina.experimental.sparse
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> print(sparse.bcoo_dot_general(sparse.eye(2), jnp.array([3., 4.]), dimension_numbers=numbers))
    [3. 4.]
    """
    if precision is not None or preferred_element_type is not None or out_sharding is not None:
        raise NotImplementedError("bcoo_dot_general: precision, preferred_element_type and out_sharding must be None")
    numbers = Contraction.of(dimension_numbers)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        found = with_sparse(lhs.places(), rhs.places(), numbers)
        return BCOO((found.data, found.indices), shape=found.shape)
    if isinstance(lhs, BCOO):
        return with_dense(lhs.places(), jnp.asarray(rhs), numbers)
    if not isinstance(rhs, BCOO):
        raise ValueError(f"bcoo_dot_general: expected a BCOO, got {type(lhs).__name__} and {type(rhs).__name__}")
    dense = jnp.asarray(lhs)
    numbers.check(dense.shape, rhs.shape)
    found = with_dense(rhs.places(), dense, numbers.swapped())
    batch = len(numbers.batch[0])
    of_rhs = len(numbers.rest(1, rhs.ndim))
    return jnp.moveaxis(found, range(batch, batch + of_rhs), range(found.ndim - of_rhs, found.ndim))


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """Those elements of `lax.dot_general` of two arrays that stand at some places: an array (nse,).

    A, B               arrays.
    indices            integers (nse, ndim), places of the product; what is beyond its shape gives 0.
    dimension_numbers  ((A's, B's) contracting dimensions, (A's, B's) batch dimensions).

    >>> numbers = (((1,), (0,)), ((), ()))
    >>> A, B = jnp.array([[1., 2.], [3., 4.]]), jnp.eye(2)
    >>> print(lamina.experimental.sparse.bcoo_dot_general_sampled(A, B, jnp.array([[1, 0]]), dimension_numbers=numbers))
    [3.]
    """
    numbers, sides = Contraction.of(dimension_numbers), [jnp.asarray(A), jnp.asarray(B)]
    numbers.check(sides[0].shape, sides[1].shape)
    rest = [numbers.rest(i, x.ndim) for i, x in enumerate(sides)]
    batch, first = len(numbers.batch[0]), len(rest[0])
    columns = jnp.moveaxis(jnp.asarray(indices), -1, 0)
    if len(columns) != batch + first + len(rest[1]):
        raise ValueError(
            f"bcoo_dot_general_sampled: {batch + first + len(rest[1])} indices for each element, got {len(columns)}"
        )
    own = [(*columns[:batch], *columns[batch : batch + first]), (*columns[:batch], *columns[batch + first :])]
    rows = []
    for i, x in enumerate(sides):
        x = jnp.transpose(x, (*numbers.batch[i], *rest[i], *numbers.contracting[i]))
        x = x.reshape(*x.shape[: batch + len(rest[i])], -1)
        found = x.at[own[i]].get(mode="fill", fill_value=0) if own[i] else x
        rows.append(jnp.broadcast_to(found, (columns.shape[-1], x.shape[-1])))
    return (rows[0] * rows[1]).sum(axis=-1)


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The values of a BCOO, each times the element of an array at its place: an array (nse,).

    sp_mat  the BCOO.
    v       an array that broadcasts to its shape.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3., 4.])))
    [3. 4.]
    """
    return (sp_mat * v).data


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of two BCOO element by element: lhs * rhs, with a value for each pair of theirs.

    lhs, rhs  of the same shape. Raises ValueError where it differs.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2)).todense())
    [[1. 0.]
     [0. 1.]]
    """
    return lhs * rhs


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: None = None
) -> BCOO:
    """The elements of a BCOO in row-major order under another shape.

    mat         the BCOO.
    new_sizes   the shape.
    dimensions  the order in which its axes are read first; None: as they are.
    sharding    None.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_reshape(sparse.eye(2), new_sizes=(4,)).todense())
    [1. 0. 0. 1.]
    """
    return (mat if dimensions is None else mat.transpose(dimensions)).reshape(tuple(new_sizes))


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """A BCOO without some of its axes of one element.

    arr         the BCOO.
    dimensions  those axes. Raises ValueError where one has more elements.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,)).todense())
    [1. 0. 0.]
    """
    dropped = {d % arr.ndim for d in dimensions}
    if any(arr.shape[d] != 1 for d in dropped):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got shape={arr.shape} and "
            f"dimensions={tuple(dimensions)}"
        )
    return arr.reshape(tuple(n for i, n in enumerate(arr.shape) if i not in dropped))


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCOO:
    """A BCOO repeated along new axes, and along those of one element.

    mat                   the BCOO.
    shape                 of the result.
    broadcast_dimensions  which of its axes those of mat are.
    sharding              None.

    >>> sparse = lamina.experimental.sparse
    >>> row = sparse.eye(1, 2)
    >>> print(sparse.bcoo_broadcast_in_dim(row, shape=(2, 2), broadcast_dimensions=(0, 1)).todense())
    [[1. 0.]
     [1. 0.]]
    """
    dims = tuple(broadcast_dimensions)
    for d, n in zip(dims, mat.shape, strict=True):
        if n not in (1, shape[d]):
            raise ValueError(f"cannot broadcast a sparse array of shape {mat.shape} to {tuple(shape)} along {dims}")
    repeated = [d for d, n in enumerate(shape) if d not in dims or mat.shape[dims.index(d)] != n]
    sizes = tuple(shape[d] for d in repeated)
    where = np.stack(np.unravel_index(np.arange(prod(sizes)), sizes), axis=-1) if sizes else np.zeros((1, 0), int)
    there = mat.places().inside()[:, None]
    columns = []
    for d, size in enumerate(shape):
        if d in repeated:
            column = jnp.broadcast_to(where[:, repeated.index(d)].astype(mat.indices.dtype), (mat.nse, len(where)))
        else:
            column = jnp.broadcast_to(mat.indices[:, dims.index(d), None], (mat.nse, len(where)))
        columns.append(jnp.where(there, column, size))
    indices = jnp.stack(columns, axis=-1).reshape(-1, len(shape))
    data = jnp.broadcast_to(mat.data[:, None], (mat.nse, len(where))).reshape(-1)
    return BCOO((data, indices), shape=tuple(shape), unique_indices=mat.unique_indices)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of an array at the places of a BCOO.

    sparr          whose places are taken, none twice.
    arr            an array of its shape.
    assume_unique  True: it has no place twice; None: as it says itself.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_extract(sparse.eye(2), jnp.array([[1., 2.], [3., 4.]])).data)
    [1. 4.]
    """
    dense = jnp.asarray(arr)
    if dense.shape != sparr.shape:
        raise ValueError(f"shape mismatch: {sparr.shape} != {dense.shape}")
    is_unique = sparr.unique_indices if assume_unique is None else assume_unique
    places = sparr if is_unique else sparr.sum_duplicates(sparr.nse)
    data = dense.at[tuple(places.indices.T)].get(mode="fill", fill_value=0)
    return BCOO(
        (data, places.indices), shape=sparr.shape, indices_sorted=places.indices_sorted, unique_indices=is_unique
    )


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Several BCOO one after the other along an axis.

    operands   of the same shape but for that axis. Raises ValueError for none, or where shapes differ.
    dimension  the axis.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_concatenate([sparse.eye(1), sparse.eye(1)], dimension=1).todense())
    [[1. 1.]]
    """
    if not operands:
        raise ValueError("bcoo_concatenate: operands is empty")
    first = operands[0].shape
    axis = dimension % len(first)
    if any(x.shape[:axis] + x.shape[axis + 1 :] != first[:axis] + first[axis + 1 :] for x in operands):
        shapes = ", ".join(str(x.shape) for x in operands)
        raise ValueError(f"bcoo_concatenate: shapes {shapes} differ beside dimension {axis}")
    shape = (*first[:axis], sum(x.shape[axis] for x in operands), *first[axis + 1 :])
    indices, start = [], 0
    for x in operands:
        moved = x.indices.at[:, axis].add(start)
        indices.append(jnp.where(x.places().inside()[:, None], moved, np.array(shape, x.indices.dtype)))
        start += x.shape[axis]
    return BCOO(
        (jnp.concatenate([x.data for x in operands]), jnp.concatenate(indices)), shape=shape,
        unique_indices=all(x.unique_indices for x in operands),
    )  # fmt: skip


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """A part of a BCOO, as by lax.slice.

    mat            the BCOO.
    start_indices  of each axis, the first place,
    limit_indices  that after the last, within the shape,
    strides        and the distance from one to the next; None: 1.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_slice(sparse.eye(3), start_indices=(0, 1), limit_indices=(2, 3)).todense())
    [[0. 0.]
     [1. 0.]]
    """
    steps = (1,) * mat.ndim if strides is None else tuple(strides)
    if not len(start_indices) == len(limit_indices) == len(steps) == mat.ndim:
        raise ValueError(f"bcoo_slice: {mat.ndim} indices expected for shape {mat.shape}")
    starts, limits = np.array(start_indices, int), np.array(limit_indices, int)
    if (starts < 0).any() or (limits < starts).any() or (limits > np.array(mat.shape, int)).any():
        raise ValueError(
            f"bcoo_slice: invalid indices {tuple(start_indices)} to {tuple(limit_indices)} of shape {mat.shape}"
        )
    shape = tuple(ceil((limit - start) / step) for start, limit, step in zip(starts, limits, steps, strict=True))
    return _moved(mat, mat.indices - starts.astype(np.int32), np.array(steps, np.int32), shape)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A part of a BCOO that begins at places which may be traced, as by lax.dynamic_slice.

    mat            the BCOO.
    start_indices  of each axis an integer; one that leaves too few places is moved.
    slice_sizes    the shape of the part.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_dynamic_slice(sparse.eye(3), (0, 1), (2, 2)).todense())
    [[0. 0.]
     [1. 0.]]
    """
    if len(start_indices) != mat.ndim or len(slice_sizes) != mat.ndim:
        raise ValueError(f"bcoo_dynamic_slice: {mat.ndim} indices and sizes expected for shape {mat.shape}")
    shape = tuple(slice_sizes)
    room = np.array(mat.shape, int) - np.array(shape, int)
    if (room < 0).any():
        raise TypeError(f"slice slice_sizes must be less than or equal to operand shape, got {shape} of {mat.shape}")
    starts = jnp.stack([jnp.asarray(i, mat.indices.dtype) for i in start_indices])
    starts = jnp.clip(jnp.where(starts < 0, starts + np.array(mat.shape, np.int32), starts), 0, room.astype(np.int32))
    return _moved(mat, mat.indices - starts, np.ones(mat.ndim, np.int32), shape)


def _moved(mat: BCOO, distances: Any, steps: np.ndarray, shape: tuple[int, ...]) -> BCOO:
    """The values of an array whose places are so many steps behind where a part of this shape begins."""
    sizes = np.array(shape, np.int32)
    places = distances // steps
    is_in_part = ((distances >= 0) & (distances % steps == 0) & (places < sizes)).all(axis=-1) & mat.places().inside()
    indices = jnp.where(is_in_part[:, None], places, sizes).astype(mat.indices.dtype)
    return BCOO((jnp.where(is_in_part, mat.data, 0), indices), shape=shape, unique_indices=mat.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """A BCOO with the order of elements along some axes reversed.

    operand     the BCOO.
    dimensions  the axes.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_rev(sparse.eye(2), (0,)).todense())
    [[0. 1.]
     [1. 0.]]
    """
    is_turned = np.isin(np.arange(operand.ndim), [d % operand.ndim for d in dimensions])
    last = np.array(operand.shape, operand.indices.dtype) - 1
    turned = jnp.where(is_turned & operand.places().inside()[:, None], last - operand.indices, operand.indices)
    return BCOO((operand.data, turned), shape=operand.shape, unique_indices=operand.unique_indices)


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = float, indices_dtype: Any = None, nse: float = 0.2,
    n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
    generator: Any = random.uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """A BCOO with random values at random places.

    key              of the random numbers, which are other ones than JAX's.
    shape            of the array.
    dtype            of its values.
    indices_dtype    of its indices; None: int32.
    nse              how many values; below 1, a fraction of all elements.
    n_batch, n_dense 0.
    unique_indices   whether no place is there twice.
    sorted_indices   whether places are in order.
    generator        of the values, called as generator(key, shape=(nse,), dtype=dtype, **kwds).

    >>> print(lamina.experimental.sparse.random_bcoo(lamina.random.key(0), (4, 5), nse=0.3))
    BCOO(float32[4, 5], nse=6)
    """
    if n_batch or n_dense:
        raise NotImplementedError("random_bcoo: batch and dense dimensions are not supported")
    size = prod(shape)
    count = ceil(nse * size) if 0 < nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > size):
        raise ValueError(f"random_bcoo: nse={nse} of an array of {size} elements")
    key_of_places, key_of_values = random.split(key)
    flat = random.choice(key_of_places, size, shape=(count,), replace=not unique_indices)
    places = jnp.stack(jnp.unravel_index(flat, tuple(shape)), axis=-1).astype(indices_dtype or np.int32)
    values = generator(key_of_values, shape=(count,), dtype=dtype, **kwds)
    mat = BCOO((values, places), shape=tuple(shape), unique_indices=unique_indices)
    return mat.sort_indices() if sorted_indices else mat
