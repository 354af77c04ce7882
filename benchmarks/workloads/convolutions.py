"""Convolutions and their gradients."""

from __future__ import annotations

from typing import Any

from benchmarks.suite import Library, Workload, arrays

NHWC = ("NHWC", "HWIO", "NHWC")


def _convolution(groups: int = 1) -> Any:
    def make(m: Library) -> Any:
        def f(x: Any, w: Any) -> Any:
            return m.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=groups
            )

        return f

    return make


def _gradient(groups: int, argnums: Any) -> Any:
    def make(m: Library) -> Any:
        f = _convolution(groups)(m)
        return m.grad(lambda x, w: m.np.sum(f(x, w) ** 2), argnums)

    return make


def _dense() -> tuple[Any, ...]:
    return arrays((8, 56, 56, 64), (3, 3, 64, 64))


def _depthwise() -> tuple[Any, ...]:
    return arrays((1, 124, 124, 256), (3, 3, 1, 256))


_FLOPS = 2.0 * 8 * 56 * 56 * 64 * 64 * 9
_DEPTHWISE = 2.0 * 124 * 124 * 256 * 9

WORKLOADS = [
    Workload("conv 3x3 8x56x56x64", "convolutions", _convolution(), _dense, 1.1, flops=_FLOPS),
    Workload("conv 3x3, both gradients", "convolutions", _gradient(1, (0, 1)), _dense, 1.1,
             flops=3 * _FLOPS),
    Workload("depthwise conv 124x124x256", "convolutions", _convolution(256), _depthwise, 8.0,
             flops=_DEPTHWISE),
    Workload("depthwise conv, weight gradient", "convolutions", _gradient(256, 1), _depthwise, 8.0,
             flops=2 * _DEPTHWISE),
]  # fmt: skip
