"""Which axes of a BCOO are batch, sparse and dense, and how values move from one layout to another.

Values are (*batch, nse, *dense) and their indices (*batch, nse, n_sparse): each batch element has a list of its
own, each value is an array of the dense axes. Either may have 1 where the other has a batch axis' size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lamina import numpy as jnp
from lamina.experimental.sparse.base import SparseEfficiencyError, SparseEfficiencyWarning
from lamina.vmap import vmap

if TYPE_CHECKING:
    from lamina.experimental.sparse.bcoo import BCOO


def parts_of(shape: Sequence[Any], n_batch: int, n_dense: int) -> tuple[tuple[Any, ...], ...]:
    """What a shape, or axes, consists of: batch, sparse and dense axes."""
    last = len(shape) - n_dense
    return tuple(shape[:n_batch]), tuple(shape[n_batch:last]), tuple(shape[last:])


def over_batches(fun: Callable[..., Any], n_batch: int) -> Callable[..., Any]:
    """A function of one batch element's arrays as one of all of them."""
    for _ in range(n_batch):
        fun = vmap(fun)
    return fun


def spread(mat: BCOO) -> tuple[Any, Any]:
    """Values and indices, both with the batch axes in full."""
    n, batch = mat.n_batch, mat.shape[: mat.n_batch]
    data, indices = mat.data, mat.indices
    if data.shape[:n] != batch:
        data = jnp.broadcast_to(data, (*batch, *data.shape[n:]))
    if indices.shape[:n] != batch:
        indices = jnp.broadcast_to(indices, (*batch, *indices.shape[n:]))
    return data, indices


def positions(indices: Any, batch: Sequence[int]) -> tuple[Any, ...]:
    """Index arrays, one for each batch and sparse axis, that broadcast to (*batch, nse)."""
    n = len(batch)
    grids = [np.arange(size).reshape(size, *(1,) * (n - i)) for i, size in enumerate(batch)]
    if grids and not indices.shape[-1]:
        grids[-1] = np.broadcast_to(grids[-1], (batch[-1], indices.shape[-2]))
    return (*grids, *jnp.moveaxis(indices, -1, 0))


def is_inside(indices: Any, sizes: Any) -> Any:
    """Which values are not padding, (*batch, nse)."""
    return (indices < np.array(sizes, np.int32)).all(axis=-1)


def elements(indices: Any, dense: Any, n_batch: int) -> Any:
    """The elements of a dense array at the places of a BCOO; 0 for padding."""
    at = positions(indices, dense.shape[:n_batch])
    if not at:
        return jnp.broadcast_to(dense, (indices.shape[-2], *dense.shape))
    return dense.at[at].get(mode="fill", fill_value=0)


def as_sparse(mat: BCOO) -> BCOO:
    """The same with all axes sparse."""
    return with_layout(mat, 0, 0)


def with_layout(mat: BCOO, n_batch: int, n_dense: int) -> BCOO:
    """The same array in another layout, whatever memory that takes. Padding stays padding."""
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    if n_dense < mat.n_dense:
        mat = _with_less_dense(mat, n_dense)
    if n_batch < mat.n_batch:
        mat = _with_less_batch(mat, n_batch)
    if n_dense > mat.n_dense:
        mat = _with_more_dense(mat, n_dense)
    return mat if n_batch == mat.n_batch else _with_more_batch(mat, n_batch)


def alike(left: BCOO, right: BCOO) -> tuple[BCOO, BCOO]:
    """Both with the batch and dense axes that both have."""
    n_batch, n_dense = min(left.n_batch, right.n_batch), min(left.n_dense, right.n_dense)
    return with_layout(left, n_batch, n_dense), with_layout(right, n_batch, n_dense)


def _made(mat: BCOO, data: Any, indices: Any, is_unique: bool) -> BCOO:
    return type(mat)((data, indices), shape=mat.shape, unique_indices=is_unique)


def _with_less_dense(mat: BCOO, n_dense: int) -> BCOO:
    """Each value becomes as many as it has elements along the first dense axes."""
    data, indices = spread(mat)
    n, first = mat.n_batch + 1, mat.n_batch + 1 + mat.n_dense - n_dense
    sizes = data.shape[n:first]
    grid = np.indices(sizes, np.int32).reshape(len(sizes), -1).T
    each = (*indices.shape[:-1], len(grid))
    columns = [
        jnp.broadcast_to(indices[..., None, :], (*each, indices.shape[-1])),
        jnp.broadcast_to(grid.astype(indices.dtype), (*each, len(sizes))),
    ]
    nse = prod(each[mat.n_batch :])
    places = jnp.concatenate(columns, -1).reshape(*each[: mat.n_batch], nse, -1)
    return _made(mat, data.reshape(*each[: mat.n_batch], nse, *data.shape[first:]), places, mat.unique_indices)


