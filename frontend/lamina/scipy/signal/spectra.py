"""Spectra of overlapping pieces of a signal, their averages, and the signal back from them.

Source: Welch, IEEE Trans. Audio Electroacoust. 15, 1967; for the inverse by least squares, Griffin
and Lim, IEEE ASSP 32, 1984.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy import fft as _fft
from lamina.numpy._eager import compiled
from lamina.numpy.averages import mean
from lamina.numpy.creation import asarray, zeros
from lamina.numpy.manipulation import moveaxis
from lamina.numpy.padding import pad
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    promote_inexact,
)  # fmt: skip
from lamina.numpy.quantiles import median
from lamina.numpy.selection import where
from lamina.scipy.signal.trends import detrend as _detrend
from lamina.scipy.signal.windows import get_window

Detrend = bool | str | Callable[[Array], Array]
_BOUNDARIES = {"even": "reflect", "odd": "reflect", "constant": "edge", "zeros": "constant"}


def stft(x: Array, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = False,
         return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1) -> tuple[Array, Array, Array]:  # fmt: skip
    """The short-time Fourier transform: frequencies, times, and the transforms of windowed pieces
    of x. The frequencies come where the samples were, the times last.

    x                an array of numbers.
    fs               samples in a unit of time.
    window           a window's name, a (name, parameter) tuple, or a vector of nperseg numbers.
    nperseg          the length of a piece.
    noverlap         how many samples neighbours share; None: half.
    nfft             the length that pieces are padded to; None: nperseg.
    detrend          what is taken from each piece: "constant", "linear", a function, or False.
    return_onesided  gives frequencies from 0 on only, where x is real.
    boundary         how x is extended by half a piece at its ends: "even", "odd", "constant",
                     "zeros" or None.
    padded           fills the last piece with zeros.
    axis             the one that goes over samples.

    Raises ValueError where lengths do not fit and for unknown names.

    >>> tone = jnp.sin(2 * jnp.pi * 0.25 * jnp.arange(64))
    >>> frequencies, times, z = lamina.scipy.signal.stft(tone, nperseg=16)
    >>> print(z.shape, frequencies[jnp.argmax(abs(z[:, 4]))])
    (9, 9) 0.25
    """
    check_arraylike("stft", x)
    plan, signals, win = _plan(x, None, window, nperseg, noverlap, nfft, detrend, return_onesided,
                               "spectrum", axis, boundary, padded)  # fmt: skip
    return _results(plan, signals, win, fs, density=False)


def csd(x: Array, y: ArrayLike | None, fs: ArrayLike = 1.0, window: Any = "hann",
        nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
        detrend: Detrend = "constant", return_onesided: bool = True, scaling: str = "density",
        axis: int = -1, average: str = "mean") -> tuple[Array, Array]:  # fmt: skip
    """Frequencies and the cross power spectral density of two signals, by Welch's method.

    x, y             arrays of numbers, which broadcast; y is None: x itself.
    fs               samples in a unit of time.
    window           a window's name, a (name, parameter) tuple, or a vector of nperseg numbers.
    nperseg          the length of a piece; None: 256, or the window's length.
    noverlap         how many samples neighbours share; None: half.
    nfft             the length that pieces are padded to; None: nperseg.
    detrend          what is taken from each piece: "constant", "linear", a function, or False.
    return_onesided  gives frequencies from 0 on only, where signals are real.
    scaling          "density" (per unit of frequency) or "spectrum".
    axis             the one that goes over samples.
    average          over pieces: "mean" or "median".

    Raises ValueError where lengths do not fit and for unknown names.

    >>> tone = jnp.sin(2 * jnp.pi * 0.25 * jnp.arange(64))
    >>> frequencies, density = lamina.scipy.signal.csd(tone, 2 * tone, nperseg=16)
    >>> print(frequencies[jnp.argmax(abs(density))])
    0.25
    """
    check_arraylike("csd", *([x] if y is None else [x, y]))
    plan, signals, win = _plan(x, y, window, nperseg, noverlap, nfft, detrend, return_onesided,
                               scaling, axis, None, False)  # fmt: skip
    frequencies, _, power = _results(plan, signals, win, fs, density=True)
    if y is not None:
        power = lax.convert_element_type(power, dtypes.complex_dtype(_real(power.dtype)))
    if power.ndim >= 2 and power.size:
        power = _averaged(power, average)
    return frequencies, power


def welch(x: Array, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:  # fmt: skip
    """Frequencies and the power spectral density of a signal (Welch, 1967): csd of x with itself.

    x                an array of numbers.
    fs               samples in a unit of time.
    window           a window's name, a (name, parameter) tuple, or a vector of nperseg numbers.
    nperseg          the length of a piece; None: 256, or the window's length.
    noverlap         how many samples neighbours share; None: half.
    nfft             the length that pieces are padded to; None: nperseg.
    detrend          what is taken from each piece: "constant", "linear", a function, or False.
    return_onesided  gives frequencies from 0 on only, where x is real.
    scaling          "density" (per unit of frequency) or "spectrum".
    axis             the one that goes over samples.
    average          over pieces: "mean" or "median".

    Raises ValueError where lengths do not fit and for unknown names.

    >>> tone = jnp.sin(2 * jnp.pi * 0.25 * jnp.arange(64))
    >>> frequencies, density = lamina.scipy.signal.welch(tone, nperseg=16)
    >>> print(frequencies.shape, frequencies[jnp.argmax(density)])
    (9,) 0.25
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
               axis, average)  # fmt: skip


