"""numpy.fft: discrete Fourier transforms, their frequencies and shifts."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.devices import device_put
from lamina.lax.fft import FftType
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.manipulation import moveaxis
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    promote_inexact,
    requested_dtype,
)  # fmt: skip
from lamina.numpy.rearranging import roll

__all__ = [
    "fft", "ifft", "rfft", "irfft", "hfft", "ihfft",
    "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn",
    "fftfreq", "rfftfreq", "fftshift", "ifftshift",
]  # fmt: skip

Shape = Sequence[int]


# ---- one axis ----------------------------------------------------------------------------------
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform along an axis, cut or padded with zeros to length n. norm ("backward", "ortho",
    "forward") says which direction divides by the length: the inverse, both by its root, this.

    a     an array of numbers
    n     the length; None: that of a
    axis  the axis
    norm  "backward", "ortho" or "forward"; None: "backward"

    Raises ValueError for another norm and for an n below 1.

    >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _one_axis("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of fft.

    a     an array of numbers
    n     the length; None: that of a
    axis  the axis
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.ifft(jnp.array([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _one_axis("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first n // 2 + 1 numbers of the transform of real numbers; the rest are conjugates.

    a     an array of real numbers; ValueError of complex ones
    n     the length; None: that of a
    axis  the axis
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """
    return _one_axis("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of rfft: n real numbers, by default an even number.

    a     an array of numbers
    n     the length of the result; None: 2 (m - 1) for m numbers
    axis  the axis
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.irfft(jnp.array([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _one_axis("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The n real numbers whose inverse transform begins with a: what irfft is for the forward
    direction.

    a     an array of numbers
    n     the length of the result; None: 2 (m - 1) for m numbers
    axis  the axis
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.hfft(jnp.array([1.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    (a,) = check_arraylike("hfft", a)
    return _one_axis("hfft", FftType.IRFFT, lax.conj(_complex(a)), n, axis, _swapped(norm))


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of hfft.

    a     an array of real numbers
    n     the length; None: that of a
    axis  the axis
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.ihfft(jnp.array([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0]
    """
    return lax.conj(_one_axis("ihfft", FftType.RFFT, a, n, axis, _swapped(norm)))


# ---- several axes ------------------------------------------------------------------------------
def fft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1),
         norm: str | None = None) -> Array:  # fmt: skip
    """The transform over two axes, cut or padded to the sizes s.

    a     an array of numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.fft2(jnp.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _two_axes("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:  # fmt: skip
    """The inverse of fft2.

    a     an array of numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.ifft2(jnp.ones((2, 2))).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _two_axes("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:  # fmt: skip
    """The first half, along the last axis, of the transform of real numbers over two axes.

    a     an array of real numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _two_axes("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1),
           norm: str | None = None) -> Array:  # fmt: skip
    """The inverse of rfft2.

    a     an array of numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.irfft2(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _two_axes("irfft2", FftType.IRFFT, a, s, axes, norm)


def fftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None) -> Array:  # fmt: skip
    """The transform over axes (None: the last len(s), or all), cut or padded to the sizes s.

    a     an array of numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.fftn(jnp.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:  # fmt: skip
    """The inverse of fftn.

    a     an array of numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.ifftn(jnp.ones((2, 2))).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:  # fmt: skip
    """The first half, along the last of the axes, of the transform of real numbers.

    a     an array of real numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None,
           norm: str | None = None) -> Array:  # fmt: skip
    """The inverse of rfftn.

    a     an array of numbers
    s     the length along each of axes; None: those of a
    axes  the axes
    norm  "backward", "ortho" or "forward"; None: "backward"

    >>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


# ---- what all transforms do --------------------------------------------------------------------
def _one_axis(
    name: str, kind: FftType, a: ArrayLike, n: int | None, axis: int, norm: str | None
) -> Array:
    if isinstance(axis, tuple | list):
        raise ValueError(f"{library}.numpy.fft.{name} does not support multiple axes. Please use "
                         f"{library}.numpy.fft.{name}n. Got axis = {axis!r}.")  # fmt: skip
    s = None if n is None else (n,)
    return _transform(name, kind, a, s, (axis,), norm)


def _two_axes(
    name: str, kind: FftType, a: ArrayLike, s: Shape | None, axes: Sequence[int], norm: str | None
) -> Array:
    if len(axes) != 2:
        raise ValueError(f"{library}.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return _transform(name, kind, a, s, axes, norm)


def _transform(
    name: str,
    kind: FftType,
    a: ArrayLike,
    s: Shape | None,
    axes: Sequence[int] | None,
    norm: str | None,
) -> Array:
    (a,) = check_arraylike(name, a)
    sizes = None if s is None else tuple(operator.index(n) for n in s)
    if sizes is not None and any(n <= 0 for n in sizes):
        given = f"s={s}" if name.endswith(("2", "n")) else f"n={sizes[0]}"
        raise ValueError(
            f"{library}.numpy.fft.{name}: Shape should be positive, got {given}"
        )
    if sizes is not None and axes is not None and len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    rank = get_aval(a).ndim
    if axes is None:
        found = tuple(range(rank - len(sizes) if sizes is not None else 0, rank))
    else:
        found = tuple(canonical_axis(axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise ValueError(
            f"{library}.numpy.fft.{name} does not support repeated axes. Got axes {axes}."
        )
    return _transformed(a, kind, sizes, found, norm)


@compiled(static=("kind", "sizes", "axes", "norm"))
def _transformed(
    a: ArrayLike,
    kind: FftType,
    sizes: tuple[int, ...] | None,
    axes: tuple[int, ...],
    norm: str | None,
) -> Array:
    x = asarray(a)
    last = tuple(range(x.ndim - len(axes), x.ndim))
    x = moveaxis(x, axes, last)
    if sizes is None:
        sizes = x.shape[x.ndim - len(axes) :]
        if kind == FftType.IRFFT and sizes:
            sizes = (*sizes[:-1], max(0, 2 * (sizes[-1] - 1)))
    taken = sizes
    if kind == FftType.IRFFT and sizes:
        taken = (*sizes[:-1], sizes[-1] // 2 + 1)
    x = _fitted(x, taken)
    x = _over_last_axes(x, kind, sizes)
    forward = kind in (FftType.FFT, FftType.RFFT)
    count = float(math.prod(sizes))
    if norm in ("ortho", "forward") and count:
        factor = math.sqrt(count) if norm == "ortho" else count
        x = x * (1 / factor if forward else factor)
    return moveaxis(x, last, axes)


def _fitted(x: Array, sizes: Shape) -> Array:
    """The last axes of x cut, or padded with zeros, to these sizes."""
    first = x.ndim - len(sizes)
    if x.shape[first:] == tuple(sizes):
        return x
    limits = [*x.shape[:first], *(min(n, m) for n, m in zip(x.shape[first:], sizes))]
    x = lax.slice(x, (0,) * x.ndim, limits)
    config = [(0, 0, 0)] * first + [(0, m - n, 0) for n, m in zip(limits[first:], sizes)]
    return lax.pad(x, x.dtype.type(0), config)


def _over_last_axes(x: Array, kind: FftType, sizes: tuple[int, ...]) -> Array:
    """lax.fft over any number of axes: the rest in rounds of three."""
    if len(sizes) <= 3:
        return lax.fft(x, kind, sizes)
    outer, inner = sizes[:-3], sizes[-3:]
    complex_kind = {FftType.RFFT: FftType.FFT, FftType.IRFFT: FftType.IFFT}.get(kind, kind)

    def rest(x: Array) -> Array:
        count = len(outer)
        source = tuple(range(x.ndim - count - 3, x.ndim - 3))
        target = tuple(range(x.ndim - count, x.ndim))
        moved = _over_last_axes(moveaxis(x, source, target), complex_kind, outer)
        return moveaxis(moved, target, source)

    if kind == FftType.IRFFT:
        return lax.fft(rest(x), kind, inner)
    return rest(lax.fft(x, kind, inner))


def _complex(a: ArrayLike) -> Array:
    (x,) = promote_inexact(a)
    dtype = get_aval(x).dtype
    if dtypes.is_complex(dtype):
        return asarray(x)
    wide = np.float64 if dtype == np.float64 else np.float32
    return lax.convert_element_type(x, dtypes.complex_dtype(np.dtype(wide)))


def _swapped(norm: str | None) -> str | None:
    """The norm under which the inverse direction scales as the forward one should."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


# ---- frequencies and shifts --------------------------------------------------------------------
def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """The frequencies of fft's n numbers, for samples d apart.

    n       how many numbers are transformed, a static int
    d       the distance of samples
    dtype   the dtype of the result
    device  where to put it: a Device or a Sharding; None: the default device

    >>> jnp.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies("fftfreq", n, d, dtype, device, two_sided=True)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """The frequencies of rfft's n // 2 + 1 numbers, for samples d apart.

    n       how many numbers are transformed, a static int
    d       the distance of samples
    dtype   the dtype of the result
    device  where to put it: a Device or a Sharding; None: the default device

    >>> jnp.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies("rfftfreq", n, d, dtype, device, two_sided=False)


def _frequencies(
    name: str, n: int, d: ArrayLike, dtype: DTypeLike | None, device: Any, *, two_sided: bool
) -> Array:
    if isinstance(n, tuple | list):
        raise ValueError(f"The n argument of {library}.numpy.fft.{name} only takes an int. Got n = "
                         f"{list(n)}.")  # fmt: skip
    if isinstance(d, tuple | list):
        raise ValueError(f"The d argument of {library}.numpy.fft.{name} only takes a single value. "
                         f"Got d = {list(d)}.")  # fmt: skip
    of = requested_dtype(dtype, name, keep=dtypes.default_dtype(float))
    k = np.arange(n // 2 + 1)
    if two_sided:
        k = np.roll(np.arange(n) - n // 2, -(n // 2))
    out = asarray(k.astype(of)) / (asarray(d, of) * n)
    return out if device is None else device_put(out, device)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """x with the zero frequency, that comes first, in the middle of each of the axes (None:
    all).

    x     an array
    axes  an axis, several, or None for all

    >>> jnp.fft.fftshift(jnp.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of fftshift.

    x     an array
    axes  an axis, several, or None for all

    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1])).tolist()
    [0, 1, -2, -1]
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(name: str, x: ArrayLike, axes: int | Sequence[int] | None, by: Any) -> Array:
    (x,) = check_arraylike(name, x)
    shape = np.shape(x)
    found = canonical_axes(axes, len(shape))
    return roll(x, tuple(by(shape[axis]) for axis in found), found)
