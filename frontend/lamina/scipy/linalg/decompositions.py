"""Factorisations: cholesky cho_factor lu lu_factor qr qr_multiply svd eigh schur rsf2csf polar
hessenberg."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lamina import lax
from lamina.lax.linalg.matrices import adjoint, matmul
from lamina.numpy._eager import compiled
from lamina.numpy.diagonals import tril, triu
from lamina.numpy.functional import vectorize
from lamina.numpy.linalg.arguments import check_square, matrices
from lamina.numpy.promotion import Array, ArrayLike
from lamina.numpy.selection import where


@compiled(static=("lower", "overwrite_a", "check_finite"))
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
             check_finite: bool = True) -> Array:  # fmt: skip
    """U with U^H U = a, or with lower L with L L^H = a. Only one triangle is read.

    a                          Hermitian positive definite matrices, (..., n, n); NaN for others.
    lower                      give L.
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> lamina.scipy.linalg.cholesky(jnp.diag(jnp.array([4.0, 9.0]))).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    (a,) = matrices("cholesky", a)
    check_square("cholesky", a)
    factor = lax.linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:  # fmt: skip
    """The Cholesky factor and `lower`, as cho_solve takes them.

    a                          Hermitian positive definite matrices, (..., n, n); NaN for others.
    lower                      give the lower factor.
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> factor = lamina.scipy.linalg.cho_factor(a)
    >>> lamina.scipy.linalg.cho_solve(factor, jnp.array([6.0, 5.0])).round(3).tolist()
    [1.0, 1.0]
    """
    return cholesky(a, lower=lower), lower


@compiled(static=("permute_l", "overwrite_a", "check_finite"))
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:  # fmt: skip
    """P, L, U with a = P L U, P a permutation matrix; or P L and U.

    a                          matrices, (..., m, n).
    permute_l                  give P L and U.
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> p, l, u = lamina.scipy.linalg.lu(a)
    >>> bool(jnp.allclose(p @ l @ u, a))
    True
    """
    (a,) = matrices("lu", a)
    factors, _, order = lax.linalg.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    rows = lax.broadcasted_iota(np.int32, (*a.shape[:-2], m, m), len(a.shape) - 2)
    permutation = lax.convert_element_type(
        rows == order[..., None, :], lax.linalg.matrices.real(a).dtype
    )
    lower = tril(factors[..., :k], -1) + lax.linalg.matrices.eye((*a.shape[:-2], m, k), a.dtype)
    upper = triu(factors[..., :k, :])
    if not permute_l:
        return permutation, lower, upper
    return matmul(lax.convert_element_type(permutation, a.dtype), lower), upper


@compiled(static=("overwrite_a", "check_finite"))
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
              ) -> tuple[Array, Array]:  # fmt: skip
    """L below U in one matrix, and the interchanges of rows.

    a                          square matrices, (..., n, n).
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> factors, interchanges = lamina.scipy.linalg.lu_factor(a)
    >>> interchanges.tolist()
    [0, 1]
    """
    (a,) = matrices("lu_factor", a)
    factors, pivots, _ = lax.linalg.lu(a)
    return factors, pivots


