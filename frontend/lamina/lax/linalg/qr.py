"""QR factors: qr, and the Householder reflectors that it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, Zero, get_aval
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.linalg.matrices import adjoint, eye_like, is_complex, matmul, tril
from lamina.lax.linalg.rules import batched_in_front, check_matrix, identity, lapack

_INT = np.dtype(np.int32)


# ---- user functions ----------------------------------------------------------------------------
def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
       ) -> tuple[Any, ...]:  # fmt: skip
    """Q and R with x = Q R, Q unitary and R upper triangular.

    full_matrices  Q is m x m and R m x n; otherwise m x k and k x n, where k = min(m, n).
    pivoting       R has a falling diagonal; a third result says in which order the columns are:
                   x[:, order] = Q R.
    use_magma is taken for JAX's sake and changes nothing.
    """
    return tuple(qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices)))


def geqrf(a: Any) -> tuple[Any, Any]:
    """R in the upper triangle, below it the vectors of the Householder reflectors whose product is
    Q, and their factors."""
    return tuple(geqrf_p.bind(a))


def geqp3(a: Any, jpvt: Any, *, use_magma: bool | None = None) -> tuple[Any, Any, Any]:
    """As geqrf of the columns in an order found on the way, which is the second result, counted
    from 1. Columns where jpvt is not 0 come first."""
    return tuple(geqp3_p.bind(a, jpvt))


def householder_product(a: Any, taus: Any) -> Array:
    """The first columns of the product of Householder reflectors I - tau v v^H, whose vectors v are
    the columns of a below the diagonal, with an implied 1 on it."""
    return householder_product_p.bind(a, taus)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """The product of the Householder reflectors with c, or with transpose its adjoint with c, or
    (left=False) c with it."""
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))


# ---- qr ----------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, *, pivoting: bool, full_matrices: bool) -> list[ShapedArray]:
    check_matrix("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    out = [ShapedArray((*batch, m, k), x.dtype), ShapedArray((*batch, k, n), x.dtype)]
    return [*out, ShapedArray((*batch, n), _INT)] if pivoting else out


def _lowering(ctx: Any, x: Any, *, pivoting: bool, full_matrices: bool) -> list[Any]:
    (of,), (q_type, r_type, *_) = ctx.avals_in, ctx.avals_out
    *batch, m, n = of.shape
    k = min(m, n)
    order: list[Any] = []
    if 0 in of.shape:
        r = hlo.full(0, r_type.shape, of.dtype)
        if pivoting:
            order = [hlo.iota((*batch, n), _INT, len(batch))]
        return [identity(q_type), r, *order]
    taus_type = ShapedArray((*batch, k), of.dtype)
    if pivoting:
        free = hlo.full(0, (*batch, n), _INT)
        results = [of, ShapedArray((*batch, n), _INT), taus_type]
        packed, counted, taus = lapack("geqp3", [x, free], results)
        order = [hlo.subtract(counted, hlo.full(1, (*batch, n), _INT))]
    else:
        packed, taus = lapack("geqrf", [x], [of, taus_type])
    columns = q_type.shape[-1]
    start, ones = [0] * len(of.shape), [1] * len(of.shape)
    vectors = packed if n <= columns else hlo.slice(packed, start, [*batch, m, columns], ones)
    if n < columns:
        rest = [0] * len(batch)
        zero = hlo.full(0, (), of.dtype)
        vectors = hlo.pad(packed, zero, [0] * len(of.shape), [*rest, 0, columns - n],
                          [0] * len(of.shape))  # fmt: skip
    (q,) = lapack("orgqr", [vectors, taus], [q_type])
    rows = r_type.shape[-2]
    top = packed if rows == m else hlo.slice(packed, start, [*batch, rows, n], ones)
    across, down = (hlo.iota(r_type.shape, _INT, len(batch) + i) for i in (1, 0))
    upper = hlo.compare(across, down, "GE")
    return [q, hlo.select(upper, top, hlo.full(0, r_type.shape, of.dtype)), *order]


def _jvp(primals: Any, tangents: Any, *, pivoting: bool, full_matrices: bool) -> tuple[Any, Any]:
    # Walter & Lehmann, "Algorithmic differentiation of linear algebra functions" (2012).
    (x,), (dx,) = primals, tangents
    *_, m, n = x.shape
    if m < n or (full_matrices and m != n):
        raise NotImplementedError(
            "Unimplemented case of QR decomposition derivative: of a matrix with more columns than "
            "rows, or of one that is not square with full_matrices=True"
        )
    q, r, *order = qr_p.bind(x, pivoting=pivoting, full_matrices=False)
    if pivoting:
        index = lax.broadcast_in_dim(
            order[0], x.shape, (*range(len(x.shape) - 2), len(x.shape) - 1)
        )
        dx = lax.take_along_axis(dx, index, len(x.shape) - 1, mode="promise_in_bounds")
    scaled = lax.linalg.triangular_solve(r, dx, left_side=False, lower=False)
    inner = matmul(adjoint(q), scaled)
    below = tril(inner, -1)
    turned = lax.sub(below, adjoint(below))  # q^H dq, which is skew
    if is_complex(x):
        imaginary = lax.sub(inner, lax.convert_element_type(lax.real(inner), x.dtype))
        turned = lax.add(turned, lax.mul(eye_like(inner), imaginary))
    dq = lax.add(matmul(q, lax.sub(turned, inner)), scaled)
    dr = matmul(lax.sub(inner, turned), r)
    zeros = [Zero(get_aval(p).to_tangent_aval()) for p in order]
    return [q, r, *order], [dq, dr, *zeros]


qr_p: Primitive = Primitive(
    "qr",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: qr_p),
)


# ---- reflectors --------------------------------------------------------------------------------
def _geqrf_abstract_eval(a: ShapedArray) -> list[ShapedArray]:
    check_matrix("geqrf", a)
    *batch, m, n = a.shape
    return [a.strip_weak_type(), ShapedArray((*batch, min(m, n)), a.dtype)]


geqrf_p: Primitive = Primitive(
    "geqrf",
    multiple_results=True,
    abstract_eval=_geqrf_abstract_eval,
    lowering=lambda ctx, a: lapack("geqrf", [a], ctx.avals_out),
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: geqrf_p),
)


def _geqp3_abstract_eval(a: ShapedArray, jpvt: ShapedArray) -> list[ShapedArray]:
    check_matrix("geqp3", a)
    *batch, m, n = a.shape
    if jpvt.shape != (*batch, n) or jpvt.dtype != _INT:
        raise ValueError(f"geqp3 requires int32 jpvt of shape {(*batch, n)}, got {jpvt.str_long()}")
    taus = ShapedArray((*batch, min(m, n)), a.dtype)
    return [a.strip_weak_type(), jpvt.strip_weak_type(), taus]


geqp3_p: Primitive = Primitive(
    "geqp3",
    multiple_results=True,
    abstract_eval=_geqp3_abstract_eval,
    lowering=lambda ctx, a, jpvt: lapack("geqp3", [a, jpvt], ctx.avals_out),
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: geqp3_p),
)


def _product_abstract_eval(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    check_matrix("householder_product", a)
    *batch, m, n = a.shape
    fits = taus.shape[:-1] == tuple(batch) and taus.shape[-1:] <= (min(m, n),)
    if m < n or not fits or taus.dtype != a.dtype:
        raise ValueError(
            "householder_product requires matrices of no more columns than rows, and no more taus "
            f"than columns, got {a.str_long()} and {taus.str_long()}"
        )
    return a.strip_weak_type()


def _product_lowering(ctx: Any, a: Any, taus: Any) -> Any:
    if 0 in ctx.avals_in[1].shape:
        return identity(ctx.aval_out)
    return lapack("orgqr", [a, taus], ctx.avals_out)[0]


householder_product_p: Primitive = Primitive(
    "householder_product",
    abstract_eval=_product_abstract_eval,
    lowering=_product_lowering,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: householder_product_p),
)


def _ormqr_abstract_eval(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool,
                         transpose: bool) -> ShapedArray:  # fmt: skip
    check_matrix("ormqr", a)
    check_matrix("ormqr", c)
    *batch, rows, k = a.shape
    if taus.shape != (*batch, k) or c.shape[:-2] != tuple(batch):
        raise ValueError(
            f"ormqr requires as many taus as columns and equal leading axes, got {a.str_long()}, "
            f"{taus.str_long()} and {c.str_long()}"
        )
    if c.shape[-2 if left else -1] != rows:
        raise ValueError(
            f"ormqr cannot multiply {c.str_long()} by a product of reflectors of size {rows}"
        )
    return c.strip_weak_type()


def _ormqr_lowering(ctx: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    if 0 in ctx.avals_in[1].shape:
        return c
    return lapack("ormqr", [a, taus, c], ctx.avals_out, left=left, transpose=transpose)[0]


ormqr_p: Primitive = Primitive(
    "ormqr",
    abstract_eval=_ormqr_abstract_eval,
    lowering=_ormqr_lowering,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: ormqr_p),
)
