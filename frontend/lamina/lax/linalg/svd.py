"""svd: singular values and vectors."""

from __future__ import annotations

import enum
from typing import Any

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray
from lamina.core.placed import of_batches
from lamina.lax import hlo
from lamina.lax.linalg.matrices import adjoint, column, diagonal, eye_like, matmul, real, row
from lamina.lax.linalg.rules import batched_in_front, check_matrix, identity, lapack, real_dtype


class SvdAlgorithm(enum.Enum):
    """How singular values are computed. The default is divide and conquer."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# ---- user function -----------------------------------------------------------------------------
def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """U, s, V^H with x = U diag(s) V^H, s falling; without compute_uv s alone.

    x                floats or complex numbers of shape (..., m, n).
    full_matrices    U is m x m and V^H n x n; otherwise m x k and k x n, where k = min(m, n).
    compute_uv       whether U and V^H are given.
    subset_by_index  gives only the singular values (and vectors) from the first position up to the
                     second; not with full_matrices.
    algorithm        SvdAlgorithm.QR or DIVIDE_AND_CONQUER, the default.

    Raises ValueError for fewer than two dimensions and for a subset with full_matrices;
    NotImplementedError for other algorithms, which CPUs do not have.

    >>> print(lax.linalg.svd(jnp.array([[0.0, 3.0], [-4.0, 0.0]]), compute_uv=False))
    [4. 3.]
    """
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError(f"The SVD algorithm {algorithm} is not there on a CPU.")
    chosen = SvdAlgorithm.QR if algorithm is SvdAlgorithm.QR else None
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("full_matrices and subset_by_index cannot both be set")
    s, *vectors = svd_p.bind(
        x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), algorithm=chosen
    )
    low, high = subset_by_index or (0, s.shape[-1])
    if (low, high) != (0, s.shape[-1]):
        s = lax.slice_in_dim(s, low, high, axis=-1)
        if vectors:
            u, vt = vectors
            vectors = [
                lax.slice_in_dim(u, low, high, axis=-1),
                lax.slice_in_dim(vt, low, high, axis=-2),
            ]
    return (vectors[0], s, vectors[1]) if vectors else s


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, *, full_matrices: bool, compute_uv: bool, **_: Any
                   ) -> list[ShapedArray]:  # fmt: skip
    check_matrix("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    s = ShapedArray((*batch, k), real_dtype(x))
    if not compute_uv:
        return [s]
    columns, rows = (m, n) if full_matrices else (k, k)
    return [
        s,
        ShapedArray((*batch, m, columns), x.dtype),
        ShapedArray((*batch, rows, n), x.dtype),
    ]


def _lowering(ctx: Any, x: Any, *, full_matrices: bool, compute_uv: bool,
              algorithm: SvdAlgorithm | None) -> list[Any]:  # fmt: skip
    if 0 in ctx.avals_in[0].shape:
        s, *vectors = ctx.avals_out
        return [hlo.full(0, s.shape, s.dtype), *map(identity, vectors)]
    routine = "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd"
    return lapack(routine, [x], ctx.avals_out, full=full_matrices, vectors=compute_uv)


def _jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool,
         algorithm: Any) -> tuple[Any, Any]:  # fmt: skip
    # Townsend, "Differentiating the singular value decomposition" (2016). For complex matrices a
    # phase of each pair of vectors is free: all of its change is given to U.
    (a,), (da,) = primals, tangents
    *_, m, n = a.shape
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices"
        )
    s, u, vt = svd_p.bind(a, full_matrices=False, compute_uv=True, algorithm=algorithm)
    uh, v = adjoint(u), adjoint(vt)
    inner = matmul(matmul(uh, da), v)
    ds = real(diagonal(inner))
    if not compute_uv:
        return [s], [ds]
    left, right = (lax.convert_element_type(f(s), a.dtype) for f in (column, row))
    one = eye_like(inner)
    gaps = lax.mul(lax.add(right, left), lax.sub(right, left))
    weights = lax.sub(lax.div(_one(a), lax.add(gaps, one)), one)
    zeros = lax.convert_element_type(lax.eq(left, _zero(a)), a.dtype)
    inverse = lax.sub(lax.div(_one(a), lax.add(left, zeros)), zeros)
    skew = lax.mul(lax.sub(inner, adjoint(inner)), lax.div(_one(a), lax.full((), 2, a.dtype)))
    scaled, scaled_left = lax.mul(inner, right), lax.mul(left, inner)
    turn_u = lax.mul(weights, lax.add(scaled, adjoint(scaled)))
    turn_u = lax.add(turn_u, lax.mul(lax.mul(skew, one), inverse))
    turn_v = lax.mul(weights, lax.add(scaled_left, adjoint(scaled_left)))
    du, dv = matmul(u, turn_u), matmul(v, turn_v)
    if m > n:
        moved = matmul(da, v)
        outside = lax.sub(moved, matmul(u, matmul(uh, moved)))
        du = lax.add(du, lax.div(outside, right))
    if n > m:
        moved = matmul(adjoint(da), u)
        outside = lax.sub(moved, matmul(v, matmul(vt, moved)))
        dv = lax.add(dv, lax.div(outside, right))
    return [s, u, vt], [ds, du, adjoint(dv)]


def _one(x: Any) -> Any:
    return lax.full((), 1, x.dtype)


def _zero(x: Any) -> Any:
    return lax.full((), 0, x.dtype)


svd_p: Primitive = Primitive(
    "svd",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: svd_p),
    placed=of_batches(2),
)