def istft(Zxx: Array, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
          boundary: bool = True, time_axis: int = -1, freq_axis: int = -2
          ) -> tuple[Array, Array]:  # fmt: skip
    """Times, and the signal whose stft is Zxx.

    Zxx                  complex numbers, of two dimensions or more.
    fs                   samples in a unit of time.
    window               the one that stft was given.
    nperseg              the length of a piece; None: what the number of frequencies says.
    noverlap             how many samples neighbours share; None: half.
    nfft                 the length that pieces were padded to; None: nperseg.
    input_onesided       Zxx has frequencies from 0 on only.
    boundary             the signal had been extended at its ends.
    time_axis, freq_axis  those that go over times and frequencies.

    Raises ValueError where lengths or axes do not fit.

    >>> signal = jnp.arange(32.0)
    >>> _, _, z = lamina.scipy.signal.stft(signal, nperseg=8)
    >>> times, back = lamina.scipy.signal.istft(z, nperseg=8)
    >>> print(jnp.allclose(back, signal, atol=1e-4))
    True
    """
    check_arraylike("istft", Zxx)
    spectra = asarray(Zxx)
    if spectra.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq_axis = canonical_axis(freq_axis, spectra.ndim)
    time_axis = canonical_axis(time_axis, spectra.ndim)
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    bins = spectra.shape[freq_axis]
    default = 2 * (bins - 1) if input_onesided else bins
    size = _static(nperseg or default, "nperseg")
    if size < 1:
        raise ValueError("nperseg must be a positive integer")
    odd = input_onesided and size == default + 1
    length = default + odd if nfft is None else _static(nfft, "nfft")
    if length < size:
        raise ValueError(f"FFT length ({length}) must be longer than nperseg ({size}).")
    overlap = _static(noverlap or size // 2, "noverlap")
    if overlap >= size:
        raise ValueError("noverlap must be less than nperseg.")
    win = _window(window, size)
    if win.ndim != 1:
        raise ValueError("window must be 1-D")
    if win.shape[0] != size:
        raise ValueError(f"window must have length of {size}")
    x = _joined(spectra, win, freq_axis, time_axis, bool(input_onesided), length, size - overlap,
                bool(boundary))  # fmt: skip
    times = lax.iota(_real(x.dtype), x.shape[0]) / fs
    return times, x


# ---- pieces ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Plan:
    """What is fixed before a signal is cut: sizes, and what happens to each piece."""

    size: int
    step: int
    length: int
    axis: int
    one_sided: bool
    scaling: str
    detrend: Detrend
    boundary: str | None
    padded: bool


def _plan(
    x: ArrayLike, y: ArrayLike | None, window: Any, nperseg: int | None, noverlap: int | None,
    nfft: int | None, detrend: Detrend, one_sided: bool, scaling: str, axis: int,
    boundary: str | None, padded: bool,
) -> tuple[_Plan, list[Array], Any]:  # fmt: skip
    """The plan, the signals in one dtype, and the window."""
    if boundary is not None and boundary not in _BOUNDARIES:
        raise ValueError(
            f"Unknown boundary option '{boundary}', must be one of: {[*_BOUNDARIES, None]}"
        )
    signals = [asarray(a) for a in promote_inexact(*([x] if y is None else [x, y]))]
    axis = canonical_axis(operator.index(axis), signals[0].ndim)
    if len(signals) == 2:
        if signals[0].ndim != signals[1].ndim:
            raise ValueError("two-arguments must have the same rank "
                             f"({signals[0].ndim} vs {signals[1].ndim}).")  # fmt: skip
        try:
            broadcast_shapes(*(s.shape[:axis] + s.shape[axis + 1 :] for s in signals))
        except ValueError as error:
            raise ValueError("x and y cannot be broadcast together.") from error
    size = None if nperseg is None else _static(nperseg, "nperseg")
    if size is not None and size < 1:
        raise ValueError("nperseg must be a positive integer")
    size, win = _piece(window, size, signals[0].shape[axis], _real(signals[0].dtype))
    overlap = size // 2 if noverlap is None else _static(noverlap, "noverlap")
    length = size if nfft is None else _static(nfft, "nfft")
    if length < size:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    if overlap >= size:
        raise ValueError("noverlap must be less than nperseg.")
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}")
    if detrend and not isinstance(detrend, str) and not callable(detrend):
        raise ValueError(f"Unsupported detrend type: {detrend}")
    if one_sided and any(dtypes.is_complex(s.dtype) for s in (*signals, asarray(win))):
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)
        one_sided = False
    plan = _Plan(size, size - overlap, length, axis, bool(one_sided), scaling, detrend, boundary,
                 bool(padded))  # fmt: skip
    return plan, signals, win


