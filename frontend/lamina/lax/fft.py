"""fft: discrete Fourier transforms over the last axes, of complex numbers and of real ones."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import LINEAR, Primitive, ShapedArray, dtypes, get_aval
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.batching_rules import move_axis
from lamina.lax.checks import scalar_like, static_ints


class FftType(enum.IntEnum):
    """Which transform: forward or inverse, of complex numbers or between them and real ones."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


# ---- user function -----------------------------------------------------------------------------
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The Fourier transform of x over its last axes.

    x            an array of complex numbers, of real ones for RFFT.
    fft_type     a lax.FftType or its name: FFT, IFFT, RFFT, IRFFT. RFFT gives the first half, n //
                 2 + 1, of the last axis, for the rest are conjugates of it; IRFFT is its inverse.
                 Inverse transforms divide by the number of elements.
    fft_lengths  the sizes of the last one to three axes, which are transformed; for IRFFT with the
                 n of the result.

    Raises ValueError where fft_lengths are not the sizes of x or the type is unknown.

    >>> print(lax.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), "RFFT", (4,)).real)
    [10. -2. -2.]
    """
    kind = _fft_type(fft_type)
    lengths = static_ints("fft", "fft_lengths", fft_lengths)
    dtype = get_aval(x).dtype
    if kind == FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError("only real valued inputs supported for rfft")
        x = lax.convert_element_type(x, _computed(dtype))
    else:
        x = lax.convert_element_type(x, dtypes.complex_dtype(_computed(dtype)))
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths) if lengths else x


def _fft_type(fft_type: FftType | str) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if not isinstance(fft_type, str):
        raise TypeError(f"Unknown FFT type value '{fft_type}'")
    if fft_type not in (*FftType.__members__, *(n.lower() for n in FftType.__members__)):
        raise ValueError(f"Unknown FFT type '{fft_type}'")
    return FftType[fft_type.upper()]


def _computed(dtype: np.dtype) -> np.dtype:
    """The real dtype that transforms of a dtype compute in: f32 or f64."""
    real = dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype
    double = real.itemsize == 8 and real.kind in "fiu"
    return dtypes.canonicalize(np.float64 if double else np.float32)


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(
    x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> ShapedArray:
    n = len(fft_lengths)
    if n > 3:
        raise ValueError(f"[fft] transforms are over 1 to 3 axes, got fft_lengths={fft_lengths}")
    if n > len(x.shape):
        raise ValueError(f"[fft] {x.str_short()} has fewer axes than fft_lengths={fft_lengths}")
    expected = fft_lengths
    if fft_type == FftType.IRFFT:
        expected = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    if x.shape[len(x.shape) - n :] != expected:
        raise ValueError(
            f"[fft] {fft_type.name} with fft_lengths={fft_lengths} takes an operand whose last "
            f"axes are {expected}, got {x.str_short()}"
        )
    outer = x.shape[: len(x.shape) - n]
    if fft_type == FftType.RFFT:
        half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else 0)
        return ShapedArray((*outer, *half), dtypes.complex_dtype(x.dtype))
    if fft_type == FftType.IRFFT:
        return ShapedArray((*outer, *fft_lengths), dtypes.real_dtype(x.dtype))
    return ShapedArray(x.shape, x.dtype)


def _lowering(ctx: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    (out,) = ctx.avals_out
    if not out.size or not ctx.avals_in[0].size:
        return hlo.full(0, out.shape, out.dtype)
    return hlo.fft(x, fft_type.name, fft_lengths)


def _transpose(ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> list[Any]:
    if fft_type == FftType.RFFT:
        return [_rfft_transpose(ct, fft_lengths)]
    if fft_type == FftType.IRFFT:
        return [_irfft_transpose(ct, fft_lengths)]
    return [fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)]  # a symmetric matrix


def _rfft_transpose(ct: Any, lengths: tuple[int, ...]) -> Any:
    """Half of the outputs weigh in: the others, put back, are zero."""
    missing = lengths[-1] - ct.shape[-1]
    config = [(0, 0, 0)] * (len(ct.shape) - 1) + [(0, missing, 0)]
    full = lax.pad(ct, scalar_like(ct, 0), config)
    return lax.real(fft_p.bind(full, fft_type=FftType.FFT, fft_lengths=lengths))


def _irfft_transpose(ct: Any, lengths: tuple[int, ...]) -> Any:
    """Each input stands for itself and for its conjugate, but for those that are their own."""
    out = lax.conj(fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=lengths))
    size, last = out.shape[-1], len(out.shape) - 1
    place = lax.broadcasted_iota(np.int32, out.shape, last)
    single = lax.eq(place, np.int32(0))
    if lengths[-1] % 2 == 0:
        single = lax.bitwise_or(single, lax.eq(place, np.int32(size - 1)))
    real = ct.dtype.type
    scale = 1.0 / math.prod(lengths)
    weight = lax.select_n(
        single, lax.full(out.shape, real(2 * scale)), lax.full(out.shape, real(scale))
    )
    return lax.mul(out, lax.convert_element_type(weight, out.dtype))


def _batching(
    args: Any, dims: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> tuple[Any, int]:
    (x,), (d,) = args, dims
    if d >= len(x.shape) - len(fft_lengths):
        x, d = move_axis(x, d, 0), 0
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), d


fft_p: Primitive = Primitive(
    "fft",
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=LINEAR,
    transpose=_transpose,
    batching=_batching,
)
