"""Weights of input samples in output samples: kernels of resampling methods, and matrices of them.

Kernels: Keys 1981 (cubic), Duchon 1979 (Lanczos).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np


class ResizeMethod(enum.Enum):
    """How samples between samples are made."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name; ValueError if there is none."""
        found = _NAMES.get(s)
        if found is None:
            raise ValueError(f'Unknown resize method "{s}"')
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}

Kernel = Callable[[Any, Any], Any]
"""What a sample weighs at distances >= 0, computed by NumPy or by lamina.numpy, the first argument."""


def _triangle(xp: Any, x: Any) -> Any:
    return xp.maximum(0, 1 - x)


def _keys(a: float) -> Kernel:
    """Keys' family of cubic convolution."""

    def kernel(xp: Any, x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = a * (((x - 5) * x + 8) * x - 4)
        return xp.where(x < 1, near, xp.where(x < 2, far, 0.0))

    return kernel


def _lanczos(radius: float) -> Kernel:
    def kernel(xp: Any, x: Any) -> Any:
        return xp.where(x < radius, xp.sinc(x) * xp.sinc(x / radius), 0.0)

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.75),
}


def weights_of(xp: Any, n: int, m: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool,
               clamp: bool) -> Any:  # fmt: skip
    """The n x m matrix from input to output samples, made by NumPy or by lamina.numpy. clamp: beyond the
    edges the image repeats its edge samples; else the weights there are normalised."""
    dtype = xp.result_type(scale, translation)
    inverse = 1 / scale
    out = xp.arange(m, dtype=dtype)
    if method is ResizeMethod.AREA:
        left = (out - translation) * inverse
        cells = xp.arange(n, dtype=dtype)[:, None]
        overlap = xp.minimum(left + inverse, cells + 1) - xp.maximum(left, cells)
        overlap = xp.maximum(overlap, 0)
        total = xp.sum(overlap, axis=0, keepdims=True)
        return xp.where(total > 0, overlap / xp.where(total > 0, total, 1), 0)
    kernel = _KERNELS[method]
    # When there are fewer samples than before the kernel widens: it is the low-pass filter.
    width = xp.maximum(inverse, 1.0) if antialias else 1.0
    place = (out + 0.5 - translation) * inverse - 0.5
    if clamp:
        return _clamped_weights(xp, n, place, kernel)
    x = xp.abs(place - xp.arange(n, dtype=dtype)[:, None]) / width
    weights = kernel(xp, x)
    total = xp.sum(weights, axis=0, keepdims=True)
    tiny = 1000.0 * float(np.finfo(np.float32).eps)
    weights = xp.where(
        xp.abs(total) > tiny, weights / xp.where(total != 0, total, 1), 0
    )
    inside = (place >= -0.5) & (place <= n - 0.5)
    return xp.where(inside[None, :], weights, 0)


def _clamped_weights(xp: Any, n: int, place: Any, kernel: Kernel) -> Any:
    base = xp.floor(place)
    rows = xp.arange(n)[:, None]
    out = 0.0
    for tap in range(-1, 3):
        at = base + tap
        row = xp.clip(at, 0, n - 1).astype(np.int32)
        out = out + xp.where(rows == row, kernel(xp, xp.abs(place - at)), 0.0)
    return out
