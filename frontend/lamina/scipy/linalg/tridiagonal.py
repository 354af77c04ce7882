"""eigh_tridiagonal: eigenvalues of tridiagonal matrices."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.numpy._eager import compiled
from lamina.numpy.linalg.arguments import matrices
from lamina.numpy.promotion import ArrayLike


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Rising eigenvalues (and eigenvectors) of the Hermitian matrix with diagonal d and e beside
    it; with select="i" those of the positions select_range, both included. tol and key are taken
    for JAX's sake: eigenvalues come in full precision.

    d             the diagonal, (n,).
    e             what is beside it, (n - 1,).
    eigvals_only  give the eigenvalues alone.

    >>> d, e = jnp.array([2.0, 2.0]), jnp.array([1.0])
    >>> lamina.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True).round(3).tolist()
    [1.0, 3.0]
    """
    if select not in ("a", "i", "v"):
        raise ValueError(f"Invalid value for select: {select!r}")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select == "i" and select_range is None:
        raise ValueError("select_range is required when select='i'")
    index = None if select == "a" else tuple(int(i) for i in select_range)  # type: ignore[union-attr]
    return _eigh_tridiagonal(d, e, bool(eigvals_only), index)


@compiled(static=("eigvals_only", "subset"))
def _eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool, subset: Any) -> Any:
    d, e = matrices("eigh_tridiagonal", d, e)
    n = d.shape[0]
    if e.shape != (n - 1,):
        raise ValueError(f"e must have one element less than d, got {e.shape} and {d.shape}")
    place = lax.linalg.matrices.offsets((n, n))
    none = lax.full((), 0, d.dtype)
    below = lax.pad(e, none, [(0, 1, 0)])[None, :]  # element i + 1, i is e[i]
    zeros = lax.full((n, n), 0, d.dtype)
    matrix = lax.select(place == 0, lax.add(zeros, d[None, :]), zeros)
    matrix = lax.select(place == -1, lax.add(zeros, below), matrix)
    index = None if subset is None else (subset[0], subset[1] + 1)
    v, w = lax.linalg.eigh(matrix, symmetrize_input=False, subset_by_index=index)
    return w if eigvals_only else (w, v)