def _piece(window: Any, size: int | None, length: int, dtype: np.dtype) -> tuple[int, Any]:
    """The size of the pieces and the window."""
    if isinstance(window, str | tuple):
        size = length if size is None else size
        if size > length > 0:
            warnings.warn(f"nperseg = {size} is greater than input length = {length}, using "
                          f"nperseg = {length}", stacklevel=4)  # fmt: skip
            size = length
        return size, get_window(window, size).astype(dtype)
    win = asarray(window)
    if win.ndim != 1:
        raise ValueError("window must be 1-D")
    if length < win.shape[0]:
        raise ValueError("window is longer than input signal")
    if size is not None and size != win.shape[0]:
        raise ValueError("value specified for nperseg is different from length of window")
    return win.shape[0], win


def _window(window: Any, size: int) -> Any:
    return get_window(window, size) if isinstance(window, str | tuple) else asarray(window)


def _results(
    plan: _Plan, signals: list[Array], win: Any, fs: ArrayLike, *, density: bool
) -> tuple[Array, Array, Array]:
    real = _real(signals[0].dtype)
    if any(s.size == 0 for s in signals):
        outer = broadcast_shapes(
            *(s.shape[: plan.axis] + s.shape[plan.axis + 1 :] for s in signals)
        )
        least = min(s.shape[plan.axis] for s in signals)
        shape = (*outer[: plan.axis], least, *outer[plan.axis :])
        return zeros(shape, real), zeros(shape, real), zeros(shape, dtypes.complex_dtype(real))
    frequencies = _fft.rfftfreq if plan.one_sided else _fft.fftfreq
    spectra = _spectra(signals, win, fs, plan, density)
    samples = max(s.shape[plan.axis] for s in signals)
    reach = _extended(plan, samples)
    middle = np.arange(plan.size / 2, reach - plan.size / 2 + 1, plan.step)
    if plan.boundary is not None:
        middle = middle - plan.size / 2
    # divided as numbers of an array are, whatever fs is
    times = asarray(middle.astype(real)) / fs
    return frequencies(plan.length, 1 / fs, dtype=real), times, spectra


def _extended(plan: _Plan, samples: int) -> int:
    """How long a signal is once it has been extended and padded."""
    if plan.boundary is not None:
        samples += 2 * (plan.size // 2)
    if plan.padded:
        samples += (-(samples - plan.size) % plan.step) % plan.size
    return samples


@compiled(static=("plan", "density"))
def _spectra(signals: list[Array], win: Array, fs: ArrayLike, plan: _Plan, density: bool) -> Array:
    """Transforms of all pieces, or their products; frequencies at plan.axis, pieces last."""
    win = asarray(win)
    length = max(s.shape[plan.axis] for s in signals)
    transforms = []
    for signal in signals:
        x = moveaxis(signal, plan.axis, -1)
        x = _at_ends(x, 0, length - x.shape[-1])
        transforms.append(_pieces_transformed(x, win, plan))
    result = transforms[0]
    if density:
        result = lax.conj(result) * transforms[-1]
    if plan.scaling == "density":
        scale = 1.0 / (asarray(fs) * (win * win).sum())
    else:
        scale = 1.0 / win.sum() ** 2
    scale = scale if density else lax.sqrt(asarray(scale))
    real = _real(signals[0].dtype)
    result = result * lax.convert_element_type(scale, result.dtype)
    if plan.one_sided and density:
        # Each but the first, and but the last of an even length, stands for two.
        doubled = np.full(result.shape[-1], 2, result.dtype)
        doubled[0] = 1
        if plan.length % 2 == 0:
            doubled[-1] = 1
        result = result * doubled
    result = lax.convert_element_type(result, dtypes.complex_dtype(real))
    if density and len(signals) == 1:
        result = lax.real(result)
    return moveaxis(result, -1, plan.axis)


def _pieces_transformed(x: Array, win: Array, plan: _Plan) -> Array:
    """[..., samples] -> [..., pieces, frequencies]."""
    half = plan.size // 2
    if plan.boundary is not None and half:
        extended = pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], _BOUNDARIES[plan.boundary])
        if plan.boundary == "odd":
            if half > x.shape[-1] - 1:
                raise ValueError(f"The extension length n ({half}) is too big. It must not exceed "
                                 f"x.shape[axis]-1, which is {x.shape[-1] - 1}.")  # fmt: skip
            ends = [2 * x[..., :1] - extended[..., :half], x,
                    2 * x[..., -1:] - extended[..., x.shape[-1] + half :]]  # fmt: skip
            extended = lax.concatenate(ends, x.ndim - 1)
        x = extended
    if plan.padded:
        x = _at_ends(x, 0, (-(x.shape[-1] - plan.size) % plan.step) % plan.size)
    count = (x.shape[-1] - plan.size) // plan.step + 1
    places = np.arange(count)[:, None] * plan.step + np.arange(plan.size)
    pieces = x[..., places]
    if isinstance(plan.detrend, str):
        pieces = _detrend(pieces, -1, plan.detrend)
    elif callable(plan.detrend):
        pieces = plan.detrend(pieces)
    pieces = pieces * win
    if plan.one_sided:
        return _fft.rfft(pieces, plan.length)
    return _fft.fft(pieces, plan.length)


