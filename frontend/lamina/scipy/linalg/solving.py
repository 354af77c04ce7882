"""Systems of linear equations: solve solve_triangular lu_solve cho_solve inv det solve_sylvester."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lamina import lax
from lamina.lax.linalg import systems
from lamina.lax.linalg.matrices import adjoint, column, matmul, row, transposed
from lamina.numpy._eager import compiled
from lamina.numpy.functional import vectorize
from lamina.numpy.linalg import determinants
from lamina.numpy.linalg import solving as numpy_solving
from lamina.numpy.linalg.arguments import check_square, matrices
from lamina.numpy.promotion import Array, ArrayLike
from lamina.scipy.linalg.decompositions import cholesky, schur

_TRANSPOSES = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant.

    a                          square matrices, (..., n, n).
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> float(lamina.scipy.linalg.det(2 * jnp.eye(2)))
    4.0
    """
    return determinants.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse.

    a                          square matrices, (..., n, n).
    overwrite_a, check_finite  accepted for SciPy's programs.

    >>> lamina.scipy.linalg.inv(2 * jnp.eye(2)).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    return numpy_solving.inv(a)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The x with a x = b; with assume_a="pos" by Cholesky factors of one triangle of a.

    a                                              square matrices, (..., n, n).
    b                                              right-hand sides, (n,) or (..., n, k).
    lower                                          with assume_a="pos": read the lower triangle.
    assume_a                                       "gen" or "pos".
    overwrite_a, overwrite_b, debug, check_finite  accepted for SciPy's programs.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> lamina.scipy.linalg.solve(a, jnp.array([6.0, 5.0])).round(3).tolist()
    [1.0, 1.0]
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got '{assume_a}'"
        )
    return _solve(a, b, bool(lower)) if assume_a == "pos" else numpy_solving.solve(a, b)


@compiled(static=("lower",))
def _solve(a: Any, b: Any, lower: bool) -> Array:
    a, b = matrices("solve", a, b)

    def by_cholesky(a: Array, b: Array) -> Array:
        factor = cholesky(lax.stop_gradient(a), lower=lower)
        return lax.custom_linear_solve(
            lambda x: matmul(a, x), b, lambda _, y: _cho_solve(factor, lower, y),
            symmetric=not lax.linalg.matrices.is_complex(a),
            transpose_solve=lambda _, y: lax.linalg.matrices.conj(
                _cho_solve(factor, lower, lax.linalg.matrices.conj(y))),
        )  # fmt: skip

    return numpy_solving.solve_with("solve", by_cholesky, a, b)


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:  # fmt: skip
    """The x with a x = b, from cho_factor(a).

    c_and_lower                what cho_factor gives.
    b                          right-hand sides, (n,) or (..., n, k).
    overwrite_b, check_finite  accepted for SciPy's programs.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> factor = lamina.scipy.linalg.cho_factor(a)
    >>> lamina.scipy.linalg.cho_solve(factor, jnp.array([6.0, 5.0])).round(3).tolist()
    [1.0, 1.0]
    """
    c, lower = c_and_lower
    c, b = matrices("cho_solve", c, b)
    return numpy_solving.solve_with("cho_solve", lambda c, b: _cho_solve(c, bool(lower), b), c, b)


def _cho_solve(factor: Array, lower: bool, b: Array) -> Array:
    solve = lax.linalg.triangular_solve
    first = {"transpose_a": not lower, "conjugate_a": not lower}
    second = {"transpose_a": lower, "conjugate_a": lower}
    x = solve(factor, b, left_side=True, lower=lower, **first)
    return solve(factor, x, left_side=True, lower=lower, **second)


