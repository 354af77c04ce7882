"""Systems of linear equations and inverses: solve inv lstsq pinv tensorsolve tensorinv."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina import lax
from lamina.control_flow import custom_jvp
from lamina.lax.linalg import systems
from lamina.lax.linalg.matrices import adjoint, eye_like, matmul
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.linalg.arguments import check_rank, check_square, matrices
from lamina.numpy.linalg.decompositions import svd
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
)  # fmt: skip
from lamina.numpy.reductions import sum
from lamina.numpy.selection import where


@compiled
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with a x = b, for square a. b is a vector where it has one axis, otherwise matrices.

    a  square matrices (..., n, n)
    b  a vector (n,) or matrices (..., n, k)

    Raises ValueError for shapes that do not go together.

    >>> print(jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0])))
    [1. 2.]
    """
    a, b = matrices("solve", a, b)
    return solve_with("solve", systems.solve, a, b)


def solve_with(name: str, solver: Any, a: Array, b: Array) -> Array:
    """solver(a, b) for the function `name`, with vectors made matrices and other axes broadcast; many
    right-hand sides of one matrix become columns."""
    check_square(name, a)
    if not b.shape:
        raise ValueError(f"{name} requires b of one axis or more, got shape {b.shape}")
    n = a.shape[-1]
    vector = len(b.shape) == 1
    if b.shape[-1 if vector else -2] != n:
        raise ValueError(
            f"{name}: inconsistent sizes: a has shape {a.shape} and b has shape {b.shape}"
        )
    if vector:
        b = b[:, None]
    if len(a.shape) == 2 and len(b.shape) > 2:
        moved = lax.linalg.matrices.transposed(b)
        columns = lax.reshape(moved, (math.prod(moved.shape[:-1]), n))
        x = lax.transpose(solver(a, lax.transpose(columns, (1, 0))), (1, 0))
        return lax.linalg.matrices.transposed(lax.reshape(x, moved.shape))
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = solver(
        broadcast_to_shape(a, (*batch, n, n)), broadcast_to_shape(b, (*batch, n, b.shape[-1]))
    )
    return x[..., 0] if vector else x


