"""What `lax` does to arrays, done to sparse ones: products, slices, other shapes, parts put together."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from lamina import lax, random
from lamina import numpy as jnp
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.layouts import (
    elements,
    is_inside,
    over_batches,
    parts_of,
    positions,
    spread,
    with_layout,
)
from lamina.experimental.sparse.products import Contraction, Places, with_dense, with_sparse
from lamina.vmap import vmap

__all__ = ["bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dot_general_sampled",
           "bcoo_dynamic_slice", "bcoo_extract",
           "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_squeeze",
           "random_bcoo"]  # fmt: skip


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: None = None,
    out_sharding: None = None,
) -> Any:  # fmt: skip
    """`lax.dot_general` where one operand, or both, are sparse. The result is dense where one is, else a BCOO with a
    value for each pair of theirs, or for each place where these are fewer, whose batch axes are those of the product,
    where both operands have these alone.

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
        return _of_two(lhs, rhs, numbers)
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


def _of_two(lhs: BCOO, rhs: BCOO, numbers: Contraction) -> BCOO:
    """The product of two BCOO: for each batch element apart, where all batch axes are those of the product."""
    numbers.check(lhs.shape, rhs.shape)
    n = len(numbers.batch[0])
    first = tuple(range(n))
    is_apart = n and numbers.batch == (first, first) and lhs.n_batch == rhs.n_batch == n
    if not is_apart or lhs.n_dense or rhs.n_dense:
        found = with_sparse(lhs.places(), rhs.places(), numbers)
        return at_most_each(BCOO((found.data, found.indices), shape=found.shape))
    left, right = numbers.contracting
    inner = Contraction((tuple(d - n for d in left), tuple(d - n for d in right)))

    def product(data: Any, indices: Any, of_rhs: Any, at_rhs: Any) -> tuple[Any, Any]:
        found = with_sparse(Places(data, indices, lhs.shape[n:]), Places(of_rhs, at_rhs, rhs.shape[n:]), inner)
        return found.data, found.indices

    kept = [x.shape[d] for i, x in enumerate((lhs, rhs)) for d in numbers.rest(i, x.ndim)]
    return at_most_each(BCOO(over_batches(product, n)(*spread(lhs), *spread(rhs)), shape=(*lhs.shape[:n], *kept)))


def at_most_each(mat: BCOO) -> BCOO:
    """The same with one value for each place, where there are more values than places."""
    size = prod(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse])
    return mat if mat.nse <= size else mat.sum_duplicates(size, remove_zeros=False)


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """Those elements of `lax.dot_general` of two arrays that stand at some places: an array (*batch, nse, *dense).

    A, B               arrays.
    indices            integers (*batch, nse, n_sparse), places of the product as a BCOO has them; what is beyond its
                       shape gives 0.
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
    indices = jnp.asarray(indices)
    sizes = [*(sides[0].shape[d] for d in numbers.batch[0]), *(x.shape[d] for x, ds in zip(sides, rest) for d in ds)]
    n_batch = indices.ndim - 2
    if n_batch < 0 or n_batch + indices.shape[-1] > len(sizes):
        raise ValueError(
            f"bcoo_dot_general_sampled: indices of shape {indices.shape} for a product of {len(sizes)} axes"
        )
    if n_batch + indices.shape[-1] < len(sizes):  # the others are dense
        return elements(indices, lax.dot_general(sides[0], sides[1], dimension_numbers), n_batch)
    each = jnp.broadcast_arrays(*positions(indices, sizes[:n_batch]))
    out_shape = each[0].shape if each else indices.shape[:1]
    columns = [column.reshape(-1) for column in each]
    own = [(*columns[:batch], *columns[batch : batch + first]), (*columns[:batch], *columns[batch + first :])]
    rows = []
    for i, x in enumerate(sides):
        x = jnp.transpose(x, (*numbers.batch[i], *rest[i], *numbers.contracting[i]))
        x = x.reshape(*x.shape[: batch + len(rest[i])], -1)
        found = x.at[own[i]].get(mode="fill", fill_value=0) if own[i] else x
        rows.append(jnp.broadcast_to(found, (prod(out_shape), x.shape[-1])))
    return (rows[0] * rows[1]).sum(axis=-1).reshape(out_shape)


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The values of a BCOO, each times the element of an array at its place: an array (*batch, nse, *dense).

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
    n, last = arr.n_batch, arr.n_batch + arr.n_sparse
    if any(arr.shape[d] != 1 for d in dropped):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got shape={arr.shape} and "
            f"dimensions={tuple(dimensions)}"
        )
    data, indices = spread(arr)
    data = jnp.squeeze(data, tuple(d if d < n else d + 1 - arr.n_sparse for d in dropped if d < n or d >= last))
    there = is_inside(indices, arr.shape[n:last])
    indices = jnp.where(there[..., None], indices, np.array(arr.shape[n:last], indices.dtype))
    indices = indices[..., np.array([d - n for d in range(n, last) if d not in dropped], int)]
    batch = tuple(d for d in dropped if d < n)
    indices, there = jnp.squeeze(indices, batch), jnp.squeeze(there, batch)
    if not indices.shape[-1]:  # no place tells any more what is padding
        data = jnp.where(there.reshape(*there.shape, *(1,) * (data.ndim - there.ndim)), data, 0)
    shape = tuple(size for d, size in enumerate(arr.shape) if d not in dropped)
    return BCOO((data, indices), shape=shape, unique_indices=arr.unique_indices)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCOO:
    """A BCOO repeated along new axes, and along those of one element. New axes before its sparse ones are batch axes,
    those behind its first dense one dense.

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
    shape = tuple(shape)
    of_batch, of_sparse, of_dense = parts_of(dims, mat.n_batch, mat.n_dense)
    n_batch = min((*of_sparse, *of_dense), default=len(shape))
    n_dense = len(shape) - min(of_dense) if of_dense else 0
    if max(of_batch, default=-1) >= n_batch or max(of_sparse, default=-1) >= len(shape) - n_dense:
        raise ValueError("bcoo_broadcast_in_dim: batch, sparse and dense axes must follow one another in the result")
    data, indices = spread(mat)
    batch, sizes, dense = parts_of(shape, n_batch, n_dense)
    last = len(shape) - n_dense
    data = lax.broadcast_in_dim(
        data, (*batch, mat.nse, *dense), (*of_batch, n_batch, *(d - last + n_batch + 1 for d in of_dense))
    )
    indices = lax.broadcast_in_dim(
        indices, (*batch, mat.nse, mat.n_sparse), (*of_batch, n_batch, n_batch + 1)
    )
    columns = [of_sparse.index(d) if d in of_sparse else None for d in range(n_batch, last)]
    have = mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    if any(c is None or have[c] != size for c, size in zip(columns, sizes, strict=True)):
        data, indices = over_batches(lambda x, i: _repeated(x, i, have, sizes, columns), n_batch)(data, indices)
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