def lu_solve(lu_and_piv: tuple[Array, ArrayLike], b: ArrayLike, trans: int = 0,
             overwrite_b: bool = False, check_finite: bool = True) -> Array:  # fmt: skip
    """The x with a x = b, from lu_factor(a); with trans 1 or 2 for a's transpose or adjoint.

    lu_and_piv                 what lu_factor gives.
    b                          right-hand sides, (n,) or (..., n, k).
    trans                      0, 1 or 2.
    overwrite_b, check_finite  accepted for SciPy's programs.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> factors = lamina.scipy.linalg.lu_factor(a)
    >>> lamina.scipy.linalg.lu_solve(factors, jnp.array([6.0, 5.0])).round(3).tolist()
    [1.0, 1.0]
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    factors, pivots = lu_and_piv
    return _lu_solve(factors, pivots, b, trans)


@compiled(static=("trans",))
def _lu_solve(factors: Any, pivots: Any, b: Any, trans: int) -> Array:
    factors, b = matrices("lu_solve", factors, b)
    order = lax.linalg.lu_pivots_to_permutation(pivots, factors.shape[-2])

    def by_factors(factors: Array, b: Array) -> Array:
        rows = lax.broadcast_in_dim(
            order, factors.shape[:-1], range(len(factors.shape) - 1 - order.ndim,
                                             len(factors.shape) - 1))  # fmt: skip
        return systems.lu_solve(factors, rows, b, trans)

    return numpy_solving.solve_with("lu_solve", by_factors, factors, b)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The x with op(a) x = b, of a's lower or upper triangle; op as trans says: 0 or "N" nothing,
    1 or "T" transposes, 2 or "C" transposes and conjugates.

    a                                 square matrices, (..., n, n).
    b                                 right-hand sides, (n,) or (..., n, k).
    lower                             a is lower triangular, else upper.
    unit_diagonal                     take the diagonal for ones.
    overwrite_b, debug, check_finite  accepted for SciPy's programs.

    >>> a = jnp.array([[2.0, 1.0], [0.0, 4.0]])
    >>> lamina.scipy.linalg.solve_triangular(a, jnp.array([3.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    if trans not in _TRANSPOSES:
        raise ValueError(f"Invalid 'trans' value {trans}")
    return _solve_triangular(a, b, _TRANSPOSES[trans], bool(lower), bool(unit_diagonal))


@compiled(static=("trans", "lower", "unit_diagonal"))
def _solve_triangular(a: Any, b: Any, trans: int, lower: bool, unit_diagonal: bool) -> Array:
    a, b = matrices("solve_triangular", a, b)
    options = {
        "left_side": True, "lower": lower, "transpose_a": trans > 0, "conjugate_a": trans == 2,
        "unit_diagonal": unit_diagonal,
    }  # fmt: skip
    return numpy_solving.solve_with(
        "solve_triangular", lambda a, b: lax.linalg.triangular_solve(a, b, **options), a, b
    )


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur",
                    tol: float = 1e-8) -> Array:  # fmt: skip
    """The X with A X + X B = C, by Schur forms (Bartels & Stewart 1972) or by eigenvectors
    ("eigen"); NaN where an eigenvalue of A nearly (tol) is one of -B. Leading axes are a batch.

    A       (..., m, m)
    B       (..., n, n)
    C       (..., m, n)
    method  "schur" or "eigen".

    >>> one = jnp.eye(2)
    >>> lamina.scipy.linalg.solve_sylvester(one, one, 2 * jnp.ones((2, 2))).round(3).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"Unrecognized method {method}. The two valid methods are either \"schur\""
                         " or \"eigen\".")  # fmt: skip
    one = functools.partial(_solve_sylvester, method=method, tol=tol)
    if max(len(np.shape(x)) for x in (A, B, C)) > 2:
        return vectorize(one, signature="(m,m),(n,n),(m,n)->(m,n)")(A, B, C)
    return one(A, B, C)


@compiled(static=("method", "tol"))
def _solve_sylvester(a: Any, b: Any, c: Any, method: str, tol: float) -> Array:
    a, b, c = matrices("solve_sylvester", a, b, c)
    check_square("solve_sylvester", a)
    check_square("solve_sylvester", b)
    m, n = a.shape[-1], b.shape[-1]
    if c.shape != (m, n):
        raise ValueError(f"solve_sylvester: C must have shape {(m, n)}, got {c.shape}")
    kind = c.dtype
    if method == "eigen":
        wa, va = lax.linalg.eig(a, compute_left_eigenvectors=False)
        wb, vb = lax.linalg.eig(b, compute_left_eigenvectors=False)
        inner = systems.solve(va, matmul(lax.convert_element_type(c, va.dtype), vb))
        x = matmul(va, inner / (column(wa) + row(wb)))
        x = transposed(systems.solve(transposed(vb), transposed(x)))
        nearest = lax.abs(column(wa) + row(wb)).min()
    else:
        ta, ua = schur(a, output="complex")
        tb, ub = schur(b, output="complex")
        right = matmul(matmul(adjoint(ua), lax.convert_element_type(c, ua.dtype)), ub)

        # Column k: (Ta + tb[k, k] I) y_k = f_k - Y[:, :k] tb[:k, k].
        def step(k: Any, y: Array) -> Array:
            known = y @ tb[:, k]  # later columns of y are still zero
            shifted = ta + tb[k, k] * np.eye(m, dtype=ta.dtype)
            found = lax.linalg.triangular_solve(
                shifted, (right[:, k] - known)[:, None], left_side=True, lower=False
            )
            return y.at[:, k].set(found[:, 0])

        y = lax.fori_loop(0, n, step, lax.full((m, n), 0, ta.dtype))
        x = matmul(matmul(ua, y), adjoint(ub))
        diagonal = lax.linalg.matrices.diagonal
        nearest = lax.abs(column(diagonal(ta)) + row(diagonal(tb))).min()
    x = x if np.dtype(kind).kind == "c" else lax.real(x)
    return lax.select(nearest < tol, lax.full_like(x, np.nan), x)
