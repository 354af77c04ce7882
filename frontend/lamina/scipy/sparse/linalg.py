"""Iterative solvers of linear systems: cg bicgstab gmres, on pytrees, differentiable by solving the
same system again."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes, tree
from lamina.core.trace import get_aval, is_array_like
from lamina.lax.linalg.matrices import conj, real
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import Array, promote_inexact

__all__ = ["Operator", "bicgstab", "cg", "gmres"]

Operator = Callable[[Any], Any]


def cg(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
       maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:  # fmt: skip
    """The x with A x = b for a Hermitian positive definite A, by conjugate gradients; and None.

    A        a square matrix, or a linear function from b's type to itself.
    b        the right-hand side, a vector or a tree of arrays.
    x0       where to start, like b; None: zeros.
    tol      ends when the residual is below max(tol |b|, atol),
    atol     see tol,
    maxiter  or after so many steps; None: 10 for each unknown.
    M        a matrix or function near A's inverse, the preconditioner; None: the identity.

    Differentiable: the derivative solves the same system. Raises ValueError where A is not square
    or x0 is not like b.

    >>> a, b = jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([5.0, 4.0])
    >>> x, _ = lamina.scipy.sparse.linalg.cg(a, b)
    >>> print(x.round(3))
    [1. 1.]
    """
    return _solve(_conjugate_gradients, A, b, x0, tol, atol, maxiter, M, hermitian=True), None


def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
             maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:  # fmt: skip
    """The x with A x = b for any A, by stabilised biconjugate gradients (van der Vorst, 1992); and
    None.

    A        a square matrix, or a linear function from b's type to itself.
    b        the right-hand side, a vector or a tree of arrays.
    x0       where to start, like b; None: zeros.
    tol      ends when the residual is below max(tol |b|, atol),
    atol     see tol,
    maxiter  or after so many steps; None: 10 for each unknown.
    M        a matrix or function near A's inverse, the preconditioner; None: the identity.

    Differentiable: the derivative solves the same system. Raises ValueError where A is not square
    or x0 is not like b.

    >>> a, b = jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0])
    >>> print(lamina.scipy.sparse.linalg.bicgstab(a, b)[0].round(3))
    [1. 1.]
    """
    return _solve(_stabilized, A, b, x0, tol, atol, maxiter, M, hermitian=False), None


def gmres(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
          restart: int = 20, maxiter: int | None = None, M: Any = None,
          solve_method: str = "batched") -> tuple[Any, Any]:  # fmt: skip
    """The x with A x = b for any A, by generalised minimal residuals (Saad & Schultz, 1986); and 0,
    or -1 where x is not finite.

    A             a square matrix, or a linear function from b's type to itself.
    b             the right-hand side, a vector or a tree of arrays.
    x0            where to start, like b; None: zeros.
    tol           ends when the residual is below max(tol |b|, atol),
    atol          see tol,
    restart       the number of steps after which it starts again from the x it has,
    maxiter       at most so many times; None: 10 for each unknown.
    M             a matrix or function near A's inverse, the preconditioner; None: the identity.
    solve_method  "batched" or "incremental", which give the same.

    Differentiable: the derivative solves the same system. Raises ValueError where A is not square,
    x0 is not like b, and for another solve_method.

    >>> a, b = jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0])
    >>> x, info = lamina.scipy.sparse.linalg.gmres(a, b)
    >>> print(x.round(3), info)
    [1. 1.] 0
    """
    if solve_method not in ("incremental", "batched"):
        raise ValueError(
            f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'"
        )

    method = functools.partial(_minimal_residuals, restart=restart)
    x = _solve(method, A, b, x0, tol, atol, maxiter, M, hermitian=False)
    size = sum(lax.abs(leaf).sum() for leaf in tree.leaves(x))
    return x, lax.select(lax.is_finite(size), np.int32(0), np.int32(-1))


# ---- the frame ---------------------------------------------------------------------------------
def _solve(method: Callable[..., Array], A: Any, b: Any, x0: Any, tol: Any, atol: Any,
           maxiter: int | None, M: Any, hermitian: bool) -> Any:  # fmt: skip
    leaves, treedef = tree.flatten(b)
    leaves = [asarray(x) for x in promote_inexact(*leaves)]
    b = tree.unflatten(treedef, leaves)
    shapes = [x.shape for x in leaves]
    size = sum(map(math.prod, shapes))
    if x0 is None:
        x0 = tree.map(lambda x: lax.full_like(x, 0), b)
    start, start_def = tree.flatten(x0)
    if start_def != treedef:
        raise ValueError(
            f"x0 and b must have matching tree structure: {start_def} vs {treedef}"
        )
    if [np.shape(x) for x in start] != shapes:
        raise ValueError(
            "arrays in x0 and b must have matching shapes: "
            f"{[np.shape(x) for x in start]} vs {shapes}"
        )
    start = [lax.convert_element_type(x, y.dtype) for x, y in zip(start, leaves)]
    steps = 10 * size if maxiter is None else maxiter
    operator = _operator(A)
    precondition = _operator(M) if M is not None else lambda x: x

    def flat(apply: Operator) -> Callable[[Array], Array]:
        def on_vector(v: Array) -> Array:
            return _raveled(tree.leaves(apply(_unraveled(v, treedef, shapes))))

        return on_vector

    def checked(x: Any) -> Any:
        out = operator(x)
        got = [np.shape(y) for y in tree.leaves(out)]
        if got != shapes:
            raise ValueError(f"matvec() output shapes must match b, got {got} and {shapes}")
        return out

    def solver(apply: Operator, right: Any) -> Any:
        vector = _raveled(tree.leaves(right))
        length = _norm(vector)
        bound = lax.max(length * asarray(tol, length.dtype), asarray(atol, length.dtype))
        x = method(flat(apply), vector, _raveled(start), bound, steps, flat(precondition))
        return _unraveled(x, treedef, shapes)

    symmetric = hermitian and not any(dtypes.is_complex(get_aval(x).dtype) for x in leaves)
    return lax.custom_linear_solve(
        checked, b, solve=solver, transpose_solve=solver, symmetric=symmetric
    )


def _operator(A: Any) -> Operator:
    if callable(A):
        return A
    shape = A.shape if hasattr(A, "shape") else np.shape(A)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {shape}")
    if is_array_like(A) or not hasattr(A, "__matmul__"):
        A = asarray(A)
    return lambda x: A @ x


def _raveled(leaves: list[Any]) -> Array:
    return lax.concatenate([lax.reshape(x, (x.size,)) for x in leaves], 0)


def _unraveled(vector: Array, treedef: Any, shapes: list[tuple[int, ...]]) -> Any:
    parts, at = [], 0
    for shape in shapes:
        n = math.prod(shape)
        parts.append(lax.reshape(lax.slice_in_dim(vector, at, at + n), shape))
        at += n
    return tree.unflatten(treedef, parts)


def _inner(x: Array, y: Array) -> Array:
    return (conj(x) * y).sum()


def _norm(x: Array) -> Array:
    return lax.sqrt(real(_inner(x, x)))


# ---- methods: (A, b, x0, bound of the residual, most steps, M) -> x, on vectors ----------------------
def _conjugate_gradients(apply: Any, b: Array, x: Array, bound: Array, steps: int, near: Any
                         ) -> Array:  # fmt: skip
    r = b - apply(x)
    z = near(r)

    def unfinished(state: Any) -> Any:
        _, r, _, _, count = state
        return lax.bitwise_and(_norm(r) > bound, count < steps)

    def step(state: Any) -> Any:
        x, r, p, gamma, count = state
        moved = apply(p)
        alpha = gamma / _inner(p, moved)
        x, r = x + alpha * p, r - alpha * moved
        z = near(r)
        following = _inner(r, z)
        return x, r, z + (following / gamma) * p, following, count + 1

    start = (x, r, z, _inner(r, z), lax.full((), 0, np.int32))
    return lax.while_loop(unfinished, step, start)[0]


def _stabilized(apply: Any, b: Array, x: Array, bound: Array, steps: int, near: Any) -> Array:
    r = b - apply(x)
    shadow = r
    one = lax.full((), 1, b.dtype)

    def unfinished(state: Any) -> Any:
        _, r, *_, count = state
        return (_norm(r) > bound) & (count < steps) & (count >= 0)

    def step(state: Any) -> Any:
        x, r, p, v, rho, alpha, omega, count = state
        following = _inner(shadow, r)
        p = r + (following / rho) * (alpha / omega) * (p - omega * v)
        turned = near(p)
        v = apply(turned)
        alpha = following / _inner(shadow, v)
        s = r - alpha * v
        done = _norm(s) <= bound
        half = near(s)
        t = apply(half)
        omega = _inner(t, s) / _inner(t, t)
        moved = x + alpha * turned
        x = lax.select(done, moved, moved + omega * half)
        r = lax.select(done, s, s - omega * t)
        broken = (omega == 0) | (alpha == 0)
        return x, r, p, v, following, alpha, omega, lax.select(broken, np.int32(-1), count + 1)

    zero = lax.full_like(b, 0)
    start = (x, r, zero, zero, one, one, one, lax.full((), 0, np.int32))
    return lax.while_loop(unfinished, step, start)[0]


def _minimal_residuals(apply: Any, b: Array, x: Array, bound: Array, steps: int, near: Any,
                       restart: int) -> Array:  # fmt: skip
    n = b.shape[0]
    width = min(restart, n)
    scale = _norm(b)
    nonzero = lax.select(scale > 0, scale, lax.full_like(scale, 1))
    bound = _norm(near(b)) * lax.min(bound / nonzero, lax.full_like(bound, 1))

    def residual(x: Array) -> Array:
        return near(b - apply(x))

    def unit(v: Array) -> tuple[Array, Array]:
        """v of length 1, or zero where it is next to nothing; and its length."""
        length = _norm(v)
        some = length > np.finfo(length.dtype).tiny
        safe = lax.convert_element_type(lax.select(some, length, lax.full_like(length, 1)), v.dtype)
        return lax.select(some, v / safe, lax.full_like(v, 0)), length

    def cycle(state: Any) -> Any:
        x, r, count = state
        first, length = unit(r)
        basis = lax.full((width + 1, n), 0, b.dtype).at[0].set(first)
        table = lax.full((width, width + 1), 0, b.dtype)  # rows are columns of the Hessenberg form

        def arnoldi(k: Any, state: Any) -> Any:
            basis, table = state
            v = near(apply(basis[k]))
            # Twice is enough (Giraud et al. 2005). Rows past k are still zero.
            once = conj(basis) @ v
            v = v - once @ basis
            again = conj(basis) @ v
            v, rest = unit(v - again @ basis)
            column = (once + again).at[k + 1].set(lax.convert_element_type(rest, b.dtype))
            return basis.at[k + 1].set(v), table.at[k].set(column)

        basis, table = lax.fori_loop(0, width, arnoldi, (basis, table))
        right = lax.full((width + 1,), 0, b.dtype)
        right = right.at[0].set(lax.convert_element_type(length, b.dtype))
        # The least squares problem; columns of zeros, after a breakdown, get no weight.
        from lamina.numpy.linalg import lstsq

        y = lstsq(table.T, right)[0]
        x = x + y @ basis[:width]
        return x, residual(x), count + 1

    def unfinished(state: Any) -> Any:
        _, r, count = state
        return (_norm(r) > bound) & (count < steps)

    start = (x, residual(x), lax.full((), 0, np.int32))
    return lax.while_loop(unfinished, cycle, start)[0]
