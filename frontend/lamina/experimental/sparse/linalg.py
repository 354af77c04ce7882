"""Linear systems and eigenvalues of large matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina import lax
from lamina import numpy as jnp
from lamina.api import eval_shape
from lamina.experimental.sparse.bcsr import BCSR

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(
    data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1
) -> Any:
    """The x with A @ x = b, for a square matrix by rows, by the LU decomposition of A as a dense
    matrix.

    data           the elements of A,
    indices        their columns,
    indptr         and where each row begins, as of a BCSR.
    b              the right-hand side, a vector.
    tol, reorder   without effect: pivots are those of the dense decomposition.

    >>> a = lamina.experimental.sparse.bcsr_fromdense(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> solve = lamina.experimental.sparse.linalg.spsolve
    >>> print(solve(a.data, a.indices, a.indptr, jnp.array([2.0, 8.0])))
    [1. 2.]
    """
    n = b.shape[0]
    return jnp.linalg.solve(BCSR((data, indices, indptr), shape=(n, n)).todense(), b)


def lobpcg_standard(
    A: Any, X: Any, m: int = 100, tol: float | None = None
) -> tuple[Any, Any, Any]:
    """The largest k eigenvalues of a symmetric matrix, by LOBPCG: the best of the space of the last
    vectors, their residuals and their last steps (Knyazev, 2001).

    A    an n x n matrix, dense or sparse, or a function v -> A @ v of n x k arrays.
    X    n x k, where to start; 5 k < n.
    m    most iterations.
    tol  what is left of a residual, relative to the eigenvalue and to n, where it has converged;
         None: the dtype's epsilon.

    Gives eigenvalues in descending order, eigenvectors as columns, and the number of iterations.
    Raises ValueError where k is 0 or too large, and where A's products have another shape or dtype than X.

    >>> a, start = jnp.diag(jnp.arange(1.0, 9.0)), jnp.ones((8, 1))
    >>> values, vectors, _ = lamina.experimental.sparse.linalg.lobpcg_standard(a, start)
    >>> print(values.round(2))
    [8.]
    """
    n, k = X.shape
    if k == 0:
        raise ValueError("must have search dim > 0, got 0")
    if 5 * k >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    if not callable(A) and A.shape != (n, n):
        raise ValueError(f"A must be {(n, n)} matrix, got {A.shape}")
    apply: Callable[[Any], Any] = A if callable(A) else lambda v: A @ v
    product = eval_shape(apply, X)
    if product.dtype != X.dtype:
        raise ValueError(f"A, X must have same dtypes (got {product.dtype}, {X.dtype})")
    if product.shape != X.shape:
        raise ValueError(f"A must be {(n, n)} matrix, got a product of shape {product.shape}")
    epsilon = jnp.finfo(X.dtype).eps
    limit = epsilon if tol is None else tol

    def best(space: Any) -> tuple[Any, Any, Any]:
        """The k best eigenvalues in a space with orthonormal columns, their vectors, coordinates."""
        within = space.T @ apply(space)
        values, vectors = jnp.linalg.eigh((within + within.T) / 2)
        return values[::-1][:k], space @ vectors[:, ::-1][:, :k], vectors[:, ::-1][:, :k]

    def residuals(values: Any, vectors: Any) -> tuple[Any, Any]:
        left = apply(vectors) - values * vectors
        size = jnp.linalg.norm(left, axis=0)
        bound = limit * n * (jnp.abs(values) + jnp.abs(values).max())
        return left, (size < bound).sum()

    def more(carry: Any) -> Any:
        i, _, _, _, _, converged = carry
        return (i < m) & (converged < k)

    def step(carry: Any) -> Any:
        i, _, vectors, steps, left, _ = carry
        # Twice, since what is nearly in the space leaves rounding errors at first.
        rest = jnp.concatenate([_scaled(left, epsilon), _scaled(steps, epsilon)], axis=1)
        for _ in range(2):
            rest = rest - vectors @ (vectors.T @ rest)
        space = jnp.linalg.qr(jnp.concatenate([vectors, rest], axis=1))[0]
        values, new, _ = best(space)
        left, converged = residuals(values, new)
        return i + 1, values, new, new - vectors @ (vectors.T @ new), left, converged

    values, vectors, _ = best(jnp.linalg.qr(X)[0])
    left, converged = residuals(values, vectors)
    first = (0, values, vectors, jnp.zeros_like(left), left, converged)
    i, values, vectors, *_ = lax.while_loop(more, step, first)
    return values, vectors, i


def _scaled(x: Any, epsilon: Any) -> Any:
    """Columns of length 1; those that are almost 0 become 0."""
    size = jnp.linalg.norm(x, axis=0)
    return jnp.where(size > epsilon, x / jnp.maximum(size, epsilon), 0)
