"""eig: eigenvalues and eigenvectors of any square matrices."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray
from lamina.core.placed import of_batches
from lamina.lax.linalg.matrices import adjoint, column, diagonal, eye_like, matmul, row
from lamina.lax.linalg.rules import batched_in_front, check_matrix, complex_dtype, lapack
from lamina.lax.linalg.systems import solve


class EigImplementation(enum.Enum):
    """How eigenvalues are computed. On a CPU always by LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


# ---- user function -----------------------------------------------------------------------------
def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Complex eigenvalues of square matrices, then left and right eigenvectors as asked, in columns
    of length 1: a list. By LAPACK's geev.

    x                            floats or complex numbers of shape (..., n, n).
    compute_left_eigenvectors    whether vectors u with u^H x = w u^H are given.
    compute_right_eigenvectors   whether vectors v with x v = w v are given.
    enable_eigvec_derivs         lets right eigenvectors be differentiated, with the phase that
                                 LAPACK gives them; eigenvalues always can be.
    implementation, use_magma    taken for JAX's sake; without effect.

    Raises ValueError where matrices are not square.

    >>> w, v = lax.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
    >>> print(w.real.round(3), jnp.sort(w.imag))
    [0. 0.] [-1.  1.]
    """
    return list(
        eig_p.bind(
            x,
            left=bool(compute_left_eigenvectors),
            right=bool(compute_right_eigenvectors),
            enable_eigvec_derivs=bool(enable_eigvec_derivs),
        )
    )


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, *, left: bool, right: bool, enable_eigvec_derivs: bool
                   ) -> list[ShapedArray]:  # fmt: skip
    check_matrix("eig", x, square=True)
    values = ShapedArray(x.shape[:-1], complex_dtype(x))
    return [values, *[ShapedArray(x.shape, values.dtype)] * (left + right)]


def _lowering(ctx: Any, x: Any, *, left: bool, right: bool, enable_eigvec_derivs: bool) -> Any:
    return lapack("geev", [x], ctx.avals_out, left=left, right=right)


def _jvp(primals: Any, tangents: Any, *, left: bool, right: bool, enable_eigvec_derivs: bool
         ) -> tuple[Any, Any]:  # fmt: skip
    # Giles (2008), 3.1, with V^-1 where eigh has V^H.
    (a,), (da,) = primals, tangents
    if (left or right) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "The derivatives of non-symmetric eigenvectors are not supported by default: only "
            "eigenvalues are differentiated. Pass enable_eigvec_derivs=True for those of right "
            "eigenvectors, or compute no eigenvectors."
        )
    if left:
        raise NotImplementedError("The derivatives of left eigenvectors are not supported.")
    params = {"left": left, "right": True, "enable_eigvec_derivs": enable_eigvec_derivs}
    w, v = eig_p.bind(a, **params)
    moved = matmul(lax.convert_element_type(da, v.dtype), v)
    inner = solve(v, moved)
    dw = diagonal(inner)
    if not right:
        return [w], [dw]
    one = eye_like(inner)
    gaps = lax.add(one, lax.sub(row(w), column(w)))
    weights = lax.sub(lax.div(lax.full((), 1, v.dtype), gaps), one)
    dv = matmul(v, lax.mul(weights, inner))
    # LAPACK's vectors have length 1 and a real greatest element: both stay so.
    along = lax.real(diagonal(matmul(adjoint(v), dv)))
    greatest = lax.argmax(lax.abs(v), len(v.shape) - 2, np.int32)
    places = lax.broadcasted_iota(np.int32, v.shape, len(v.shape) - 2)
    chosen = lax.eq(places, row(greatest))
    turn, size = (
        lax.reduce_sum(lax.select(chosen, part, lax.full_like(part, 0)), (len(v.shape) - 2,))
        for part in (lax.imag(dv), lax.real(v))
    )
    change = row(lax.complex(along, lax.div(turn, size)))
    return [w, v], [dw, lax.sub(dv, lax.mul(v, change))]


eig_p: Primitive = Primitive(
    "eig",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=batched_in_front(lambda: eig_p),
    placed=of_batches(2),
)
