"""Convolutions and correlations of arrays of one rank: as sums, or through Fourier transforms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy import fft as _fft
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    canonical_axis,
    check_arraylike,
    promote_inexact,
)  # fmt: skip

_MODES = ("full", "same", "valid")


def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto",
             precision: Any = None) -> Array:  # fmt: skip
    """The convolution of two arrays.

    in1, in2   arrays of one rank and not empty, one of which is in no dimension the larger.
    mode       "full": wherever they overlap; "same": of in1's size, the middle of that; "valid":
               where they overlap wholly.
    method     "direct" sums (as does "auto"), "fft" transforms.
    precision  of float32 products: None, a lax.Precision or its name.

    Raises ValueError for other shapes, modes and methods.

    >>> print(lamina.scipy.signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])))
    [ 1. 12. 23. 30.]
    """
    check_arraylike("convolve", in1, in2)
    if method in ("auto", "direct"):
        return _direct(in1, in2, mode=mode, precision=precision)
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")


def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto",
              precision: Any = None) -> Array:  # fmt: skip
    """The cross-correlation of two arrays: convolve with in2 reversed and conjugated.

    in1, in2   arrays of one rank and not empty, one of which is in no dimension the larger.
    mode       "full", "same" or "valid", as for convolve.
    method     "direct" sums (as does "auto"), "fft" transforms.
    precision  of float32 products: None, a lax.Precision or its name.

    Raises ValueError for other shapes, modes and methods.

    >>> signal = jnp.array([0.0, 0.0, 1.0, 2.0, 0.0])
    >>> print(lamina.scipy.signal.correlate(signal, jnp.array([1.0, 2.0]), mode="valid"))
    [0. 2. 5. 2.]
    """
    check_arraylike("correlate", in1, in2)
    return convolve(in1, _reversed(in2), mode, method, precision)


def convolve2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill",
               fillvalue: float = 0, precision: Any = None) -> Array:  # fmt: skip
    """convolve of matrices.

    in1, in2   matrices, one of which is in no dimension the larger.
    mode       "full", "same" or "valid", as for convolve.
    boundary   "fill": zeros lie beyond the edges.
    fillvalue  0.
    precision  of float32 products: None, a lax.Precision or its name.

    Raises NotImplementedError for other boundaries; ValueError for what is no matrix.

    >>> image, kernel = jnp.arange(9.0).reshape(3, 3), jnp.ones((2, 2))
    >>> print(lamina.scipy.signal.convolve2d(image, kernel, mode="valid"))
    [[ 8. 12.]
     [20. 24.]]
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _direct(in1, in2, mode=mode, precision=precision)