def _with_less_batch(mat: BCOO, n_batch: int) -> BCOO:
    """The lists of all elements along the last batch axes become one."""
    data, indices = spread(mat)
    batch, sizes = mat.shape[:n_batch], mat.shape[n_batch : mat.n_batch]
    nse = prod(sizes) * mat.nse
    grid = np.moveaxis(np.indices(sizes, np.int32), 0, -1)[..., None, :].astype(indices.dtype)
    numbers = jnp.broadcast_to(grid, (*indices.shape[:-1], len(sizes)))
    places = jnp.concatenate([numbers, indices], -1).reshape(*batch, nse, -1)
    return _made(mat, data.reshape(*batch, nse, *data.shape[mat.n_batch + 1 :]), places, mat.unique_indices)


def _with_more_dense(mat: BCOO, n_dense: int) -> BCOO:
    """Each value becomes an array that has it alone, along the last sparse axes."""
    more = n_dense - mat.n_dense
    kept = mat.n_sparse - more
    sizes = mat.shape[mat.ndim - n_dense :]

    def placed(value: Any, place: Any) -> Any:
        zeros = jnp.zeros(sizes, value.dtype)
        return zeros.at[tuple(place[kept + i] for i in range(more))].set(value, mode="drop")

    data, indices = spread(mat)
    # Of those at one place of fewer axes none is the only one.
    return _made(mat, over_batches(placed, mat.n_batch + 1)(data, indices), indices[..., :kept], False)


def _with_more_batch(mat: BCOO, n_batch: int) -> BCOO:
    """Each element along the first sparse axes gets a list, which has 0 for the values of others."""
    more = n_batch - mat.n_batch
    sizes = mat.shape[mat.n_batch : n_batch]

    def apart(data: Any, indices: Any) -> tuple[Any, Any]:
        at = (*jnp.moveaxis(indices[:, :more], -1, 0), np.arange(mat.nse))
        values = jnp.zeros((*sizes, *data.shape), data.dtype).at[at].set(data, mode="drop")
        return values, jnp.broadcast_to(indices[:, more:], (*sizes, mat.nse, mat.n_sparse - more))

    data, indices = over_batches(apart, mat.n_batch)(*spread(mat))
    return _made(mat, data, indices, False)


def reshaped_parts(new: tuple[int, ...], old: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The batch, sparse and dense axes of a new shape, which have as many elements as the old ones."""
    sizes, at = np.cumprod(new), 0
    ends = []
    of_batch, of_sparse = prod(old[0]), prod(old[1])
    for kind, size, all_before in (
        ("batch and sparse", of_batch, of_batch),
        ("sparse and dense", of_sparse, of_batch * of_sparse),
    ):
        if size != 1 and all_before not in sizes:
            raise ValueError(
                f"[BCOO.reshape] a new shape cannot mix {kind} dimensions; got {new} for {old[0]}, {old[1]} and "
                f"{old[2]} (batch, sparse, dense): bcoo_update_layout makes all sparse"
            )
        at = max(at, int(sizes.searchsorted(all_before, side="right")))
        ends.append(at)
    return new[: ends[0]], new[ends[0] : ends[1]], new[ends[1] :]


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense axes.

    mat             the BCOO.
    n_batch         how many leading axes are batch axes; None: as many as now.
    n_dense         and how many trailing ones are dense.
    on_inefficient  what to do where more zeros would be kept: "error", "warn" or None.

    Raises SparseEfficiencyError for that, ValueError where there are too few axes.

    >>> sparse = lamina.experimental.sparse
    >>> mat = sparse.bcoo_fromdense(jnp.array([[0, 5], [6, 0]]), n_batch=1)
    >>> print(sparse.bcoo_update_layout(mat, n_batch=0).indices)
    [[0 1]
     [1 0]]
    """
    n_batch = mat.n_batch if n_batch is None else n_batch
    n_dense = mat.n_dense if n_dense is None else n_dense
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', None].")
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} must not be negative, nor more than "
            f"mat.ndim={mat.ndim} together"
        )
    last = mat.ndim - mat.n_dense
    grown = {
        "n_dense": (mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense : last]),
        "n_batch": (mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch]),
    }
    for name, (old, new, sizes) in grown.items():
        if new > old and any(size > 1 for size in sizes) and on_inefficient is not None:
            message = (
                f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} results in inefficient "
                "storage. Where that is wanted, pass on_inefficient=None to bcoo_update_layout."
            )
            if on_inefficient == "error":
                raise SparseEfficiencyError(message)
            warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
    return with_layout(mat, n_batch, n_dense)