@compiled
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices.

    a  square matrices (..., n, n)

    >>> print(jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])).tolist())
    [[0.5, 0.0], [0.0, 0.25]]
    """
    (a,) = matrices("inv", a)
    check_square("inv", a)
    return systems.solve(a, eye_like(a))


@compiled(static=("hermitian",))
def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *,
         rcond: ArrayLike | None = None) -> Array:  # fmt: skip
    """The Moore-Penrose inverse: singular values up to rtol times the largest count as zero. By
    default that is ten times the larger size times the machine precision.

    a            matrices (..., m, n)
    rtol, rcond  the fraction; two names of it
    hermitian    whether a is, which is quicker

    >>> print(jnp.linalg.pinv(jnp.array([[2.0], [0.0]])).round(3))
    [[0.5 0. ]]
    """
    (a,) = matrices("pinv", a)
    check_rank("pinv", a)
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    if rtol is None:
        eps = np.finfo(np.zeros((), a.dtype).real.dtype).eps
        rtol = 10.0 * max(a.shape[-2:]) * float(eps)
    return _pinv(a, rtol, hermitian)


def _pinv(a: Array, rtol: Any, hermitian: bool) -> Array:
    @custom_jvp
    def inverse(a: Any, rtol: Any) -> Any:
        u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)  # type: ignore[misc]
        bound = asarray(rtol, s.dtype)[..., None] * s[..., :1]
        s = lax.convert_element_type(where(s > bound, s, np.inf), a.dtype)
        return matmul(adjoint(vh), adjoint(u) / s[..., None])

    @inverse.defjvp
    def inverse_jvp(primals: Any, tangents: Any) -> Any:
        # Golub & Pereyra (1973), theorem 4.3.
        a, rtol = primals
        da = tangents[0]
        p = inverse(a, rtol)
        ps, das = adjoint(p), adjoint(da)
        left, right = _product(p, ps, das), _product(das, ps, p)
        dp = left - _product(left, a, p) + right - _product(p, a, right)
        return p, dp - _product(p, da, p)

    return inverse(a, rtol)


def _product(x: Array, y: Array, z: Array) -> Array:
    """x y z, by way of the smaller of x y and y z."""
    if x.shape[-2] * y.shape[-1] <= y.shape[-2] * z.shape[-1]:
        return matmul(matmul(x, y), z)
    return matmul(x, matmul(y, z))


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
          ) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """The x of least norm that comes nearest to a x = b; the squared distances, a's rank and its
    singular values. numpy_resid leaves the distances out where NumPy does (concrete ranks only).

    a            a matrix (m, n)
    b            a vector (m,) or a matrix (m, k)
    rcond        singular values below this fraction of the largest count as zero
    numpy_resid  see above

    >>> x, residuals, rank, s = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> print(x.round(3))
    [2.]
    """
    x, resid, rank, s = _lstsq(a, b, rcond)
    m, n = np.shape(a)
    if numpy_resid and (m <= n or int(rank) < n):
        resid = asarray([], resid.dtype)
    return x, resid, rank, s


@compiled
def _lstsq(a: Any, b: Any, rcond: Any) -> tuple[Array, Array, Array, Array]:
    a, b = matrices("lstsq", a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    if len(a.shape) != 2:
        raise TypeError(f"{len(a.shape)}-dimensional array given. Array must be two-dimensional")
    if len(b.shape) not in (1, 2):
        raise TypeError(
            f"{len(b.shape)}-dimensional array given. Array must be one or two-dimensional"
        )
    vector = len(b.shape) == 1
    right = b[:, None] if vector else b
    m, n = a.shape
    kind = np.zeros((), a.dtype).real.dtype
    if rcond is None:
        rcond = float(np.finfo(kind).eps) * max(m, n)
    elif isinstance(rcond, (int, float)) and rcond < 0:
        rcond = float(np.finfo(kind).eps)
    if 0 in a.shape:
        x = lax.full((n, right.shape[1]), 0, a.dtype)
        s, rank = lax.full((0,), 0, kind), lax.full((), 0, np.int32)
    else:
        u, s, vh = svd(a, full_matrices=False)  # type: ignore[misc]
        kept = (s > 0) & (s >= asarray(rcond, kind) * s[0])
        rank = sum(lax.convert_element_type(kept, np.int32))
        inverse = where(kept, 1 / where(kept, s, 1), 0)
        scaled = lax.convert_element_type(inverse, a.dtype)[:, None] * matmul(adjoint(u), right)
        x = matmul(adjoint(vh), scaled)
    left_over = lax.square(lax.abs(right - matmul(a, x)))
    resid = sum(left_over, 0)
    return (x[:, 0] if vector else x), resid, rank, s


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end first.

    a     an array of b's shape followed by x's
    b     an array
    axes  axes of a, or None

    >>> jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    check_arraylike("jnp.linalg.tensorsolve", a, b)
    a, b = asarray(a), asarray(b)
    if axes is not None:
        a = lax.transpose(a, [*(i for i in range(len(a.shape)) if i not in axes), *axes])
    rank = len(b.shape)
    shape = a.shape[rank:]
    if math.prod(a.shape[:rank]) != math.prod(shape):
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got "
            f"a.shape={a.shape}, b.ndim={rank}."
        )
    n = math.prod(shape)
    return solve(a.reshape(n, n), b.ravel()).reshape(shape)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse with respect to tensordot over the first `ind` axes.

    a    an array whose first `ind` sizes have the product of the others
    ind  a positive int

    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    check_arraylike("jnp.linalg.tensorinv", a)
    a = asarray(a)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    left, right = a.shape[:ind], a.shape[ind:]
    if math.prod(left) != math.prod(right):
        raise ValueError(
            "Input array must have prod(a.shape[:ind]) == prod(a.shape[ind:]); got "
            f"a.shape={a.shape} and ind={ind}."
        )
    n = math.prod(left)
    return inv(a.reshape(n, n)).reshape(*right, *left)
