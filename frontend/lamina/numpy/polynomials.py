"""Polynomials as vectors of coefficients, the highest power first: poly polyval polyadd roots ..."""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import Tracer
from lamina.numpy._eager import compiled
from lamina.numpy.arithmetic import add
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    concrete_or_error,
    literal,
    promote_dtypes,
    promote_inexact,
)  # fmt: skip


def _linalg() -> Any:
    return importlib.import_module("lamina.numpy.linalg")


def _vectors(name: str, inexact: bool, *args: ArrayLike) -> list[Array]:
    check_arraylike(name, *args)
    arrays = [asarray(x) for x in (promote_inexact if inexact else promote_dtypes)(*args)]
    for x in arrays:
        _check_vector(name, x.shape)
    return arrays


def _check_vector(name: str, shape: Sequence[int]) -> None:
    if len(shape) != 1:
        kind = ValueError if shape else TypeError  # as len() of a number is one
        hint = "" if shape else f": for a constant, {library}.numpy.array([c])"
        raise kind(f"{name} takes vectors of coefficients, got shape {tuple(shape)}{hint}")


def _trimmed(x: Array) -> Array:
    """A concrete vector without the zeros at its front."""
    known = concrete_or_error(x, "trim_leading_zeros needs coefficients that are not traced")
    nonzero = np.flatnonzero(known)
    return lax.slice(x, (int(nonzero[0]),), x.shape) if nonzero.size else lax.slice(x, (0,), (0,))


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    a1, a2  vectors of coefficients, that of the highest power first

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3])).tolist()
    [1, 5]
    """
    return _polyadd(*_vectors("polyadd", False, a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    a1, a2  vectors of coefficients, that of the highest power first

    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([3])).tolist()
    [1, -1]
    """
    a, b = _vectors("polysub", False, a1, a2)
    return _polyadd(a, lax.neg(b))


@compiled
def _polyadd(a: Any, b: Any) -> Array:

    n = max(a.shape[0], b.shape[0])
    a, b = (lax.pad(x, literal(x, 0), [(n - x.shape[0], 0, 0)]) for x in (a, b))
    return add(a, b)


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    a1, a2              vectors of coefficients, that of the highest power first
    trim_leading_zeros  whether zeros in front are dropped, which needs known values

    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, 3])).tolist()
    [1.0, 5.0, 6.0]
    """
    from lamina.numpy.statistics import convolve

    a, b = _vectors("polymul", True, a1, a2)
    if trim_leading_zeros and (len(a) > 1 or len(b) > 1):
        a, b = _trimmed(a), _trimmed(b)
    a, b = (x if x.shape[0] else lax.full((1,), 0, x.dtype) for x in (a, b))
    return convolve(a, b, mode="full", precision=lax.Precision.HIGHEST)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of a division of polynomials.

    u, v                vectors of coefficients, that of the highest power first
    trim_leading_zeros  whether zeros in front are dropped, which needs known values

    >>> [p.tolist() for p in jnp.polydiv(jnp.array([1.0, 5.0, 6.0]), jnp.array([1.0, 2.0]))]
    [[1.0, 3.0], [0.0, 0.0, 0.0]]
    """
    u, v = _vectors("polydiv", True, u, v)
    if v.shape[0] == 0:
        raise ValueError("polydiv: the divisor has no coefficients")
    quotient, rest = _polydiv(u, v)
    return quotient, (_trimmed(rest) if trim_leading_zeros else rest)


