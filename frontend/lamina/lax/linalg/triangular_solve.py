"""triangular_solve: systems of linear equations with a triangular matrix."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.core import Primitive, ShapedArray, Zero, dtypes
from lamina.core.array_class import Array
from lamina.core.placed import of_batches
from lamina.lax import hlo
from lamina.lax.batching_rules import all_at_front, at_front, move_axis
from lamina.lax.checks import check_same_dtypes
from lamina.lax.linalg.matrices import adjoint, conj, matmul, transposed, tril, triu
from lamina.lax.linalg.rules import check_matrix


# ---- user function -----------------------------------------------------------------------------
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The x with op(a) x = b (left_side) or x op(a) = b, for triangular matrices a.

    a              floats or complex numbers of shape (..., n, n).
    b              matrices with n rows (left_side) or columns, or vectors where it has one
                   dimension less than a; leading sizes are equal.
    left_side      whether a stands on the left of x.
    lower          which triangle of a is read.
    transpose_a    op transposes.
    conjugate_a    op conjugates.
    unit_diagonal  takes the diagonal for ones and does not read it.

    Raises ValueError where a is not square; TypeError where sizes do not fit.

    >>> a, b = jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([[2.0], [3.0]])
    >>> print(lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
    [[1.]
     [2.]]
    """
    vector = len(b.shape) == len(a.shape) - 1
    if vector:
        b = lax.expand_dims(b, (len(b.shape) if left_side else len(b.shape) - 1,))
    conjugate_a = conjugate_a and dtypes.is_complex(a.dtype)
    if conjugate_a and not transpose_a:
        a, conjugate_a = lax.conj(a), False
    out = triangular_solve_p.bind(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )  # fmt: skip
    if vector:
        out = lax.squeeze(out, (len(out.shape) - (1 if left_side else 2),))
    return out


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(a: ShapedArray, b: ShapedArray, *, left_side: bool, **_: Any) -> ShapedArray:
    check_matrix("triangular_solve", a, square=True)
    check_matrix("triangular_solve", b)
    check_same_dtypes("triangular_solve", (a, b))
    if a.shape[:-2] != b.shape[:-2]:
        raise TypeError(
            "triangular_solve requires both arguments to have the same number of dimensions and "
            f"equal batch dimensions, got {a.shape} and {b.shape}."
        )
    if a.shape[-1] != b.shape[-2 if left_side else -1]:
        raise TypeError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and "
                        f"{b.shape}.")  # fmt: skip
    return b.strip_weak_type()


def _lowering(ctx: Any, a: Any, b: Any, *, transpose_a: bool, conjugate_a: bool, **params: Any
              ) -> Any:  # fmt: skip
    if conjugate_a and not transpose_a:
        raise NotImplementedError("triangular_solve with a conjugated, not transposed matrix")
    op = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
    return hlo.triangular_solve(a, b, transpose_a=op, **params)


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    (a, b), (da, db) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    parts = []
    if type(db) is not Zero:
        parts.append(triangular_solve(a, db, **params))
    if type(da) is not Zero:
        strict = 1 if params["unit_diagonal"] else 0
        da = tril(da, -strict) if params["lower"] else triu(da, strict)
        if params["transpose_a"]:
            da = adjoint(da) if params["conjugate_a"] else transposed(da)
        elif params["conjugate_a"]:
            da = conj(da)
        product = matmul(da, x) if params["left_side"] else matmul(x, da)
        parts.append(lax.neg(triangular_solve(a, product, **params)))
    return x, parts[0] if len(parts) == 1 else lax.add_any(*parts)


def _transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> list[Any]:
    return [None, triangular_solve(a, ct, transpose_a=not transpose_a, **params)]


def _batching(args: Any, dims: Any, *, left_side: bool, **params: Any) -> tuple[Any, int]:
    (a, b), (da, db) = args, dims
    if da is not None or len(a.shape) > 2:
        if da is None:
            b = move_axis(b, db, 0)
            a = at_front(a, None, b.shape[0])
        else:
            a, b = all_at_front(args, dims)
        return triangular_solve_p.bind(a, b, left_side=left_side, **params), 0
    # One matrix, more right-hand sides, of which those of an element of the batch lie together.
    b = move_axis(b, db, 1 if left_side else 0)
    k, m, n = b.shape
    out = lax.reshape(b, (k, m * n) if left_side else (k * m, n))
    out = triangular_solve_p.bind(a, out, left_side=left_side, **params)
    return lax.reshape(out, (k, m, n)), 1 if left_side else 0


triangular_solve_p: Primitive = Primitive(
    "triangular_solve",
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    placed=of_batches(2, 2),
)
