"""Sparse arrays from nothing: zeros, and ones on a diagonal, in any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.bcsr import BCSR
from lamina.experimental.sparse.coo import COO
from lamina.experimental.sparse.csr import CSC, CSR
from lamina.experimental.sparse.layouts import parts_of

__all__ = ["empty", "eye"]


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = np.int32, sparse_format: str = "bcoo", *,
    nse: int = 0, n_batch: int = 0, n_dense: int = 0,
) -> Any:  # fmt: skip
    """A sparse array of zeros, none of which is stored.

    shape          of the array.
    dtype          of its elements; None: the default float.
    index_dtype    of the indices.
    sparse_format  "bcoo", "bcsr", "coo", "csr" or "csc"; all but the first are matrices.
    nse            for how many values there is room, of each batch element.
    n_batch        how many leading axes are batch axes,
    n_dense        and how many trailing ones dense: of "bcoo" and "bcsr".

    Raises ValueError for another format, and where that has no such axes.

    >>> print(lamina.experimental.sparse.empty((2,)).todense())
    [0. 0.]
    """
    batch, sizes, dense = parts_of(shape, n_batch, n_dense)
    data = jnp.zeros((*batch, nse, *dense), dtype or jnp.float32)
    indices = jnp.full((*batch, nse, len(sizes)), np.array(sizes, index_dtype))
    mat = BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)
    return _in_format(mat, sparse_format)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = np.int32,
    sparse_format: str = "bcoo", *, n_batch: int = 0, n_dense: int = 0,
) -> Any:  # fmt: skip
    """A sparse matrix with ones on a diagonal.

    N, M           rows and columns; M is None: as many.
    k              which diagonal, above the main one where positive.
    dtype          of its elements; None: the default float.
    index_dtype    of the indices.
    sparse_format  "bcoo", "bcsr", "coo", "csr" or "csc".
    n_batch        how many of the two axes are batch axes, the first before the second,
    n_dense        and how many dense, the second before the first: of "bcoo".

    Raises ValueError for another format, and where that has no such axes.

    >>> print(lamina.experimental.sparse.eye(2, 3, k=1).todense())
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    columns = N if M is None else M
    if n_batch or n_dense:
        ones = np.eye(N, columns, k, dtype=bool)
        by_place = ones.any(axis=tuple(range(2 - n_dense, 2))).reshape(*ones.shape[:n_batch], -1)
        nse = int(np.max(np.sum(by_place, axis=-1))) if by_place.size else 0
        mat = BCOO.fromdense(
            jnp.eye(N, columns, k, dtype=dtype or jnp.float32), nse=nse, n_batch=n_batch, n_dense=n_dense,
            index_dtype=index_dtype,
        )  # fmt: skip
        return _in_format(mat, sparse_format)
    count = max(0, min(N + min(k, 0), columns - max(k, 0)))
    start = np.array([max(-k, 0), max(k, 0)])
    indices = (np.arange(count)[:, None] + start).astype(index_dtype)
    mat = BCOO(
        (jnp.ones(count, dtype or jnp.float32), indices), shape=(N, columns), indices_sorted=True,
        unique_indices=True,
    )  # fmt: skip
    return _in_format(mat, sparse_format)


def _in_format(mat: BCOO, name: str) -> Any:
    if (mat.n_batch or mat.n_dense) and name in ("coo", "csr", "csc"):
        raise ValueError(f"sparse_format {name!r} is of matrices: n_batch and n_dense must be 0")
    match name:
        case "bcoo":
            return mat
        case "bcsr":
            return BCSR.from_bcoo(mat)
        case "coo":
            return COO.from_bcoo(mat)
        case "csr" | "csc":
            rows = BCSR.from_bcoo(mat if name == "csr" else mat.T)
            kind = CSR if name == "csr" else CSC
            return kind((rows.data, rows.indices, rows.indptr), shape=mat.shape)
    raise ValueError(f"sparse_format {name!r}: bcoo, bcsr, coo, csr and csc are the formats")
