"""Functions of matrices: expm expm_frechet sqrtm funm."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, log
from typing import Any

import numpy as np

from lamina import lax
from lamina.api import jvp
from lamina.lax.linalg.matrices import adjoint, eye_like, matmul
from lamina.lax.linalg.systems import solve
from lamina.numpy._eager import compiled
from lamina.numpy.linalg.arguments import matrices
from lamina.numpy.promotion import Array, ArrayLike
from lamina.scipy.linalg.decompositions import schur

# Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), table 2.3:
# up to which 1-norm a Pade approximant of each degree is as good as the precision.
_BOUNDS = {
    4: {3: 4.258730016922831e-1, 5: 1.880152677804762e0, 7: 3.925724783138660e0},
    8: {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1,
        9: 2.097847961257068e0, 13: 5.371920351148152e0},
}  # fmt: skip


def _coefficients(degree: int) -> list[float]:
    """Of the numerator of the Pade approximant of exp: (2m-j)! m! / ((2m)! j! (m-j)!), scaled to
    whole numbers."""
    scale = factorial(2 * degree) // factorial(degree)
    return [
        float(
            scale * factorial(2 * degree - j) * factorial(degree)
            // (factorial(2 * degree) * factorial(j) * factorial(degree - j))
        )
        for j in range(degree + 1)
    ]  # fmt: skip


@compiled(static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices, by scaling, a Pade approximant and squaring; NaN where
    more than max_squarings would be needed.

    A                 square matrices, (..., n, n).
    upper_triangular  A is upper triangular.

    >>> lamina.scipy.linalg.expm(jnp.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    (a,) = matrices("expm", A)
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={a.shape}.")
    size = np.zeros((), a.dtype).real.dtype.itemsize
    if size not in _BOUNDS:
        raise TypeError(f"A.dtype={a.dtype.name} is not supported: convert to float32 or wider.")
    if len(a.shape) > 2:
        from lamina.vmap import vmap

        return vmap(
            lambda x: expm(x, upper_triangular=upper_triangular, max_squarings=max_squarings)
        )(a)
    bounds = _BOUNDS[size]
    top = max(bounds)
    norm = lax.abs(a).sum(0).max(initial=0)
    squarings = lax.ceil(lax.max(lax.log(norm / bounds[top]) / log(2.0), lax.full_like(norm, 0)))
    count = lax.convert_element_type(squarings, np.int32)
    too_many = count > max_squarings
    count = lax.min(count, np.int32(max_squarings))
    scaled = a * lax.convert_element_type(lax.exp2(-lax.convert_element_type(count, norm.dtype)),
                                          a.dtype)  # fmt: skip

    def approximant(degree: int) -> Callable[[Array], Array]:
        return lambda x: _quotient(*_pade(x, degree), upper_triangular)

    limits = np.array(list(bounds.values())[:-1])
    which = sum((norm > limit).astype(np.int32) for limit in limits)
    out = lax.switch(which, [approximant(d) for d in bounds], scaled)
    # A fixed number of steps can be differentiated in reverse.
    out = lax.fori_loop(
        0, max_squarings,
        lambda i, x: lax.cond(i < count, lambda y: matmul(y, y), lambda y: y, x), out,
    )  # fmt: skip
    return lax.select(too_many, lax.full_like(out, np.nan), out)


def _pade(a: Array, degree: int) -> tuple[Array, Array]:
    """The odd and the even part of the numerator."""
    b = _coefficients(degree)
    square = matmul(a, a)
    powers = [eye_like(a), square]
    while 2 * (len(powers) - 1) < min(degree - 1, 6 if degree == 13 else degree):
        powers.append(matmul(powers[-1], square))
    if degree != 13:
        even = sum(b[2 * i] * p for i, p in enumerate(powers))
        return matmul(a, sum(b[2 * i + 1] * p for i, p in enumerate(powers))), even
    one, two, four, six = powers
    high = b[13] * six + b[11] * four + b[9] * two
    low = b[7] * six + b[5] * four + b[3] * two + b[1] * one
    even_high = b[12] * six + b[10] * four + b[8] * two
    even_low = b[6] * six + b[4] * four + b[2] * two + b[0] * one
    return matmul(a, matmul(six, high) + low), matmul(six, even_high) + even_low


def _quotient(odd: Array, even: Array, upper_triangular: bool) -> Array:
    if upper_triangular:
        return lax.linalg.triangular_solve(even - odd, even + odd, left_side=True, lower=False)
    return solve(even - odd, even + odd)


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Any:  # fmt: skip
    """expm(A) and its derivative in direction E.

    A             a square matrix.
    E             the direction, of the same shape.
    method        None or "SPS".
    compute_expm  False: give the derivative alone.

    >>> value, derivative = lamina.scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2))
    >>> derivative.round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    a, e = matrices("expm_frechet", A, E)
    if a.shape != e.shape or len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"expected A and E to be square and of one shape, got {a.shape} and {e.shape}"
        )
    out, change = jvp(expm, (a,), (e,))
    return (out, change) if compute_expm else change


