"""symmetric_product: alpha A A^T + beta C."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, Zero
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.linalg.matrices import matmul, transposed, tril
from lamina.lax.linalg.rules import batched_in_front, check_matrix


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Array:  # fmt: skip
    """alpha A A^T + beta C. As it is symmetric, only its lower triangle is meant.

    a_matrix           A, floats of shape (..., m, k).
    c_matrix           C, symmetric, of shape (..., m, m) and A's dtype.
    alpha, beta        Python numbers.
    symmetrize_output  copies the lower triangle to the upper one.

    Raises ValueError where shapes or dtypes do not fit.

    >>> a = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> print(lax.linalg.symmetric_product(a, jnp.zeros((2, 2)), symmetrize_output=True))
    [[ 5. 11.]
     [11. 25.]]
    """
    out = symmetric_product_p.bind(a_matrix, c_matrix, alpha=float(alpha), beta=float(beta))
    if symmetrize_output:
        out = lax.add(tril(out), transposed(tril(out, -1)))
    return out


def _abstract_eval(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    check_matrix("symmetric_product", a)
    check_matrix("symmetric_product", c, square=True)
    if c.shape != (*a.shape[:-1], a.shape[-2]) or c.dtype != a.dtype:
        raise ValueError(
            f"symmetric_product expects c of shape {(*a.shape[:-1], a.shape[-2])} and a's dtype, "
            f"got {a.str_long()} and {c.str_long()}"
        )
    return c.strip_weak_type()


def _lowering(ctx: Any, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    of = ctx.aval_out
    n = len(of.shape)
    batch = tuple(range(n - 2))
    product = hlo.dot_general(a, a, batch, batch, (n - 1,), (n - 1,), of.dtype, None)

    def times(x: Any, factor: float) -> Any:
        return hlo.multiply(x, hlo.full(np.array(factor, of.dtype)[()], of.shape, of.dtype))

    out = times(product, alpha) if alpha != 1 else product
    return hlo.add(out, times(c, beta)) if beta else out


def _jvp(primals: Any, tangents: Any, *, alpha: float, beta: float) -> tuple[Any, Any]:
    (a, c), (da, dc) = primals, tangents
    out = symmetric_product_p.bind(a, c, alpha=alpha, beta=beta)
    total = lax.full_like(out, 0)
    if type(da) is not Zero:
        half = lax.mul(matmul(a, transposed(da)), lax.full((), alpha, a.dtype))
        total = lax.add(half, transposed(half))
    if type(dc) is not Zero:
        total = lax.add(total, lax.mul(dc, lax.full((), beta, a.dtype)))
    return out, total


symmetric_product_p: Primitive = Primitive(
    "symmetric_product",
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: symmetric_product_p),
)
