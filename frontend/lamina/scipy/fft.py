"""scipy.fft: cosine transforms of type 2 and their inverses.

Source: Makhoul, A fast cosine transform in one and two dimensions, IEEE ASSP 28, 1980: the cosine
transform is a Fourier transform of the even elements followed by the odd ones backwards, turned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.numpy import fft as _fft
from lamina.numpy._eager import compiled as _compiled
from lamina.numpy.promotion import (
    Array,
    canonical_axis,
    check_arraylike,
    promote_inexact,
)  # fmt: skip

__all__ = ["dct", "dctn", "idct", "idctn"]


def dct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
        ) -> Array:  # fmt: skip
    """The discrete cosine transform along an axis: for each k twice the sum over j of
    x[j] cos(pi k (2 j + 1) / 2n).

    x     an array of real numbers.
    type  2.
    n     the length that the axis is cut or padded with zeros to; None: as it is.
    axis  counted from the end where negative.
    norm  None, or "ortho", which scales it to an orthogonal map.

    Raises NotImplementedError for other types, ValueError for another norm.

    >>> print(lamina.scipy.fft.dct(jnp.array([1.0, 3.0])).round(3))
    [ 8.    -2.828]
    """
    return _transform("dct", _dct, x, type, None if n is None else (n,), (axis,), norm)


def idct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
         ) -> Array:  # fmt: skip
    """The inverse of dct along an axis.

    x     an array of real numbers.
    type  2, that of the dct that is undone.
    n     the length that the axis is cut or padded with zeros to; None: as it is.
    axis  counted from the end where negative.
    norm  that of the dct: None or "ortho".

    Raises NotImplementedError for other types, ValueError for another norm.

    >>> x = jnp.array([1.0, 5.0, 2.0])
    >>> print(lamina.scipy.fft.idct(lamina.scipy.fft.dct(x)).round(3))
    [1. 5. 2.]
    """
    return _transform("idct", _idct, x, type, None if n is None else (n,), (axis,), norm)


def dctn(x: Array, type: int = 2, s: Sequence[int] | None = None,
         axes: Sequence[int] | None = None, norm: str | None = None) -> Array:  # fmt: skip
    """dct along several axes.

    x     an array of real numbers.
    type  2.
    s     the sizes that the axes are cut or padded with zeros to; None: as they are.
    axes  a sequence of ints; None: all.
    norm  None or "ortho".

    Raises ValueError where there is not one size for each axis, or another norm;
    NotImplementedError for other types.

    >>> print(lamina.scipy.fft.dctn(jnp.ones((2, 2)))[0, 0].round(3))
    16.0
    """
    return _transform("dctn", _dct, x, type, s, axes, norm)


def idctn(x: Array, type: int = 2, s: Sequence[int] | None = None,
          axes: Sequence[int] | None = None, norm: str | None = None) -> Array:  # fmt: skip
    """The inverse of dctn.

    x     an array of real numbers.
    type  2.
    s     the sizes that the axes are cut or padded with zeros to; None: as they are.
    axes  a sequence of ints; None: all.
    norm  that of the dctn: None or "ortho".

    Raises ValueError where there is not one size for each axis, or another norm;
    NotImplementedError for other types.

    >>> x = jnp.array([[1.0, 2.0], [3.0, 5.0]])
    >>> print(lamina.scipy.fft.idctn(lamina.scipy.fft.dctn(x)).round(3))
    [[1. 2.]
     [3. 5.]]
    """
    return _transform("idctn", _idct, x, type, s, axes, norm)


def _transform(
    name: str,
    along_last: Callable[[Array, str | None], Array],
    x: Array,
    type: int,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str | None,
) -> Array:
    check_arraylike(name, x)
    if type != 2:
        raise NotImplementedError(
            f"{library}.scipy.fft.{name}: only type 2 is implemented, got {type}"
        )
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{library}.scipy.fft.{name}: {norm=!r} is not implemented")
    rank = len(np.shape(x))
    if axes is None and s is not None and len(s) > rank:
        raise ValueError(
            f"{library}.scipy.fft.{name}: s must have at most x.ndim ({rank}) elements, got {len(s)}"
        )
    last = range(0 if s is None else rank - len(s), rank)
    found = tuple(canonical_axis(a, rank) for a in (last if axes is None else axes))
    if s is not None and len(s) != len(found):
        raise ValueError(f"{library}.scipy.fft.{name}: s={tuple(s)} has not one size for each of the "
                         f"axes {found}")  # fmt: skip
    return _along(x, along_last, found, None if s is None else tuple(s), norm)


@_compiled(static=("along_last", "axes", "s", "norm"))
def _along(
    x: Array,
    along_last: Callable[[Array, str | None], Array],
    axes: tuple[int, ...],
    s: tuple[int, ...] | None,
    norm: str | None,
) -> Array:
    (y,) = promote_inexact(x)
    if dtypes.is_complex(get_aval(y).dtype):
        parts = [_along(part, along_last, axes, s, norm) for part in (lax.real(y), lax.imag(y))]
        return lax.complex(*parts)
    for number, axis in enumerate(axes):
        order = [d for d in range(y.ndim) if d != axis] + [axis]
        y = lax.transpose(y, order)
        if s is not None:
            y = _fft._fitted(y, (s[number],))
        y = lax.transpose(along_last(y, norm), [int(d) for d in np.argsort(order)])
    return y


def _dct(x: Array, norm: str | None) -> Array:
    n, last = x.shape[-1], x.ndim - 1
    even = lax.slice_in_dim(x, 0, n, 2, last)
    odd = lax.slice_in_dim(x, 1, n, 2, last) if n > 1 else None
    v = even if odd is None else lax.concatenate([even, lax.rev(odd, (last,))], last)
    half = _fft.rfft(v)
    cosine, sine = _turns(n, half.dtype)
    re, im = lax.real(half), lax.imag(half)
    first = 2 * (re * cosine - im * sine)
    second = -2 * (re * sine + im * cosine)
    mirrored = lax.rev(lax.slice_in_dim(second, 1, (n - 1) // 2 + 1, 1, last), (last,))
    out = lax.concatenate([first, mirrored], last)
    return _scaled(out, norm, inverse=False).astype(x.dtype)


def _idct(x: Array, norm: str | None) -> Array:
    n, last = x.shape[-1], x.ndim - 1
    x = _scaled(x, norm, inverse=True)
    first = lax.slice_in_dim(x, 0, n // 2 + 1, 1, last)
    # element n - k, and 0 for k = 0
    back = lax.rev(lax.slice_in_dim(x, n - n // 2, n, 1, last), (last,))
    back = lax.pad(back, x.dtype.type(0), [(0, 0, 0)] * last + [(1, 0, 0)])
    cosine, sine = _turns(n, dtypes.complex_dtype(_fft._complex(x).real.dtype))
    re = (first * cosine - back * sine) * 0.5
    im = -(first * sine + back * cosine) * 0.5
    v = _fft.irfft(lax.complex(re, im), n).astype(x.dtype)
    even = lax.slice_in_dim(v, 0, (n + 1) // 2, 1, last)
    odd = lax.rev(lax.slice_in_dim(v, (n + 1) // 2, n, 1, last), (last,))
    if n % 2:
        odd = lax.pad(odd, v.dtype.type(0), [(0, 0, 0)] * last + [(0, 1, 0)])
    pairs = lax.concatenate([lax.expand_dims(part, (last + 1,)) for part in (even, odd)], last + 1)
    return lax.slice_in_dim(lax.reshape(pairs, (*x.shape[:-1], 2 * even.shape[-1])), 0, n, 1, last)


def _turns(n: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary parts of exp(-i pi k / 2n) for k up to n // 2."""
    angle = -np.pi * np.arange(n // 2 + 1) / (2 * n)
    real = dtypes.real_dtype(dtype)
    return np.cos(angle).astype(real), np.sin(angle).astype(real)


def _scaled(x: Array, norm: str | None, *, inverse: bool) -> Array:
    if norm != "ortho":
        return x
    n = x.shape[-1]
    factors = np.full(n, np.sqrt(0.5 / n))
    factors[0] = np.sqrt(0.25 / n)
    return x * (1 / factors if inverse else factors).astype(x.dtype)
