"""Matrices made of vectors or of numbers alone: toeplitz, hilbert, block_diag and the like.

Vectors stand in the last axis of the arguments; other axes are a batch.
"""

from __future__ import annotations

import math

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.numpy.arithmetic import absolute
from lamina.numpy.creation import asarray
from lamina.numpy.joining import concatenate
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    check_arraylike,
    promote_dtypes,
    promote_inexact,
)


def _float(values: np.ndarray) -> Array:
    return asarray(values.astype(dtypes.canonicalize(np.float64)))


def _vector(name: str, x: ArrayLike) -> Array:
    check_arraylike(name, x)
    (x,) = promote_inexact(x)
    x = asarray(x)
    return x if x.shape else x[None]


def block_diag(*arrs: ArrayLike) -> Array:
    """The matrices along the diagonal of a larger one; vectors are rows.

    arrs  matrices, vectors and scalars.

    >>> lamina.scipy.linalg.block_diag(jnp.ones((1, 2)), 3.0).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    """
    if not arrs:
        return asarray(np.zeros((1, 0), dtypes.canonicalize(np.float64)))
    check_arraylike("block_diag", *arrs)
    blocks = [asarray(x) for x in promote_dtypes(*arrs)]
    if any(len(x.shape) > 2 for x in blocks):
        raise ValueError(
            "Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got "
            f"{[x.shape for x in blocks]}"
        )
    blocks = [x.reshape((1,) * (2 - len(x.shape)) + x.shape) for x in blocks]
    width, left, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        after = width - left - x.shape[1]
        zero = lax.full((), 0, x.dtype)
        rows.append(lax.pad(x, zero, [(0, 0, 0), (left, after, 0)]))
        left += x.shape[1]
    return lax.concatenate(rows, 0)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """c down the first column, r along the first row (its first element is not read; conj(c) by
    default), constant along diagonals.

    c  a vector.
    r  a vector.

    >>> lamina.scipy.linalg.toeplitz(jnp.array([1, 2]), jnp.array([0, 5])).tolist()
    [[1, 5], [2, 1]]
    """
    check_arraylike("toeplitz", c)
    c = asarray(c)
    c = c if c.shape else c[None]
    if r is None:
        r = lax.linalg.matrices.conj(c)
    check_arraylike("toeplitz", r)
    c, r = (asarray(x) for x in promote_dtypes(c, r))
    r = r if r.shape else r[None]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    m, n = c.shape[-1], r.shape[-1]
    if not m or not n:
        return lax.full((*batch, m, n), 0, c.dtype)
    parts = [lax.rev(c, (len(c.shape) - 1,)), r[..., 1:]]
    parts = [_spread(x, batch) for x in parts]
    values = concatenate(parts, -1)
    index = (m - 1) + np.arange(n)[None, :] - np.arange(m)[:, None]
    return values[..., index]


def _spread(x: Array, batch: tuple[int, ...]) -> Array:
    from lamina.numpy.promotion import broadcast_to_shape

    return broadcast_to_shape(x, (*batch, x.shape[-1]))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """c down the first column, r along the last row (zeros by default), constant along rising
    diagonals.

    c  a vector.
    r  a vector, whose first element is not read.

    >>> lamina.scipy.linalg.hankel(jnp.array([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    """
    check_arraylike("hankel", c)
    c = asarray(c)
    c = c if c.shape else c[None]
    r = lax.full_like(c, 0) if r is None else r
    check_arraylike("hankel", r)
    c, r = (asarray(x) for x in promote_dtypes(c, r))
    r = r if r.shape else r[None]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    values = concatenate([_spread(c, batch), _spread(r[..., 1:], batch)], -1)
    index = np.arange(c.shape[-1])[:, None] + np.arange(r.shape[-1])[None, :]
    return values[..., index] if index.size else lax.full((*batch, *index.shape), 0, c.dtype)


