"""tridiagonal_solve: systems of linear equations with a tridiagonal matrix."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.core import Primitive, ShapedArray, Zero
from lamina.core.array_class import Array
from lamina.lax.checks import check_same_dtypes
from lamina.lax.linalg.matrices import column
from lamina.lax.linalg.rules import batched_in_front, check_matrix, lapack


# ---- user function -----------------------------------------------------------------------------
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Array:
    """The x with T x = b for tridiagonal matrices T.

    dl                below the diagonal, of shape (..., n); dl[0] is not read.
    d                 the diagonal, of shape (..., n).
    du                above it, of shape (..., n); du[n - 1] is not read.
    b                 of shape (..., n, k): right-hand sides in columns.
    perturb_singular  False.

    Raises TypeError where sizes differ; NotImplementedError for perturb_singular, which CPUs do not
    have.

    >>> ones, twos = jnp.ones(3), jnp.full(3, 2.0)
    >>> print(lax.linalg.tridiagonal_solve(ones, twos, ones, jnp.ones((3, 1)))[:, 0])
    [0.5 0.  0.5]
    """
    if perturb_singular:
        raise NotImplementedError("tridiagonal_solve does not perturb singular systems")
    return tridiagonal_solve_p.bind(dl, d, du, b)


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray
                   ) -> ShapedArray:  # fmt: skip
    check_matrix("tridiagonal_solve", b)
    check_same_dtypes("tridiagonal_solve", (dl, d, du, b))
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise TypeError(
            "tridiagonal_solve requires that all diagonals and the right-hand side have equal "
            f"sizes, got {dl.shape}, {d.shape}, {du.shape} and {b.shape}"
        )
    return b.strip_weak_type()


def _shifted(x: Any, by: int) -> Any:
    """x moved along its last axis by 1 or -1, with a zero where nothing comes from."""
    config = [*[(0, 0, 0)] * (len(x.shape) - 1), (by, -by, 0)]
    return lax.pad(x, lax.full((), 0, x.dtype), config)


def _rows_shifted(x: Any, by: int) -> Any:
    config = [*[(0, 0, 0)] * (len(x.shape) - 2), (by, -by, 0), (0, 0, 0)]
    return lax.pad(x, lax.full((), 0, x.dtype), config)


def _jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (dl, d, du, _), (*diagonals, db) = primals, tangents
    x = tridiagonal_solve_p.bind(*primals)
    shifts = (_rows_shifted(x, 1), x, _rows_shifted(x, -1))
    moved = [
        lax.neg(lax.mul(column(t), shifted))
        for t, shifted in zip(diagonals, shifts)
        if type(t) is not Zero
    ]
    parts = moved if type(db) is Zero else [*moved, db]
    total = parts[0]
    for part in parts[1:]:
        total = lax.add(total, part)
    return x, tridiagonal_solve_p.bind(dl, d, du, total)


def _transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any) -> list[Any]:
    turned = tridiagonal_solve_p.bind(_shifted(du, 1), d, _shifted(dl, -1), ct)
    return [None, None, None, turned]


tridiagonal_solve_p: Primitive = Primitive(
    "tridiagonal_solve",
    abstract_eval=_abstract_eval,
    lowering=lambda ctx, *operands: lapack("gtsv", operands, ctx.avals_out)[0],
    jvp=_jvp,
    transpose=_transpose,
    batching=batched_in_front(lambda: tridiagonal_solve_p),
)
