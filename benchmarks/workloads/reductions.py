"""Reductions, normalisations and scans along an axis."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.peers import by_numba, by_torch
from benchmarks.suite import Library, Workload, arrays

MEGA = 1 << 20


def _row(
    name: str, make: Any, shape: tuple[int, ...], bar: float | None, moved: float, **more: Any
) -> Workload:
    """`moved`: bytes per element of the input."""
    bytes_ = moved * math.prod(shape)
    return Workload(name, "reductions", make, lambda: arrays(shape), bar, bytes=bytes_, **more)


def layernorm(m: Library) -> Any:
    def f(x: Any, scale: Any, offset: Any) -> Any:
        mean = m.np.mean(x, -1, keepdims=True)
        variance = m.np.mean((x - mean) ** 2, -1, keepdims=True)
        return (x - mean) / m.np.sqrt(variance + 1e-5) * scale + offset

    return f


def _layernorm_gradient(m: Library) -> Any:
    return m.grad(lambda *args: m.np.sum(layernorm(m)(*args) ** 2), (0, 1, 2))


def _torch_layernorm(torch: Any, x: Any, scale: Any, offset: Any) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, offset, 1e-5)


def _numba_pairwise(numba: Any) -> Any:
    @numba.njit(parallel=True, fastmath={"reassoc", "contract"})
    def pairwise(x: Any, y: Any, w: Any) -> Any:
        out = np.empty(x.shape[0], x.dtype)
        for i in numba.prange(x.shape[0]):
            total = np.float32(0)
            for j in range(y.shape[0]):
                distance = np.float32(0)
                for k in range(x.shape[1]):
                    distance += (x[i, k] - y[j, k]) ** 2
                total += np.exp(-distance) * w[j]
            out[i] = total
        return out

    return pairwise


def _pairwise(m: Library) -> Any:
    def f(x: Any, y: Any, w: Any) -> Any:
        return m.np.exp(-m.np.sum((x[:, None] - y[None]) ** 2, -1)) @ w

    return f


WORKLOADS = [
    _row("sum 16M", lambda m: m.np.sum, (16 * MEGA,), 1.0, 4,
         others=by_torch(lambda torch, x: torch.sum(x))),
    _row("row sum 2048^2", lambda m: lambda x: m.np.sum(x, 1), (2048, 2048), 1.3, 4),
    _row("column sum 2048^2", lambda m: lambda x: m.np.sum(x, 0), (2048, 2048), 1.1, 4,
         others=by_torch(lambda torch, x: torch.sum(x, 0))),
    _row("softmax 1024^2, last axis", lambda m: lambda x: m.nn.softmax(x, 1), (1024, 1024), 1.7, 8,
         others=by_torch(lambda torch, x: torch.softmax(x, 1))),
    _row("softmax 1024^2, first axis", lambda m: lambda x: m.nn.softmax(x, 0), (1024, 1024), 1.4, 8),
    _row("argmax 1024^2, last axis", lambda m: lambda x: m.np.argmax(x, 1), (1024, 1024), None, 4),
    Workload("softmax 1024^2, bf16", "reductions", lambda m: lambda x: m.nn.softmax(x, -1),
             lambda: arrays((1024, 1024), dtype=ml_dtypes.bfloat16), None, bytes=4.0 * MEGA),
    _row("log_softmax 128x10000", lambda m: m.nn.log_softmax, (128, 10000), None, 8),
    Workload("layernorm 1024^2", "reductions", layernorm,
             lambda: arrays((1024, 1024), (1024,), (1024,)), 2.5, bytes=8.0 * MEGA,
             others=by_torch(_torch_layernorm)),
    Workload("layernorm 1024^2, gradient", "reductions", _layernorm_gradient,
             lambda: arrays((1024, 1024), (1024,), (1024,)), None, bytes=8.0 * MEGA),
    _row("cumsum 1M", lambda m: m.np.cumsum, (MEGA,), 10.0, 8,
         others=by_torch(lambda torch, x: torch.cumsum(x, 0))),
    _row("cumsum 1024^2, last axis", lambda m: lambda x: m.np.cumsum(x, -1), (1024, 1024), 1.5, 8),
    Workload("exp(-|x-y|^2) @ w, 4096^2", "reductions", _pairwise,
             lambda: arrays((4096, 3), (4096, 3), (4096,)), 2.0, flops=12.0 * 4096 * 4096,
             others=by_numba(_numba_pairwise)),
]  # fmt: skip