def correlate2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill",
                fillvalue: float = 0, precision: Any = None) -> Array:  # fmt: skip
    """correlate of matrices.

    in1, in2   matrices, one of which is in no dimension the larger.
    mode       "full", "same" or "valid", as for convolve.
    boundary   "fill": zeros lie beyond the edges.
    fillvalue  0.
    precision  of float32 products: None, a lax.Precision or its name.

    Raises NotImplementedError for other boundaries; ValueError for what is no matrix.

    >>> image, pattern = jnp.eye(3), jnp.eye(2)
    >>> print(lamina.scipy.signal.correlate2d(image, pattern, mode="valid"))
    [[2. 0.]
     [0. 2.]]
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    first, second = np.shape(in1), np.shape(in2)
    if mode == "same":
        return _direct(in1, _reversed(in2), mode=mode, precision=precision, correlation=True)
    out = _direct(in1, _reversed(in2), mode=mode, precision=precision)
    if mode == "valid" and first != second and all(a <= b for a, b in zip(first, second)):
        return _conjugate(out)  # the smaller slides, and that is the one conjugated
    return out


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full",
                axes: int | Sequence[int] | None = None) -> Array:  # fmt: skip
    """convolve by Fourier transforms, which costs n log n.

    in1, in2  arrays of one rank.
    mode      "full", "same" or "valid", as for convolve.
    axes      those along which to convolve; None: all. Along others sizes are equal or 1.

    Raises ValueError where ranks or sizes do not fit and for another mode.

    >>> x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])
    >>> print(lamina.scipy.signal.fftconvolve(x, y).round(3))
    [ 1. 12. 23. 30.]
    """
    check_arraylike("fftconvolve", in1, in2)
    first, second = np.shape(in1), np.shape(in2)
    if len(first) != len(second):
        raise ValueError("in1 and in2 should have the same dimensionality")
    _check_mode(mode)
    if axes is None:
        found = tuple(range(len(first)))
    else:
        given = axes if isinstance(axes, Sequence | np.ndarray) else (axes,)
        found = tuple(sorted(canonical_axis(operator.index(a), len(first)) for a in given))
    others = [d for d in range(len(first)) if d not in found]
    if any(first[d] != second[d] for d in others):
        raise ValueError(
            f"mapped axes must have same shape; got in1.shape={first} in2.shape={second} {axes=}"
        )
    return _by_transforms(in1, in2, mode, found)


# ---- how -----------------------------------------------------------------------------------------
@compiled(static=("mode", "precision", "correlation"))
def _direct(
    in1: Array, in2: Array, *, mode: str, precision: Any, correlation: bool = False
) -> Array:
    _check_mode(mode)
    x, kernel = (asarray(a) for a in promote_inexact(in1, in2))
    if x.ndim != kernel.ndim:
        raise ValueError("in1 and in2 must have the same number of dimensions")
    if x.size == 0 or kernel.size == 0:
        raise ValueError(
            "zero-size arrays not supported in convolutions, got shapes "
            f"{x.shape} and {kernel.shape}."
        )
    sizes, taps = x.shape, kernel.shape
    swap = all(a <= b for a, b in zip(sizes, taps))
    if not swap and not all(a >= b for a, b in zip(sizes, taps)):
        raise ValueError("One input must be smaller than the other in every dimension.")
    if swap:
        x, kernel = kernel, x
    # "full" has width - 1 more on either side than "valid"; "same" is a part of it, of in1's size.
    low_high = []
    for width, size, tap in zip(kernel.shape, sizes, taps):
        full = size + tap - 1
        if mode == "full":
            low_high.append((width - 1, width - 1))
        elif mode == "valid":
            low_high.append((0, 0))
        else:
            # A correlation counts its middle from the other end.
            start = tap // 2 if correlation else (tap - 1) // 2
            low_high.append((width - 1 - start, width - 1 - (full - start - size)))
    out = lax.conv_general_dilated(
        lax.expand_dims(x, (0, 1)),
        lax.expand_dims(lax.rev(kernel, range(kernel.ndim)), (0, 1)),
        (1,) * x.ndim,
        low_high,
        precision=precision,
    )
    return lax.squeeze(out, (0, 1))


@compiled(static=("mode", "axes"))
def _by_transforms(in1: ArrayLike, in2: ArrayLike, mode: str, axes: tuple[int, ...]) -> Array:
    x, y = (asarray(a) for a in promote_inexact(in1, in2))
    if mode == "valid":
        swap = all(x.shape[d] <= y.shape[d] for d in axes)
        if not swap and not all(x.shape[d] >= y.shape[d] for d in axes):
            raise ValueError(
                "For 'valid' mode, One input must be at least as large as the other in every "
                "dimension."
            )
        if swap:
            x, y = y, x
    full = [x.shape[d] + y.shape[d] - 1 for d in axes]
    if all(x.shape[d] == 1 or y.shape[d] == 1 for d in axes):
        out = x * y
    else:
        is_complex = dtypes.is_complex(get_aval(x).dtype)
        there, back = (_fft.fftn, _fft.ifftn) if is_complex else (_fft.rfftn, _fft.irfftn)
        # Longer transforms of lengths with small factors are faster; what is behind is cut off.
        fast = [_fast_length(n) for n in full]
        out = back(there(x, fast, axes) * there(y, fast, axes), fast, axes).astype(x.dtype)
    starts, limits = [0] * x.ndim, list(out.shape)
    for d, n in zip(axes, full):
        wanted = {
            "full": n, "same": x.shape[d], "valid": x.shape[d] - y.shape[d] + 1,
        }[mode]  # fmt: skip
        starts[d] = (n - wanted) // 2
        limits[d] = starts[d] + wanted
    return lax.slice(out, starts, limits)


def _fast_length(n: int) -> int:
    """The least length from n on with no prime factor above 5, even if n > 1."""
    while n > 6:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1 and n % 2 == 0:
            break
        n += 1
    return n


def _reversed(x: ArrayLike) -> Array:
    x = _conjugate(asarray(x))
    return lax.rev(x, range(x.ndim))


def _conjugate(x: Array) -> Array:
    return lax.conj(x) if dtypes.is_complex(x.dtype) else x


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")


def _check_matrices(
    name: str, in1: ArrayLike, in2: ArrayLike, boundary: str, fillvalue: float
) -> None:
    check_arraylike(name, in1, in2)
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if len(np.shape(in1)) != 2 or len(np.shape(in2)) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")