@compiled(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(a: ArrayLike, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
       pivoting: bool = False, check_finite: bool = True) -> tuple[Array, ...]:  # fmt: skip
    """Q and R ("full" or "economic"), R alone ("r"); with pivoting also the order of columns.

    a                                 matrices, (..., m, n).
    overwrite_a, lwork, check_finite  accepted for SciPy's programs.
    mode                              "full", "economic" or "r".
    pivoting                          interchange columns, so that the diagonal of R falls.

    >>> q, r = lamina.scipy.linalg.qr(jnp.ones((3, 2)), mode="economic")
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    (a,) = matrices("qr", a)
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, *rest = lax.linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


@compiled(static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False,
                conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
                ) -> tuple[Array, ...]:  # fmt: skip
    """c Q, or with mode="left" Q c, and R of a's economic QR factors; Q conjugated if asked.

    a                         matrices, (..., m, n).
    c                         a matrix, or a vector.
    mode                      "right" or "left".
    pivoting                  interchange columns; gives their order, too.
    conjugate                 use the conjugate of Q.
    overwrite_a, overwrite_c  accepted for SciPy's programs.

    >>> cq, r = lamina.scipy.linalg.qr_multiply(jnp.eye(2), jnp.ones((3, 2)))
    >>> cq.shape, r.shape
    ((3, 2), (2, 2))
    """
    if mode not in ("left", "right"):
        raise ValueError(f"Mode argument should be 'left' or 'right', got '{mode}'")
    a, c = matrices("qr_multiply", a, c)
    q, *rest = lax.linalg.qr(a, pivoting=pivoting, full_matrices=False)
    q = lax.linalg.matrices.conj(q) if conjugate else q
    return (q @ c if mode == "left" else c @ q, *rest)


@compiled(static=("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver"))
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
        ) -> Any:  # fmt: skip
    """U, s, V^H, or s alone; by divide and conquer ("gesdd") or QR iterations ("gesvd").

    a                          matrices, (..., m, n).
    full_matrices              U is (m, m) and V^H (n, n), else with min(m, n) vectors.
    compute_uv                 False: give s alone.
    lapack_driver              "gesdd" or "gesvd".
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> lamina.scipy.linalg.svd(jnp.diag(jnp.array([3.0, 4.0])), compute_uv=False).tolist()
    [4.0, 3.0]
    """
    (a,) = matrices("svd", a)
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(f"lapack_driver must be 'gesdd' or 'gesvd', got {lapack_driver!r}")
    algorithm = lax.linalg.SvdAlgorithm.QR if lapack_driver == "gesvd" else None
    return lax.linalg.svd(
        a, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm
    )


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Rising eigenvalues and eigenvectors of a Hermitian matrix, one triangle of which is read.

    With a positive definite b those of a v = w b v (type 1), a b v = w v (2), b a v = w v (3).
    eigvals=(low, high) gives those positions, both included.

    a                                              Hermitian matrices, (..., n, n).
    b                                              positive definite matrices, of the same shape.
    lower                                          read the lower triangle, else the upper one.
    eigvals_only                                   give the eigenvalues alone.
    overwrite_a, overwrite_b, turbo, check_finite  accepted for SciPy's programs.

    >>> w, v = lamina.scipy.linalg.eigh(jnp.diag(jnp.array([3.0, 1.0])))
    >>> w.tolist()
    [1.0, 3.0]
    """
    if type not in (1, 2, 3):
        raise ValueError(f"type must be 1, 2 or 3, got {type}")
    return _eigh(a, b, lower, eigvals_only, eigvals, type)


@compiled(static=("lower", "eigvals_only", "subset", "type"))
def _eigh(a: Any, b: Any, lower: bool, eigvals_only: bool, subset: Any, type: int) -> Any:
    index = None if subset is None else (subset[0], subset[1] + 1)
    if b is None:
        (a,) = matrices("eigh", a)
        v, w = lax.linalg.eigh(a, lower=lower, symmetrize_input=False, subset_by_index=index)
        return w if eigvals_only else (w, v)
    a, b = matrices("eigh", a, b)
    keep = tril if lower else triu
    whole = keep(a) + adjoint(keep(a, -1 if lower else 1))
    factor = lax.linalg.cholesky(b if lower else adjoint(b), symmetrize_input=False)
    solve = lax.linalg.triangular_solve
    if type == 1:  # L^-1 A L^-H
        whole = solve(factor, whole, left_side=True, lower=True)
        whole = solve(factor, whole, lower=True, transpose_a=True, conjugate_a=True)
    else:  # L^H A L
        whole = matmul(matmul(adjoint(factor), whole), factor)
    v, w = lax.linalg.eigh(whole, subset_by_index=index)
    if eigvals_only:
        return w
    if type == 3:
        return w, matmul(factor, v)
    back = {"left_side": True, "lower": True, "transpose_a": True, "conjugate_a": True}
    return w, solve(factor, v, **back)


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """T and Z with a = Z T Z^H; with output="complex" T is triangular for real matrices, too.

    a       a square matrix.
    output  "real" or "complex".

    >>> a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> t, z = lamina.scipy.linalg.schur(a)
    >>> bool(jnp.allclose(z @ t @ z.T, a, atol=1e-5))
    True
    """
    if output not in ("real", "complex"):
        raise ValueError(
            f"Expected 'output' to be either 'real' or 'complex', got output='{output}'."
        )
    return _schur(a, output == "complex")


@compiled(static=("as_complex",))
def _schur(a: Any, as_complex: bool) -> tuple[Array, Array]:
    (a,) = matrices("schur", a)
    check_square("schur", a)
    if as_complex:
        a = lax.convert_element_type(a, np.result_type(a.dtype, np.complex64))
    t, z = lax.linalg.schur(a)
    return t, z


@compiled(static=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """A real Schur form, with blocks of size 2, made triangular and complex: each block by a
    rotation, from the last one up.

    T             the real Schur form, (n, n).
    Z             the Schur vectors, (n, n).
    check_finite  accepted for SciPy's programs.

    >>> real = lamina.scipy.linalg.schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> t, z = lamina.scipy.linalg.rsf2csf(*real)
    >>> bool(jnp.abs(t[1, 0]) < 1e-6)
    True
    """
    T, Z = matrices("rsf2csf", T, Z)
    if len(T.shape) != 2 or T.shape != Z.shape or T.shape[0] != T.shape[1]:
        raise ValueError(f"Input arrays must be square and of one size, got {T.shape}, {Z.shape}.")
    n = T.shape[0]
    kind = np.result_type(T.dtype, np.complex64)
    T, Z = (lax.convert_element_type(x, kind) for x in (T, Z))
    for m in range(n - 1, 0, -1):
        block = T[m - 1 : m + 1, m - 1 : m + 1]
        # mu = eigenvalue - T[m, m]; the rotation's columns span it.
        half = (block[0, 0] + block[1, 1]) / 2
        spread = (block[0, 0] - block[1, 1]) / 2
        mu = half + lax.sqrt(spread * spread + block[0, 1] * block[1, 0]) - block[1, 1]
        corner = block[1, 0]
        r = lax.sqrt(lax.square(lax.abs(mu)) + lax.square(lax.abs(corner)))
        nonzero = lax.abs(corner) > 0
        safe = lax.convert_element_type(where(nonzero, r, 1), kind)
        c, s = where(nonzero, mu / safe, 1), where(nonzero, corner / safe, 0)
        turn = lax.reshape(
            lax.concatenate([x.reshape(1) for x in (lax.conj(c), s, -s, c)], 0), (2, 2)
        )
        T = T.at[m - 1 : m + 1].set(turn @ T[m - 1 : m + 1])
        T = T.at[:, m - 1 : m + 1].set(T[:, m - 1 : m + 1] @ adjoint(turn))
        Z = Z.at[:, m - 1 : m + 1].set(Z[:, m - 1 : m + 1] @ adjoint(turn))
        T = T.at[m, m - 1].set(0)
    return T, Z


def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:  # fmt: skip
    """U and P with a = U P, or a = P U for side="left": U with orthonormal columns or rows, P
    Hermitian positive semidefinite. By iteration ("qdwh") or by singular values ("svd"). Leading
    axes are a batch.

    a               matrices, (..., m, n).
    side            "right" or "left".
    method          "qdwh" or "svd".
    eps             when the iteration has converged; by default by the dtype.
    max_iterations  how often it goes on at most.

    >>> u, p = lamina.scipy.linalg.polar(jnp.diag(jnp.array([-2.0, 3.0])))
    >>> u.round(3).tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    if side not in ("right", "left"):
        raise ValueError(f"The argument `side` must be either 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method!r}")
    if len(np.shape(a)) > 2:
        one = functools.partial(_polar, side=side, method=method, eps=eps, limit=max_iterations)
        inner = "n,n" if side == "right" else "m,m"
        return vectorize(one, signature=f"(m,n)->(m,n),({inner})")(a)
    return _polar(a, side=side, method=method, eps=eps, limit=max_iterations)


@compiled(static=("side", "method", "eps", "limit"))
def _polar(a: Any, side: str, method: str, eps: Any, limit: Any) -> tuple[Array, Array]:
    (a,) = matrices("polar", a)
    if len(a.shape) != 2:
        raise ValueError(f"The input `a` must be a 2-D array, got shape {a.shape}")
    if method == "svd":
        u, s, vh = lax.linalg.svd(a, full_matrices=False)
        s = lax.convert_element_type(s, a.dtype)
        unitary = matmul(u, vh)
        if side == "right":
            return unitary, matmul(adjoint(vh) * s, vh)
        return unitary, matmul(u * s, adjoint(u))
    m, n = a.shape
    if (m < n) if side == "right" else (m > n):
        raise NotImplementedError(
            "method='qdwh' only supports matrices of no more columns than rows for side='right', "
            f"no more rows than columns for side='left', got {a.shape} with side='{side}'"
        )
    given = a if side == "right" else adjoint(a)
    u, h, _, _ = lax.linalg.qdwh(given, eps=eps, max_iterations=limit)
    return (u, h) if side == "right" else (adjoint(u), h)


@compiled(static=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Any:  # fmt: skip
    """H with a = Q H Q^H, zero below the diagonal under the main one; with calc_q also Q.

    a                          square matrices, (..., n, n).
    calc_q                     give Q, too.
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> lamina.scipy.linalg.hessenberg(jnp.ones((3, 3))).shape
    (3, 3)
    """
    (a,) = matrices("hessenberg", a)
    check_square("hessenberg", a)
    if not a.size:
        return (a, a) if calc_q else a
    packed, taus = lax.linalg.hessenberg(a)
    h = triu(packed, -1)
    if not calc_q:
        return h
    n = a.shape[-1]
    inner = lax.linalg.householder_product(packed[..., 1:, :-1], taus)
    batch = [(0, 0, 0)] * (len(a.shape) - 2)
    q = lax.pad(inner, lax.full((), 0, a.dtype), [*batch, (1, 0, 0), (1, 0, 0)])
    corner = np.zeros((n, n), a.dtype)
    corner[0, 0] = 1
    return h, q + corner