def _repeated(
    data: Any, indices: Any, have: Sequence[int], sizes: Sequence[int], columns: Sequence[int | None]
) -> tuple[Any, Any]:
    """A list of values at places, repeated along the axes that are new (no column) or had one element."""
    repeated = [d for d, c in enumerate(columns) if c is None or have[c] != sizes[d]]
    grid = np.indices([sizes[d] for d in repeated], np.int32).reshape(len(repeated), -1)
    each = (len(indices), grid.shape[1])
    there = is_inside(indices, have)[:, None]
    places = []
    for d, c in enumerate(columns):
        column = grid[repeated.index(d)].astype(indices.dtype) if d in repeated else indices[:, c, None]
        places.append(jnp.where(there, jnp.broadcast_to(column, each), sizes[d]))
    values = jnp.broadcast_to(data[:, None], (*each, *data.shape[1:]))
    return values.reshape(prod(each), *data.shape[1:]), jnp.stack(places, axis=-1).reshape(prod(each), -1)


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
    places = sparr if is_unique else sparr.sum_duplicates(sparr.nse, remove_zeros=False)
    data = elements(places.indices if is_unique else spread(places)[1], dense, sparr.n_batch)
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
    operands = _of_one_layout(operands, axis)
    n, last = operands[0].n_batch, operands[0].n_batch + operands[0].n_sparse
    arrays = [spread(x) for x in operands]
    if axis < n:
        nse = max(x.nse for x in operands)
        padding = np.array(shape[n:last], arrays[0][1].dtype)
        arrays = [(_filled(data, n, nse, 0), _filled(indices, n, nse, padding)) for data, indices in arrays]
        at = axis
    else:
        at, start = n, 0
        for k, x in enumerate(operands):
            data, indices = arrays[k]
            moved = indices.at[..., axis - n].add(start)
            there = is_inside(indices, x.shape[n:last])[..., None]
            arrays[k] = data, jnp.where(there, moved, np.array(shape[n:last], indices.dtype))
            start += x.shape[axis]
    data, indices = (jnp.concatenate(every, at) for every in zip(*arrays, strict=True))
    return BCOO((data, indices), shape=shape, unique_indices=all(x.unique_indices for x in operands))


def _of_one_layout(operands: Sequence[BCOO], axis: int) -> list[BCOO]:
    """Those to be put together along an axis, with batch and dense axes that all have; of one batch element more,
    where that keeps no more zeros."""
    counts = [x.n_batch for x in operands]
    n_batch = min(counts)
    if axis == 0 and max(counts) == 1 and all(x.shape[0] == 1 for x in operands if not x.n_batch):
        n_batch = 1
    n_dense = min(min(x.n_dense for x in operands), operands[0].ndim - 1 - axis)
    return [with_layout(x, n_batch, n_dense) for x in operands]