@compiled(static=("blocksize",))
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The complex square root of a square matrix (Bjorck & Hammarling 1983), by its Schur form.

    A          a square matrix.
    blocksize  1, the only size there is.

    >>> lamina.scipy.linalg.sqrtm(4 * jnp.eye(2)).real.tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    (a,) = matrices("sqrtm", A)
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"sqrtm requires a square matrix, got shape {a.shape}")
    t, z = schur(a, output="complex")
    n = t.shape[0]
    root = lax.sqrt(lax.linalg.matrices.diagonal(t))
    columns = np.arange(n)

    # Column j, from the diagonal up: R[i, j] = (T[i, j] - R[i, :] R[:, j]) / (R[i, i] + R[j, j]).
    def column(j: Any, r: Array) -> Array:
        def element(step: Any, r: Array) -> Array:
            i = j - 1 - step
            inner = (columns > i) & (columns < j)
            known = (lax.select(inner, r[i], lax.full_like(r[i], 0)) * r[:, j]).sum()
            bottom = root[i] + root[j]
            value = (t[i, j] - known) / lax.select(
                lax.abs(bottom) > 0, bottom, lax.full_like(bottom, 1)
            )
            return r.at[i, j].set(value)

        return lax.fori_loop(0, j, element, r)

    start = lax.linalg.matrices.eye((n, n), t.dtype) * root
    r = lax.fori_loop(0, n, column, start)
    return matmul(matmul(z, r), adjoint(z))


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """func of a square matrix by its Schur form and Parlett's recurrence (Golub & van Loan 9.1.1).

    With disp=False also an estimate of the error in the 1-norm.

    A     a square matrix.
    func  a function of numbers, applied to eigenvalues.
    disp  False: give the estimate, too.

    >>> lamina.scipy.linalg.funm(4 * jnp.eye(2), jnp.sqrt).real.tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    (a,) = matrices("funm", A)
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"expected square array_like input, got shape {a.shape}")
    t, z = schur(a, output="complex")
    n = t.shape[0]
    diagonal = lax.linalg.matrices.diagonal(t)
    f = lax.linalg.matrices.eye((n, n), t.dtype) * func(diagonal)
    smallest = np.abs(np.finfo(t.dtype).max).astype(np.zeros((), t.dtype).real.dtype)
    nearest = lax.full((), smallest, np.zeros((), t.dtype).real.dtype)
    for p in range(1, n):
        for i in range(n - p):
            j = i + p
            s = t[i, j] * (f[j, j] - f[i, i])
            if p > 1:
                s = s + t[i, i + 1 : j] @ f[i + 1 : j, j] - f[i, i + 1 : j] @ t[i + 1 : j, j]
            gap = t[j, j] - t[i, i]
            zero = lax.abs(gap) == 0
            f = f.at[i, j].set(s / lax.select(zero, lax.full_like(gap, 1), gap))
            nearest = lax.min(nearest, lax.abs(gap))
    out = matmul(matmul(z, f), adjoint(z))
    if disp:
        return out
    eps = np.finfo(a.dtype).eps
    nearest = lax.select(nearest == 0, lax.full_like(nearest, eps), nearest)
    above = lax.abs(lax.linalg.matrices.triu(t, 1)).sum(0).max()
    error = lax.min(lax.full_like(nearest, 1), lax.max(
        lax.full_like(nearest, eps), (eps / nearest) * above))  # fmt: skip
    bad = lax.bitwise_not(lax.is_finite(lax.abs(out)).all())
    return out, lax.select(bad, lax.full_like(error, np.inf), error)