def circulant(c: ArrayLike) -> Array:
    """c down the first column, each further column turned down by one.

    c  vectors, (..., n).

    >>> lamina.scipy.linalg.circulant(jnp.array([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    check_arraylike("circulant", c)
    c = asarray(c)
    if not c.shape:
        c = c[None]
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)[None, :]) % n] if n else c[..., None]


def companion(a: ArrayLike) -> Array:
    """The matrix whose eigenvalues are the roots of the polynomial with coefficients a, the highest
    first.

    a  vectors of at least two coefficients.

    >>> lamina.scipy.linalg.companion(jnp.array([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    a = _vector("companion", a)
    n = a.shape[-1]
    if n < 2:
        raise ValueError(
            f"The length of `a` along the last axis must be at least 2; got shape {a.shape}."
        )
    first = -a[..., 1:] / a[..., :1]
    below = np.eye(n - 2, n - 1)
    return _first_row(first, below)


def _first_row(first: Array, below: np.ndarray) -> Array:
    """A row on top of the rows of a constant matrix."""
    rest = lax.broadcast_in_dim(
        below.astype(first.dtype), (*first.shape[:-1], *below.shape),
        (len(first.shape) - 1, len(first.shape)),
    )  # fmt: skip
    return lax.concatenate([first[..., None, :], rest], len(first.shape) - 1)


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """f along the first row, s below the diagonal.

    f  fecundities, a vector (n,).
    s  survival rates, (n - 1,).

    >>> lamina.scipy.linalg.leslie(jnp.array([1, 2]), jnp.array([3])).tolist()
    [[1, 2], [3, 0]]
    """
    check_arraylike("leslie", f, s)
    f, s = (asarray(x) for x in promote_dtypes(f, s))
    if s.shape[-1] != f.shape[-1] - 1 or s.shape[-1] == 0:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less "
            f"than the length of f; got f shape {f.shape} and s shape {s.shape}."
        )
    n = f.shape[-1]
    diagonal = s[..., :, None] * np.eye(n - 1, n).astype(s.dtype)
    batch = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    from lamina.numpy.promotion import broadcast_to_shape

    top = broadcast_to_shape(f[..., None, :], (*batch, 1, n))
    return lax.concatenate([top, broadcast_to_shape(diagonal, (*batch, n - 1, n))], len(batch))


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector of n elements is its convolution with a.

    a     a vector.
    n     the size of what it is convolved with.
    mode  "full", "same" or "valid": which part of the convolution.

    >>> lamina.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2).tolist()
    [[1, 0], [2, 1], [0, 2]]
    """
    if n <= 0:
        raise ValueError(f"n must be a positive integer, got {n}")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of ('full', 'same', 'valid'), got {mode!r}")
    check_arraylike("convolution_matrix", a)
    a = asarray(a)
    m = a.shape[-1]
    if m == 0:
        raise ValueError("a must not be empty along its last axis")
    zero = lax.full((), 0, a.dtype)
    padded = lax.pad(a, zero, [*[(0, 0, 0)] * (len(a.shape) - 1), (0, n - 1, 0)])
    first_row = lax.pad(a[..., :1], zero, [*[(0, 0, 0)] * (len(a.shape) - 1), (0, n - 1, 0)])
    full = toeplitz(padded, first_row)
    if mode == "full":
        return full
    longest, shortest = max(m, n), min(m, n)
    if mode == "same":
        start = (shortest - 1) // 2
        return full[..., start : start + longest, :]
    return full[..., shortest - 1 : longest, :]


def fiedler(a: ArrayLike) -> Array:
    """|a_i - a_j|.

    a  vectors, (..., n).

    >>> lamina.scipy.linalg.fiedler(jnp.array([1, 4])).tolist()
    [[0, 3], [3, 0]]
    """
    check_arraylike("fiedler", a)
    a = asarray(a)
    if not a.shape:
        a = a[None]
    return absolute(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """A pentadiagonal matrix whose eigenvalues are the roots of the polynomial with coefficients a,
    the highest first (Fiedler 2003).

    a  a vector of coefficients.

    Raises ValueError where there are none.

    >>> lamina.scipy.linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0])).shape
    (2, 2)
    """
    a = _vector("fiedler_companion", a)
    if not a.shape[-1]:
        raise ValueError(f"fiedler_companion needs at least one coefficient, got an array of shape {a.shape}")
    n = a.shape[-1] - 1
    if n < 1:
        return lax.full((*a.shape[:-1], 0, 0), 0, a.dtype)
    # Which coefficient each element is, after those a 0 and a 1.
    zero, one = n + 1, n + 2
    which = np.full((n, n), zero)
    for i in range(0, n, 2):
        which[i, max(i - 1, 0)] = i + 1
        if i + 1 < n:
            which[i, i + 1] = i + 2
            which[i + 1, max(i - 1, 0)] = one
        if i + 2 < n:
            which[i, i + 2] = one
    constants = lax.full_like(a[..., :1], 0)
    values = concatenate([-a / a[..., :1], constants, constants + 1], -1)
    return values[..., which]


def hilbert(n: int) -> Array:
    """1 / (i + j + 1).

    n  the size.

    >>> lamina.scipy.linalg.hilbert(2).round(3)[0].tolist()
    [1.0, 0.5]
    """
    i = np.arange(n)
    return _float(1.0 / (i[:, None] + i[None, :] + 1))


def invhilbert(n: int) -> Array:
    """The inverse of hilbert(n), which consists of whole numbers.

    n  the size.

    >>> lamina.scipy.linalg.invhilbert(2).astype(int).tolist()
    [[4, -6], [-6, 12]]
    """

    def entry(i: int, j: int) -> float:
        s = i + j
        return float(
            (-1) ** s * (s + 1) * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1)
            * math.comb(s, i) ** 2
        )  # fmt: skip

    return _float(np.array([[entry(i, j) for j in range(n)] for i in range(n)]).reshape(n, n))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Sylvester's matrix of 1 and -1 with orthogonal rows; n is a power of 2.

    n      the size.
    dtype  of the result.

    Raises ValueError where n is no power of 2.

    >>> lamina.scipy.linalg.hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    i = np.arange(n)
    common = i[:, None] & i[None, :]
    odd = np.array([[bin(x).count("1") % 2 for x in row] for row in common])
    return asarray((1 - 2 * odd).astype(dtypes.canonicalize(np.dtype(dtype))))


def helmert(n: int, full: bool = False) -> Array:
    """Orthonormal rows, the i-th of which compares the first i elements with the next; the first
    one, of equal elements, only if full.

    n     the size.
    full  (n, n) instead of (n - 1, n).

    Raises ValueError where n is not positive.

    >>> lamina.scipy.linalg.helmert(4).shape
    (3, 4)
    """
    if n < 1:
        raise ValueError(f"helmert: n must be a positive integer, got {n}")
    rows = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    rows[0] = 1
    rows /= np.sqrt(np.array([n, *(i * (i + 1.0) for i in range(1, n))]))[:, None]
    return _float(rows if full else rows[1:])


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform, divided by sqrt(n) ("sqrtn") or by n ("n").

    n      the size.
    scale  None, "sqrtn" or "n".
    dtype  of the result, a complex dtype.

    >>> lamina.scipy.linalg.dft(4).shape
    (4, 4)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got '{scale}'.")
    i = np.arange(n)
    values = np.exp(-2j * np.pi * (np.outer(i, i) % max(n, 1)) / max(n, 1))
    if scale:
        values /= n if scale == "n" else np.sqrt(n)
    kind = np.dtype(np.complex128 if dtype is None else dtype)
    if not dtypes.is_complex(kind):
        raise ValueError(f"dft: dtype must be a complex floating-point type, got {kind.name}")
    return asarray(values.astype(dtypes.canonicalize(kind)))


def pascal(n: int, kind: str | None = None) -> Array:
    """Binomial coefficients: symmetric, or "lower" or "upper" triangular.

    n     the size.
    kind  "symmetric" (the default), "lower" or "upper".

    >>> lamina.scipy.linalg.pascal(3).astype(int).tolist()
    [[1, 1, 1], [1, 2, 3], [1, 3, 6]]
    """
    kind = "symmetric" if kind is None else kind
    if kind not in ("symmetric", "lower", "upper"):
        raise ValueError(f"Expected kind to be 'symmetric', 'lower' or 'upper', got: {kind}")
    lower = np.array([[math.comb(i, j) for j in range(n)] for i in range(n)], float).reshape(n, n)
    return _float({"lower": lower, "upper": lower.T, "symmetric": lower @ lower.T}[kind])


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of pascal(n, kind).

    n     the size.
    kind  "symmetric" (the default), "lower" or "upper".

    >>> lamina.scipy.linalg.invpascal(2).astype(int).tolist()
    [[2, -1], [-1, 1]]
    """
    kind = "symmetric" if kind is None else kind
    if kind not in ("symmetric", "lower", "upper"):
        raise ValueError(f"Expected kind to be 'symmetric', 'lower' or 'upper', got: {kind}")
    lower = np.array(
        [[(-1) ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)], float
    ).reshape(n, n)
    return _float({"lower": lower, "upper": lower.T, "symmetric": lower.T @ lower}[kind])