def _filled(x: Any, axis: int, size: int, value: Any) -> Any:
    """An array with `value` behind its end along an axis, up to a size."""
    behind = (*x.shape[:axis], size - x.shape[axis], *x.shape[axis + 1 :])
    return jnp.concatenate([x, jnp.broadcast_to(value, behind).astype(x.dtype)], axis)


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
    data, indices = spread(mat)
    every = [slice(*x) for x in zip(starts.tolist(), limits.tolist(), steps, strict=True)]
    batch, sparse, dense = parts_of(every, mat.n_batch, mat.n_dense)
    data, indices = data[(*batch, slice(None), *dense)], indices[batch]
    of_sparse = slice(mat.n_batch, mat.n_batch + len(sparse))
    distances = indices - starts[of_sparse].astype(np.int32)
    return _moved(mat, data, indices, distances, np.array(steps, np.int32)[of_sparse], shape)


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
    starts = jnp.stack([jnp.asarray(i, mat.indices.dtype) for i in start_indices]) if start_indices else (
        jnp.zeros(0, mat.indices.dtype)
    )  # fmt: skip
    starts = jnp.clip(jnp.where(starts < 0, starts + np.array(mat.shape, np.int32), starts), 0, room.astype(np.int32))
    data, indices = spread(mat)
    n, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, _, dense = parts_of(shape, n, mat.n_dense)
    data = lax.dynamic_slice(data, (*starts[:n], 0, *starts[last:]), (*batch, mat.nse, *dense))
    indices = lax.dynamic_slice(indices, (*starts[:n], 0, 0), (*batch, mat.nse, mat.n_sparse))
    return _moved(mat, data, indices, indices - starts[n:last], np.ones(mat.n_sparse, np.int32), shape)


def _moved(
    mat: BCOO, data: Any, indices: Any, distances: Any, steps: np.ndarray, shape: tuple[int, ...]
) -> BCOO:
    """Those values of an array whose places are so many steps behind where a part of this shape begins."""
    of_sparse = slice(mat.n_batch, mat.n_batch + mat.n_sparse)
    sizes = np.array(shape[of_sparse], np.int32)
    places = distances // steps
    is_in_part = ((distances >= 0) & (distances % steps == 0) & (places < sizes)).all(axis=-1)
    is_in_part &= is_inside(indices, mat.shape[of_sparse])
    indices = jnp.where(is_in_part[..., None], places, sizes).astype(mat.indices.dtype)
    is_in_part = is_in_part.reshape(*is_in_part.shape, *(1,) * mat.n_dense)
    return BCOO((jnp.where(is_in_part, data, 0), indices), shape=shape, unique_indices=mat.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """A BCOO with the order of elements along some axes reversed.

    operand     the BCOO.
    dimensions  the axes.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.bcoo_rev(sparse.eye(2), (0,)).todense())
    [[0. 1.]
     [1. 0.]]
    """
    dims = {d % operand.ndim for d in dimensions}
    n, last = operand.n_batch, operand.n_batch + operand.n_sparse
    data, indices = spread(operand)
    batch = tuple(d for d in dims if d < n)
    data = jnp.flip(data, (*batch, *(d + 1 - operand.n_sparse for d in dims if d >= last)))
    indices = jnp.flip(indices, batch)
    is_turned = np.isin(np.arange(n, last), list(dims)) & is_inside(indices, operand.shape[n:last])[..., None]
    ends = np.array(operand.shape[n:last], indices.dtype) - 1
    turned = jnp.where(is_turned, ends - indices, indices)
    return BCOO((data, turned), shape=operand.shape, unique_indices=operand.unique_indices)


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
    nse              how many values of a batch element; below 1, a fraction of all places.
    n_batch, n_dense how many leading axes are batch axes, how many trailing ones dense.
    unique_indices   whether no place is there twice.
    sorted_indices   whether places are in order.
    generator        of the values, called as generator(key, shape=(nse,), dtype=dtype, **kwds).

    >>> print(lamina.experimental.sparse.random_bcoo(lamina.random.key(0), (4, 5), nse=0.3))
    BCOO(float32[4, 5], nse=6)
    """
    batch, sizes, dense = parts_of(shape, n_batch, n_dense)
    size = prod(sizes)
    count = ceil(nse * size) if 0 < nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > size):
        raise ValueError(f"random_bcoo: nse={nse} of an array of {size} places")
    key_of_places, key_of_values = random.split(key)

    def places_of(key: Any) -> Any:
        flat = random.choice(key, size, shape=(count,), replace=not unique_indices)
        if not sizes:
            return jnp.zeros((count, 0), indices_dtype or np.int32)
        return jnp.stack(jnp.unravel_index(flat, sizes), axis=-1).astype(indices_dtype or np.int32)

    keys = random.split(key_of_places, prod(batch)) if batch else key_of_places
    places = vmap(places_of)(keys).reshape(*batch, count, len(sizes)) if batch else places_of(keys)
    values = generator(key_of_values, shape=(*batch, count, *dense), dtype=dtype, **kwds)
    mat = BCOO((values, places), shape=tuple(shape), unique_indices=unique_indices)
    return mat.sort_indices() if sorted_indices else mat
