"""Convolutions and their gradients."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from benchmarks.suite import Library, Workload, arrays

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def _convolution(
    groups: int = 1, *, step: int = 1, spread: int = 1, layout: Any = NHWC, padding: Any = "SAME"
) -> Any:
    def make(m: Library) -> Any:
        def f(x: Any, w: Any) -> Any:
            return m.lax.conv_general_dilated(
                x, w, (step, step), padding, (spread, spread),
                dimension_numbers=layout, feature_group_count=groups,
            )  # fmt: skip

        return f

    return make


def _gradient(groups: int, argnums: Any, **rest: Any) -> Any:
    def make(m: Library) -> Any:
        f = _convolution(groups, **rest)(m)
        return m.grad(lambda x, w: m.np.sum(f(x, w) ** 2), argnums)

    return make


def _dense() -> tuple[Any, ...]:
    return arrays((8, 56, 56, 64), (3, 3, 64, 64))


def _depthwise() -> tuple[Any, ...]:
    return arrays((1, 124, 124, 256), (3, 3, 1, 256))


def _channels_first() -> tuple[Any, ...]:
    return arrays((4, 64, 28, 28), (64, 64, 3, 3))


def _patches() -> tuple[Any, ...]:
    return arrays((2, 224, 224, 3), (16, 16, 3, 192))


def _narrow() -> tuple[Any, ...]:
    return arrays((2, 28, 28, 32), (3, 3, 32, 32), dtype=ml_dtypes.bfloat16)


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
    Workload("conv 3x3 NCHW, both gradients", "convolutions", _gradient(1, (0, 1), layout=NCHW),
             _channels_first, flops=6.0 * 4 * 28 * 28 * 64 * 64 * 9),
    Workload("16x16 patches, weight gradient", "convolutions",
             _gradient(1, 1, step=16, padding="VALID"), _patches,
             flops=4.0 * 2 * 224 * 224 * 3 * 192),
    Workload("conv 4x4 transposed", "convolutions",
             _convolution(spread=2, padding=((2, 2), (2, 2))),
             lambda: arrays((4, 16, 16, 64), (4, 4, 64, 32)), flops=2.0 * 4 * 16 * 16 * 64 * 32 * 16),
    Workload("conv 3x3, bfloat16", "convolutions", _convolution(), _narrow,
             flops=2.0 * 2 * 28 * 28 * 32 * 32 * 9, limit="matmul bfloat16"),
]  # fmt: skip
