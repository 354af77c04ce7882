"""schur: the triangular form of square matrices; hessenberg, the step before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.core import NOT_LINEAR, Primitive, ShapedArray
from lamina.core.placed import of_batches
from lamina.lax.linalg.rules import batched_in_front, check_matrix, lapack


# ---- user functions ----------------------------------------------------------------------------
def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """T and Z with x = Z T Z^H, Z unitary and T upper triangular; of a real matrix T has blocks of
    size 2 on the diagonal where eigenvalues are complex.

    x                      floats or complex numbers of shape (..., n, n).
    compute_schur_vectors  whether Z is given, too; the result is a tuple in either case.
    sort_eig_vals          False.
    select_callable        what would choose with sort_eig_vals.

    Raises ValueError where matrices are not square; NotImplementedError for sort_eig_vals, as JAX
    does.

    >>> t, z = lax.linalg.schur(jnp.array([[2.0, 1.0], [0.0, 3.0]]))
    >>> print(t)
    [[2. 1.]
     [0. 3.]]
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("schur does not sort eigenvalues")
    return tuple(schur_p.bind(x, compute_schur_vectors=bool(compute_schur_vectors)))


def hessenberg(a: Any) -> tuple[Any, Any]:
    """The Hessenberg form H = Q^H a Q of square matrices: (matrix, taus).

    a  floats or complex numbers of shape (..., n, n).

    The matrix holds H in its upper triangle and the diagonal below it, and under that the vectors
    of the Householder reflectors whose product is Q; taus are their factors. Raises ValueError
    where matrices are not square.

    >>> matrix, taus = lax.linalg.hessenberg(jnp.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]))
    >>> print(abs(matrix[1, 0].round(3)), taus.shape)
    8.062 (2,)
    """
    return tuple(hessenberg_p.bind(a))


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, *, compute_schur_vectors: bool) -> list[ShapedArray]:
    check_matrix("schur", x, square=True)
    return [x.strip_weak_type()] * (1 + compute_schur_vectors)


def _lowering(ctx: Any, x: Any, *, compute_schur_vectors: bool) -> list[Any]:
    return lapack("gees", [x], ctx.avals_out, vectors=compute_schur_vectors)


schur_p: Primitive = Primitive(
    "schur",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: schur_p),
    placed=of_batches(2),
)


def _hessenberg_abstract_eval(a: ShapedArray) -> list[ShapedArray]:
    check_matrix("hessenberg", a, square=True)
    if a.shape[-1] == 0:
        raise TypeError(f"hessenberg requires matrices of a row or more, got {a.str_long()}")
    return [a.strip_weak_type(), ShapedArray((*a.shape[:-2], a.shape[-1] - 1), a.dtype)]


hessenberg_p: Primitive = Primitive(
    "hessenberg",
    multiple_results=True,
    abstract_eval=_hessenberg_abstract_eval,
    lowering=lambda ctx, a: lapack("gehrd", [a], ctx.avals_out),
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: hessenberg_p),
    placed=of_batches(2),
)
