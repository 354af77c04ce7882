"""Fourier transforms."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.suite import Workload, arrays


def _complex(*shape: int) -> tuple[np.ndarray]:
    real, imaginary = arrays(shape, shape)
    return ((real + 1j * imaginary).astype(np.complex64),)


def _flops(n: int) -> float:
    return 5.0 * n * math.log2(n)


WORKLOADS = [
    Workload("FFT 2^20", "transforms", lambda m: m.np.fft.fft, lambda: _complex(1 << 20), 1.2,
             flops=_flops(1 << 20)),
    Workload("FFT 1024^2", "transforms", lambda m: m.np.fft.fft2, lambda: _complex(1024, 1024), 1.0,
             flops=_flops(1 << 20)),
    Workload("FFT of 1000 rows of 1000", "transforms", lambda m: m.np.fft.fft,
             lambda: _complex(1000, 1000), flops=1000 * _flops(1000)),
]  # fmt: skip