@compiled
def _polydiv(u: Any, v: Any) -> tuple[Array, Array]:
    m, n = u.shape[0] - 1, v.shape[0] - 1
    lead = lax.index_in_dim(v, 0, keepdims=False)
    scale = lax.div(literal(v, 1), lead)
    count = max(m - n + 1, 1)
    quotient = lax.full((count,), 0, u.dtype)
    if m < n:
        return quotient, u

    def step(k: Any, state: Any) -> Any:
        quotient, u = state
        d = lax.mul(scale, lax.dynamic_index_in_dim(u, k, 0, keepdims=False))
        quotient = lax.dynamic_update_slice(quotient, lax.reshape(d, (1,)), (k,))
        part = lax.sub(lax.dynamic_slice(u, (k,), (n + 1,)), lax.mul(d, v))
        return quotient, lax.dynamic_update_slice(u, part, (k,))

    return lax.fori_loop(0, count, step, (quotient, u))


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    p  a vector of coefficients, that of the highest power first
    m  a static int, not negative

    >>> jnp.polyder(jnp.array([1, 2, 3])).tolist()
    [2.0, 2.0]
    """
    m = operator.index(concrete_or_error(m, f"'m' argument of {library}.numpy.polyder")[()])
    (p,) = _vectors("polyder", True, p)
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    return p if m == 0 else _polyder(p, m=m)


@compiled(static=("m",))
def _polyder(p: Any, *, m: int) -> Array:
    n = max(p.shape[0] - m, 0)
    powers = np.arange(m + n - 1, m - 1, -1)
    factors = np.array([math.perm(int(k), m) for k in powers], float)
    return lax.mul(lax.slice(p, (0,), (n,)), factors.astype(p.dtype))


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The m-th integral of a polynomial, with integration constants k (zeros).

    p  a vector of coefficients, that of the highest power first
    m  a static int, not negative
    k  a number, or one for each integral

    >>> jnp.polyint(jnp.array([2, 2])).tolist()
    [1.0, 2.0, 0.0]
    """
    m = operator.index(concrete_or_error(m, f"'m' argument of {library}.numpy.polyint")[()])
    k = 0 if k is None else k
    if isinstance(k, (list, tuple)):
        k = asarray(k)
    check_arraylike("polyint", p, k)
    p, constants = map(asarray, promote_inexact(p, k))
    _check_vector("polyint", p.shape)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = constants.reshape(1) if constants.ndim == 0 else constants
    if m > 1 and constants.shape == (1,):
        constants = broadcast_to_shape(constants, (m,))
    if constants.shape != (m,) and not (m == 0 and constants.shape == (1,)):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    return p if m == 0 else _polyint(p, constants, m=m)


