"""Matrix products and convolutions for GPUs: emulated against the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.passes.kernels.gpu.gemm import choice as product_choice
from lamina.passes.kernels.gpu.gemm.tiling import Tiling, choose_tiling, fma_unit

_RANDOM = np.random.default_rng(0)


def _x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        return _RANDOM.integers(-100, 100, shape, dtype)
    value = _RANDOM.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        value = value + 1j * _RANDOM.normal(size=shape)
    return value.astype(dtype)


_BF16, _F16, _E4M3 = ml_dtypes.bfloat16, np.dtype(np.float16), ml_dtypes.float8_e4m3fn


def _wide(of: Any) -> Callable[..., Any]:
    return lambda x, w: lax.dot(x, w, preferred_element_type=of)


def _conv(dtype: Any, x: tuple[int, ...], w: tuple[int, ...], **options: Any) -> tuple[Callable, tuple]:
    return (lambda x, w: lax.conv_general_dilated(x, w, **options)), (_x(*x, dtype=dtype), _x(*w, dtype=dtype))


_NHWC = {"window_strides": (2, 2), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}
_NCHW = {"window_strides": (1, 1), "padding": "SAME"}

# name -> ((function, arguments), what multiplies)
KERNELS: dict[str, tuple[tuple[Callable, tuple], str]] = {
    "odd": ((lambda x, w, b: lamina.nn.relu(x @ w + b) * 2, (_x(37, 50), _x(50, 45), _x(45))), "fma32"),
    "batch": ((lambda x, w: jnp.einsum("bqhd,bkhd->bhqk", x, w), (_x(2, 9, 3, 16), _x(2, 12, 3, 16))), "fma32"),
    "split": ((lambda x, w, b: jnp.tanh(x @ w) + b, (_x(9, 700), _x(700, 12), _x(9, 12))), "fma32"),
    "f64": ((lambda x, w: x @ w, (_x(20, 33, dtype=np.float64), _x(33, 40, dtype=np.float64))), "fma64"),
    "complex": ((lambda x, w: x @ w, (_x(12, 9, dtype=np.complex64), _x(9, 8, dtype=np.complex64))), "fma64"),
    "int": ((lambda x, w: x @ w, (_x(9, 17, dtype=np.int32), _x(17, 9, dtype=np.int32))), "fma32"),
    "conv": (_conv(np.float32, (2, 9, 9, 8), (3, 3, 8, 16), **_NHWC), "fma32"),
    "conv_groups": (_conv(np.float32, (2, 8, 5, 9), (16, 4, 3, 3), lhs_dilation=(2, 1), rhs_dilation=(1, 2),
                          feature_group_count=2, **_NCHW), "fma32"),
    "depthwise": (_conv(np.float32, (2, 4, 9, 9), (4, 1, 3, 3), feature_group_count=4, **_NCHW), ""),
    "conv_small": (_conv(np.float32, (2, 3, 6, 5), (4, 3, 3, 2), **_NCHW), ""),
    # Tensor cores.
    "bf16": ((lambda x, w, b, r: lamina.nn.gelu(x @ w + b) + r,
              (*(_x(*s, dtype=_BF16) for s in ((64, 64), (64, 72), (72,), (64, 72))),)), "mma.bf16"),
    "f16_transposed": ((lambda x, w: x.T @ w.T, (_x(96, 64, dtype=_F16), _x(40, 96, dtype=_F16))), "mma.f16"),
    "f16_odd": ((lambda x, w: x @ w, (_x(33, 37, dtype=_F16), _x(37, 41, dtype=_F16))), "mma.f16"),
    "tf32": ((lambda x, w: lax.dot(x, w, precision="tensorfloat32"), (_x(40, 64), _x(64, 80))), "mma.tf32"),
    "i8": ((_wide(np.int32), (_x(40, 64, dtype=np.int8), _x(64, 80, dtype=np.int8))), "mma.s8"),
    "f8": ((_wide(np.float32), (_x(40, 64, dtype=_E4M3), _x(64, 80, dtype=_E4M3))), "mma.e4m3"),
    "conv_bf16": (_conv(_BF16, (2, 9, 9, 8), (3, 3, 8, 16), **_NHWC), "mma.bf16"),
    "conv_nchw_bf16": (_conv(_BF16, (2, 8, 9, 9), (16, 8, 3, 3), **_NCHW), "mma.bf16"),
    "split_bf16": ((lambda x, w: x @ w, (_x(16, 1024, dtype=_BF16), _x(1024, 16, dtype=_BF16))), "mma.bf16"),
}  # fmt: skip


@functools.cache
def _program(name: str, arch: str = "sm_90a") -> Program:
    (function, arguments), *_ = KERNELS[name]
    with lamina.enable_x64(name == "f64"):
        return Program(function, *arguments, arch=arch)


def _texts(program: Program) -> str:
    return "".join(kernel.texts["gpu"] for kernel in program.kernels.values())


def _check(program: Program, function: Callable, arguments: tuple, tolerance: float) -> None:
    wanted = lamina.tree.leaves(lamina.jit(function)(*arguments))
    for found, value in zip(program.run(), wanted, strict=True):
        found, value = (np.asarray(x, np.result_type(x, np.float32)) for x in (found, value))
        np.testing.assert_allclose(
            found, value, rtol=tolerance, atol=tolerance * np.abs(value).max() / 4
        )


@pytest.mark.parametrize("name", KERNELS)
def test_emulated(name: str) -> None:
    (function, arguments), unit = KERNELS[name]
    program = _program(name)
    assert f'lamina.tiling = "{unit}' in _texts(program) or not unit
    tolerance = {"f16": 2e-3, "bf16": 1e-2, "tf32": 3e-3}.get(unit.removeprefix("mma."), 2e-5)
    with lamina.enable_x64(name == "f64"):
        _check(program, function, arguments, tolerance)


@pytest.mark.parametrize("rows, columns, dtype", [
    (128, 128, _BF16), (32, 64, _BF16), (128, 64, np.float32),
])  # fmt: skip
def test_tiles_of_every_size(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, dtype: Any
) -> None:
    def chosen(sizes: Any, unit: Any, arch: str, *_: Any) -> Tiling:
        return Tiling(unit, rows, columns, 32 if unit.is_tensor_core else 16, 3, 1)

    monkeypatch.setattr(product_choice, "choose_tiling", chosen)
    arguments = _x(rows + 8, 72, dtype=dtype), _x(72, columns - 8, dtype=dtype)
    program = Program(jnp.matmul, *arguments)
    assert f"{rows}x{columns}" in _texts(program)
    _check(program, jnp.matmul, arguments, 1e-2 if dtype == _BF16 else 2e-5)


@pytest.mark.parametrize("name", ["bf16", "f16_transposed", "i8", "f8", "conv_bf16"])
def test_main_loops_meet_in_no_bank(name: str) -> None:
    program = _program(name)
    program.run(measures=True)
    assert not program.conflicts("cp.async", "ldmatrix")


def test_tiles_fit_the_product() -> None:
    unit = fma_unit(4, "sm_90a")
    large = choose_tiling((1, 4096, 4096, 4096), unit, "sm_90a")
    assert (large.rows, large.columns, large.splits) == (128, 128, 1)
    assert choose_tiling((1, 32, 32, 65536), unit, "sm_90a").splits > 8
    assert choose_tiling((64, 32, 4096, 512), unit, "sm_90a").rows == 32


def test_what_is_fused_is_in_the_kernel() -> None:
    """One launch, and no pass over memory before or after it: bias, activation, residual, padding,
    conversions."""
    for name in ("odd", "bf16", "conv", "conv_bf16", "conv_nchw_bf16"):
        (kernel,) = _program(name).kernels.values()
        assert len(kernel.launches) == 1 and kernel.scratch_bytes == 0, name


def test_gradients_of_a_convolution() -> None:
    def gradients(x, w):
        def loss(x, w):
            return jnp.sum(jnp.tanh(lax.conv_general_dilated(x, w, (2, 2), "SAME")))

        return lamina.grad(loss, argnums=(0, 1))(x, w)

    arguments = _x(2, 8, 6, 6), _x(8, 8, 3, 3)
    _check(Program(gradients, *arguments), gradients, arguments, 2e-5)
