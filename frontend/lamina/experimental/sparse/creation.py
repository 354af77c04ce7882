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

__all__ = ["empty", "eye"]


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = np.int32, sparse_format: str = "bcoo"
) -> Any:
    """A sparse array of zeros, none of which is stored.

    shape          of the array.
    dtype          of its elements; None: the default float.
    index_dtype    of the indices.
    sparse_format  "bcoo", "bcsr", "coo", "csr" or "csc"; all but the first are matrices.

    Raises ValueError for another format.

    >>> print(lamina.experimental.sparse.empty((2,)).todense())
    [0. 0.]
    """
    data = jnp.zeros(0, dtype or jnp.float32)
    indices = jnp.zeros((0, len(shape)), index_dtype)
    mat = BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)
    return _in_format(mat, sparse_format)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = np.int32,
    sparse_format: str = "bcoo",
) -> Any:  # fmt: skip
    """A sparse matrix with ones on a diagonal.

    N, M           rows and columns; M is None: as many.
    k              which diagonal, above the main one where positive.
    dtype          of its elements; None: the default float.
    index_dtype    of the indices.
    sparse_format  "bcoo", "bcsr", "coo", "csr" or "csc".

    Raises ValueError for another format.

    >>> print(lamina.experimental.sparse.eye(2, 3, k=1).todense())
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    columns = N if M is None else M
    count = max(0, min(N + min(k, 0), columns - max(k, 0)))
    start = np.array([max(-k, 0), max(k, 0)])
    indices = (np.arange(count)[:, None] + start).astype(index_dtype)
    mat = BCOO(
        (jnp.ones(count, dtype or jnp.float32), indices), shape=(N, columns), indices_sorted=True,
        unique_indices=True,
    )  # fmt: skip
    return _in_format(mat, sparse_format)


def _in_format(mat: BCOO, name: str) -> Any:
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