@compiled(static=("m",))
def _polyint(p: Any, k: Any, *, m: int) -> Array:
    n = p.shape[0] + m
    powers = np.arange(n - 1, -1, -1)
    divisors = np.array([math.perm(int(j), min(int(j), m)) for j in powers], float)
    return lax.div(lax.concatenate([p, k], 0), divisors.astype(p.dtype))


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The value of a polynomial at x, by Horner's rule.

    p       the coefficients along the first axis, that of the highest power first.
    x       an array of any shape, or numbers.
    unroll  that of `lax.polynomial`.

    >>> jnp.polyval(jnp.array([2, 5, 1]), 3)
    Array(34, dtype=int32)
    """
    check_arraylike("polyval", p, x)
    p, x = (asarray(v) for v in promote_dtypes(p, x))
    return _polyval(p, x, unroll=None if unroll is None else operator.index(unroll))


@compiled(static=("unroll",))
def _polyval(p: Any, x: Any, *, unroll: int | None) -> Array:
    shape = broadcast_shapes(p.shape[1:], x.shape)
    if not p.shape[0]:
        return lax.full(shape, 0, x.dtype)
    if x.shape:
        x = lax.broadcast_to_rank(x, len(shape))
    rows = [lax.index_in_dim(p, i, keepdims=False) for i in reversed(range(p.shape[0]))]
    if p.ndim > 1:
        rows = [lax.broadcast_to_rank(row, len(shape)) for row in rows]
    return lax.polynomial(x, rows, unroll=unroll)


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with these roots, or the characteristic polynomial of a square matrix.

    seq_of_zeros  a vector or a square matrix; ValueError of others

    >>> jnp.poly(jnp.array([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    check_arraylike("poly", seq_of_zeros)
    (x,) = promote_inexact(seq_of_zeros)
    x = asarray(x)
    if len(x.shape) == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        x = _linalg().eigvals(x)
    if not x.shape:
        x = lax.reshape(x, (1,))
    if len(x.shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    return _poly(x) if x.shape[0] else lax.full((), 1, x.dtype)


@compiled
def _poly(x: Any) -> Array:
    n = x.shape[0]
    first = lax.pad(lax.full((1,), 1, x.dtype), literal(x, 0), [(0, n, 0)])

    def step(k: Any, p: Any) -> Any:  # times (z - root): each coefficient less its left neighbour
        shifted = lax.pad(p, literal(p, 0), [(1, -1, 0)])
        return lax.sub(p, lax.mul(lax.dynamic_index_in_dim(x, k, 0, keepdims=False), shifted))

    return lax.fori_loop(0, n, step, first)


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    p            a vector of coefficients, that of the highest power first
    strip_zeros  whether zeros in front are dropped

    Zeros in front are stripped, which needs a p that is not traced; with strip_zeros=False the
    leading ones give NaN as the last roots.

    >>> sorted(round(x, 3) for x in jnp.roots(jnp.array([1.0, -3.0, 2.0])).real.tolist())
    [1.0, 2.0]
    """
    check_arraylike("roots", p)
    (p,) = _vectors("roots", True, asarray(p).reshape(1) if np.ndim(p) == 0 else p)
    if p.shape[0] < 2:
        return lax.full((0,), 0, dtypes.complex_dtype(p.dtype))
    if not strip_zeros:
        return _roots_with_leading_zeros(p)
    known = concrete_or_error(p, f"The error occurred in {library}.numpy.roots: to use it within "
                                 "transformations, pass strip_zeros=False")  # fmt: skip
    places = np.flatnonzero(known)
    if not places.size:
        return lax.full((0,), 0, dtypes.complex_dtype(p.dtype))
    first, last = int(places[0]), int(places[-1]) + 1
    behind = p.shape[0] - last
    found = _companion_roots(lax.slice(p, (first,), (last,)))
    return lax.pad(found, literal(found, 0), [(0, behind, 0)])


def _companion_roots(p: Array) -> Array:
    n = p.shape[0] - 1
    if n == 0:
        return lax.full((0,), 0, dtypes.complex_dtype(p.dtype))
    top = lax.neg(lax.div(lax.slice(p, (1,), (n + 1,)), lax.index_in_dim(p, 0, keepdims=False)))
    below = asarray(np.eye(n - 1, n).astype(p.dtype))
    return _linalg().eigvals(lax.concatenate([lax.expand_dims(top, (0,)), below], 0))


