"""Windows for spectra, periodic: what a name of one means.

Source of the coefficients: Harris, On the use of windows for harmonic analysis with the discrete
Fourier transform, Proc. IEEE 66, 1978; Nuttall, IEEE ASSP 29, 1981; ISO 18431-2 for flattop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_COSINES = {
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}
_ALIASES = {
    "hanning": "hann", "box": "boxcar", "ones": "boxcar", "rect": "boxcar",
    "rectangular": "boxcar", "triangle": "triang", "bart": "bartlett", "ksr": "kaiser",
    "gauss": "gaussian", "tuk": "tukey",
}  # fmt: skip
_WITHOUT = ("boxcar", "triang", "bartlett", "cosine")
_WITH_ONE = ("kaiser", "gaussian", "tukey", "general_hamming", "exponential")


def get_window(window: Any, length: int) -> np.ndarray:
    """The window of this many samples that a name, a (name, parameter) pair or a number (of
    kaiser) stands for. Raises ValueError for others."""
    if isinstance(window, int | float):
        window = ("kaiser", float(window))
    name, *parameters = (window,) if isinstance(window, str) else window
    name = _ALIASES.get(name, name)
    if name not in (*_COSINES, *_WITHOUT, *_WITH_ONE):
        known = ", ".join(sorted((*_COSINES, *_WITHOUT, *_WITH_ONE)))
        raise ValueError(f"Unknown window type {name!r}; known are {known}.")
    if name in _WITH_ONE and len(parameters) != (name != "exponential"):
        raise ValueError(f"The {name!r} window needs one parameter: pass a tuple.")
    if length == 1:
        return np.ones(1)
    n = np.arange(length)
    period = length  # of the symmetric window with one sample more, whose last is left out
    if name in _COSINES:
        terms = enumerate(_COSINES[name])
        return sum((-1) ** k * a * np.cos(2 * np.pi * k * n / period) for k, a in terms)
    middle = period / 2
    if name == "boxcar":
        return np.ones(length)
    if name == "triang":
        half = np.arange(1, (period + 2) // 2 + 1)
        rising = 2 * half / (period + 2) if (period + 1) % 2 else (2 * half - 1) / (period + 1)
        if (period + 1) % 2:
            return np.concatenate([rising, rising[-2::-1]])[:length]
        return np.concatenate([rising, rising[::-1]])[:length]
    if name == "bartlett":
        return 1 - np.abs(n - middle) / middle
    if name == "cosine":
        return np.sin(np.pi / (period + 1) * (n + 0.5))
    if name == "general_hamming":
        return parameters[0] - (1 - parameters[0]) * np.cos(2 * np.pi * n / period)
    if name == "kaiser":
        return np.i0(parameters[0] * np.sqrt(1 - (n / middle - 1) ** 2)) / np.i0(parameters[0])
    if name == "gaussian":
        return np.exp(-(((n - middle) / parameters[0]) ** 2) / 2)
    if name == "tukey":
        return _tukey(n, period, parameters[0])
    return np.exp(-np.abs(n - middle))  # exponential


def _tukey(n: np.ndarray, period: int, alpha: float) -> np.ndarray:
    if alpha <= 0:
        return np.ones(len(n))
    edge = alpha * period / 2
    rising = 0.5 * (1 + np.cos(np.pi * (n / edge - 1)))
    falling = 0.5 * (1 + np.cos(np.pi * ((n - period) / edge + 1)))
    return np.where(n < edge, rising, np.where(n > period - edge, falling, 1.0))