def _averaged(power: Array, average: str) -> Array:
    count = power.shape[-1]
    if count == 1:
        return power[..., 0]
    if average == "mean":
        return mean(power, -1)
    if average != "median":
        raise ValueError(f'average must be "median" or "mean", got {average}')
    # the expected median of `count` numbers drawn from an exponential distribution of mean 1
    even = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    bias = 1 + np.sum(1 / (even + 1) - 1 / even)
    if dtypes.is_complex(power.dtype):
        parts = [median(part, axis=-1) for part in (lax.real(power), lax.imag(power))]
        return lax.complex(*parts) / bias
    return median(power, axis=-1) / bias


# ---- and back ----------------------------------------------------------------------------------
@compiled(static=("freq_axis", "time_axis", "one_sided", "length", "step", "boundary"))
def _joined(
    spectra: Array, win: Array, freq_axis: int, time_axis: int, one_sided: bool, length: int,
    step: int, boundary: bool,
) -> Array:  # fmt: skip
    rank = spectra.ndim
    x = moveaxis(spectra, (time_axis, freq_axis), (-2, -1))
    pieces = _fft.irfft(x, length) if one_sided else _fft.ifft(x, length)
    win = lax.convert_element_type(win, _kind_of(win, _real(pieces.dtype)))
    size = win.shape[0]
    pieces = pieces[..., :size] * win.sum()
    signal = _overlapped(pieces * win, step)
    weight = _overlapped(lax.broadcast(win * win, (pieces.shape[-2],)), step)
    if boundary and size // 2:
        signal, weight = (v[..., size // 2 : -(size // 2)] for v in (signal, weight))
    signal = signal / where(weight > 1e-10, weight, np.ones((), weight.dtype))
    if rank > 2 and time_axis != rank - 1:
        return moveaxis(signal, -1, time_axis - (freq_axis < time_axis))
    return signal


def _overlapped(pieces: Array, step: int) -> Array:
    """[..., count, size] -> [..., step * (count - 1) + size]: the sum of pieces, each `step` after
    the one before."""
    count, size = pieces.shape[-2:]
    total = step * (count - 1) + size
    parts = -(-size // step)  # of one piece, each as long as a step
    x = _at_ends(pieces, 0, parts * step - size)
    x = x.reshape(*pieces.shape[:-1], parts, step)
    out = None
    for number in range(parts):
        part = x[..., number, :]
        config = [(0, 0, 0)] * (part.ndim - 2) + [(number, parts - 1 - number, 0), (0, 0, 0)]
        part = lax.pad(part, part.dtype.type(0), config)
        out = part if out is None else out + part
    assert out is not None
    return out.reshape(*pieces.shape[:-2], -1)[..., :total]


# ---- small things ------------------------------------------------------------------------------
def _at_ends(x: Array, before: int, after: int) -> Array:
    """x with zeros at the ends of its last axis."""
    if before == after == 0:
        return x
    return lax.pad(x, x.dtype.type(0), [(0, 0, 0)] * (x.ndim - 1) + [(before, after, 0)])


def _real(dtype: np.dtype) -> np.dtype:
    return dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype


def _kind_of(x: ArrayLike, real: np.dtype) -> np.dtype:
    """`real`, or the complex dtype of its precision where x is complex."""
    return dtypes.complex_dtype(real) if dtypes.is_complex(get_aval(x).dtype) else real


def _static(value: Any, name: str) -> int:
    return int(concrete_or_error(value, f"It arose in the argument {name} of a windowed FFT"))