def _roots_with_leading_zeros(p: Array) -> Array:
    """Roots of a p whose leading zeros aren't known: it is rolled to a nonzero first coefficient,
    and the roots at 0 that come in by that are told as NaN, last."""
    from lamina.numpy.rearranging import roll
    from lamina.numpy.reductions import all as all_
    from lamina.numpy.reductions import argmax
    from lamina.numpy.selection import where
    from lamina.numpy.sorting import argsort

    nonzero = lax.ne(p, literal(p, 0))
    shift = where(all_(lax.bitwise_not(nonzero)), p.shape[0] - 1, argmax(nonzero))
    found = _companion_roots(roll(p, lax.neg(shift)))
    order = argsort(lax.eq(lax.abs(found), np.zeros((), lax.abs(found).dtype)[()]))
    found = found[order]
    place = lax.iota(np.int32, found.shape[0])
    return where(lax.lt(place, lax.sub(np.int32(found.shape[0]), lax.convert_element_type(shift, np.int32))),
                 found, np.nan)  # fmt: skip


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of x, N columns (as many as x has elements), the highest power first.

    x           a vector; ValueError of others
    N           the number of columns
    increasing  whether the lowest power comes first

    >>> jnp.vander(jnp.array([1, 2, 3]), 2).tolist()
    [[1, 1], [2, 1], [3, 1]]
    """
    check_arraylike("vander", x)
    x = asarray(x)
    if len(x.shape) != 1:
        raise ValueError("x must be a one-dimensional array")
    n = x.shape[0] if N is None else operator.index(
        concrete_or_error(N, f"'N' argument of {library}.numpy.vander")[()]
    )  # fmt: skip
    if n < 0:
        raise ValueError("N must be nonnegative")
    return _vander(x, n=n, increasing=bool(increasing))


@compiled(static=("n", "increasing"))
def _vander(x: Any, *, n: int, increasing: bool) -> Array:
    from lamina.numpy.arithmetic import power

    powers = lax.iota(np.int32, n)
    powers = powers if increasing else lax.sub(np.int32(n - 1), powers)
    out = power(lax.expand_dims(x, (1,)), lax.expand_dims(powers, (0,)))
    return lax.convert_element_type(out, x.dtype)


@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: Literal[False] = False,
    w: ArrayLike | None = None, cov: Literal[False] = False) -> Array: ...
@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
    w: ArrayLike | None = None, cov: bool | str = False) -> Any: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of degree deg nearest to the points (x, y) by least squares, weighted by w.

    x          a vector
    y          a vector of its size, or one in each column
    deg        a static int
    rcond      singular values below this fraction of the largest count as zero
    full, cov  what else is wanted
    w          a vector of weights

    With full also (residuals, rank, singular values, rcond); with cov also the covariance matrix
    of the coefficients, scaled by chi squared over the degrees of freedom unless cov="unscaled".

    >>> print(jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(2))
    [2. 1.]
    """
    from lamina.numpy.products import dot
    from lamina.numpy.products import outer as outer_
    from lamina.numpy.reductions import sum as sum_

    if w is None:
        x, y = (asarray(v) for v in promote_inexact(asarray(x), asarray(y)))
    else:
        x, y, w = (asarray(v) for v in promote_inexact(asarray(x), asarray(y), asarray(w)))
    deg = operator.index(concrete_or_error(deg, "deg must be int")[()])
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if len(x.shape) != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= len(y.shape) <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        rcond = len(x) * float(dtypes.finfo(x.dtype).eps)
    elif isinstance(rcond, Tracer):
        rcond = concrete_or_error(rcond, "rcond must be float")[()]
    powers = vander(x, deg + 1)
    right = y
    if w is not None:
        if len(w.shape) != 1:
            raise TypeError("expected a 1-d array for weights")
        if w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        column = lax.expand_dims(w, (1,))
        powers = lax.mul(powers, broadcast_to_shape(column, powers.shape))
        right = lax.mul(right, w if len(y.shape) == 1 else broadcast_to_shape(column, y.shape))
    # Columns of equal length condition the problem best.
    scale = lax.sqrt(sum_(lax.square(powers), 0))
    c, residuals, rank, singular = _linalg().lstsq(powers / scale[None], right, rcond)
    c = c / (scale if len(c.shape) == 1 else lax.expand_dims(scale, (1,)))
    if full:
        return c, residuals, rank, singular, asarray(rcond)
    if not cov:
        return c
    scaled = powers / scale[None]
    base = _linalg().inv(dot(scaled.T, scaled))
    base = base / outer_(scale, scale)
    if cov == "unscaled":
        factor: Any = literal(base, 1)
    else:
        if x.shape[0] <= deg + 1:
            raise ValueError("the number of data points must exceed order to scale the covariance "
                             "matrix")  # fmt: skip
        factor = residuals / (x.shape[0] - (deg + 1))
    if len(y.shape) == 2:
        base = lax.expand_dims(base, (2,))
    return c, base * (lax.expand_dims(factor, range(len(y.shape))) if np.ndim(factor) else factor)
