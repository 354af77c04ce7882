"""QR factors: qr, and the Householder reflectors that it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, Zero, get_aval
from lamina.core.array_class import Array
from lamina.core.placed import of_batches
from lamina.lax import hlo
from lamina.lax.linalg.matrices import adjoint, eye_like, is_complex, matmul, tril
from lamina.lax.linalg.rules import batched_in_front, check_matrix, identity, lapack

_INT = np.dtype(np.int32)


# ---- user functions ----------------------------------------------------------------------------
def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
       ) -> tuple[Any, ...]:  # fmt: skip
    """Q and R with x = Q R, Q unitary and R upper triangular.

    x              floats or complex numbers of shape (..., m, n).
    pivoting       R has a falling diagonal; a third result says in which order the columns are:
                   x[:, order] = Q R.
    full_matrices  Q is m x m and R m x n; otherwise m x k and k x n, where k = min(m, n).
    use_magma      taken for JAX's sake; without effect.

    Raises ValueError for fewer than two dimensions.

    >>> q, r = lax.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> print(abs(r.round(3)))
    [[5.  2.2]
     [0.  0.4]]
    """
    return tuple(qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices)))


def geqrf(a: Any) -> tuple[Any, Any]:
    """The QR decomposition by Householder reflectors, as LAPACK's geqrf gives it: (matrix, taus).

    a  floats or complex numbers of shape (..., m, n).

    The upper triangle of the matrix is R, below it are the vectors of the reflectors whose product
    is Q (householder_product makes it), and taus are their factors. Raises ValueError for fewer
    than two dimensions.

    >>> matrix, taus = lax.linalg.geqrf(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> print(abs(jnp.triu(matrix).round(3)), taus.shape)
    [[5.  2.2]
     [0.  0.4]] (2,)
    """
    return tuple(geqrf_p.bind(a))


def geqp3(a: Any, jpvt: Any, *, use_magma: bool | None = None) -> tuple[Any, Any, Any]:
    """geqrf of the columns in an order found on the way, so that R's diagonal falls: (matrix,
    order, taus).

    a          floats or complex numbers of shape (..., m, n).
    jpvt       int32 of shape (..., n): columns where it is not 0 come first.
    use_magma  taken for JAX's sake; without effect.

    The order is counted from 1. Raises ValueError for fewer than two dimensions.

    >>> _, order, _ = lax.linalg.geqp3(jnp.array([[1.0, 5.0], [2.0, 6.0]]), jnp.zeros(2, 'int32'))
    >>> print(order)
    [2 1]
    """
    return tuple(geqp3_p.bind(a, jpvt))


def householder_product(a: Any, taus: Any) -> Array:
    """The first columns of the product of Householder reflectors I - tau v v^H, as geqrf gives
    them.

    a     of shape (..., m, n), m >= n: the vectors v are its columns below the diagonal, with an
          implied 1 on it.
    taus  their factors, of shape (..., k), k <= n.

    Raises ValueError for other shapes.

    >>> x = jnp.array([[3.0, 1.0], [4.0, 2.0]])
    >>> q = lax.linalg.householder_product(*lax.linalg.geqrf(x))
    >>> print(jnp.allclose(q @ q.T, jnp.eye(2), atol=1e-6))
    True
    """
    return householder_product_p.bind(a, taus)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """The product of the Householder reflectors that geqrf gives with matrices, without making Q.

    a          the reflectors' vectors, as of householder_product.
    taus       their factors.
    c          the matrices, of shape (..., m, n).
    left       Q c; otherwise c Q.
    transpose  with the adjoint of Q in its place.

    Raises ValueError where sizes do not fit.

    >>> x = jnp.array([[3.0, 1.0], [4.0, 2.0]])
    >>> r = lax.linalg.ormqr(*lax.linalg.geqrf(x), x, transpose=True)
    >>> print(abs(r.round(3)))
    [[5.  2.2]
     [0.  0.4]]
    """
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
    if full_matrices and m > n:
        raise NotImplementedError(
            "Unimplemented case of QR decomposition derivative: of a matrix with more rows than columns "
            "and full_matrices=True"
        )
    q, r, *order = qr_p.bind(x, pivoting=pivoting, full_matrices=False)
    if pivoting:
        index = lax.broadcast_in_dim(
            order[0], x.shape, (*range(len(x.shape) - 2), len(x.shape) - 1)
        )
        dx = lax.take_along_axis(dx, index, len(x.shape) - 1, mode="promise_in_bounds")
    # Of a wide matrix q and the first columns of r are those of its first columns; the others are q^H x.
    first, others = (r[..., :m], r[..., m:]) if m < n else (r, None)
    scaled = lax.linalg.triangular_solve(first, dx[..., :m] if m < n else dx, left_side=False, lower=False)
    inner = matmul(adjoint(q), scaled)
    below = tril(inner, -1)
    turned = lax.sub(below, adjoint(below))  # q^H dq, which is skew
    if is_complex(x):
        imaginary = lax.sub(inner, lax.convert_element_type(lax.real(inner), x.dtype))
        turned = lax.add(turned, lax.mul(eye_like(inner), imaginary))
    dq = lax.add(matmul(q, lax.sub(turned, inner)), scaled)
    dr = matmul(lax.sub(inner, turned), first)
    if others is not None:
        of_others = lax.sub(matmul(adjoint(q), dx[..., m:]), matmul(turned, others))
        dr = lax.concatenate([dr, of_others], len(x.shape) - 1)
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
    placed=of_batches(2),
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
    placed=of_batches(2),
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
    placed=of_batches(2, 1),
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
    placed=of_batches(2, 1),
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
    placed=of_batches(2, 1, 2),
)
