"""Matrix products and convolutions for GPUs: emulated against the CPU, and assembled without
spills."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simt
from simt_program import Program

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.backends.target import Target
from lamina.passes.gpu.product_tiling import choose_tiling, fma_unit

_RANDOM = np.random.default_rng(0)


def _x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        return _RANDOM.integers(-100, 100, shape, dtype)
    value = _RANDOM.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        value = value + 1j * _RANDOM.normal(size=shape)
    return value.astype(dtype)


def _dilated(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", lhs_dilation=(2, 1), rhs_dilation=(1, 2), feature_group_count=2
    )


def _gradients(x, w):
    def loss(x, w):
        return jnp.sum(jnp.tanh(lax.conv_general_dilated(x, w, (2, 2), "SAME")))

    return lamina.grad(loss, argnums=(0, 1))(x, w)


_NHWC = ("NHWC", "HWIO", "NHWC")

# name -> (function, arguments, the most registers)
BY_THREADS: dict[str, tuple[Callable, tuple, int]] = {
    "odd": (lambda x, w, b: lamina.nn.relu(x @ w + b) * 2, (_x(37, 50), _x(50, 45), _x(45)), 96),
    "transposed": (lambda x, w: x.T @ w.T, (_x(50, 40), _x(60, 50)), 96),
    "batch": (lambda x, w: jnp.einsum("bqhd,bkhd->bhqk", x, w), (_x(2, 9, 3, 16), _x(2, 12, 3, 16)), 96),
    "split": (lambda x, w, b: jnp.tanh(x @ w) + b, (_x(9, 700), _x(700, 12), _x(9, 12)), 96),
    "f64": (lambda x, w: x @ w, (_x(20, 33, dtype=np.float64), _x(33, 40, dtype=np.float64)), 128),
    "complex": (lambda x, w: x @ w, (_x(12, 9, dtype=np.complex64), _x(9, 8, dtype=np.complex64)), 96),
    "int": (lambda x, w: x @ w, (_x(20, 33, dtype=np.int32), _x(33, 20, dtype=np.int32)), 96),
    "conv_nhwc": (lambda x, w: lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=_NHWC),
                  (_x(2, 9, 9, 8), _x(3, 3, 8, 16)), 128),
    "conv_groups": (_dilated, (_x(2, 8, 5, 9), _x(16, 4, 3, 3)), 168),
    "depthwise": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4),
                  (_x(2, 4, 9, 9), _x(4, 1, 3, 3)), 48),
    "conv_gradients": (_gradients, (_x(2, 8, 10, 10), _x(16, 8, 3, 3)), 128),
}  # fmt: skip
KERNELS = BY_THREADS


@functools.cache
def _program(name: str, arch: str = "sm_90a") -> Program:
    function, arguments, _ = KERNELS[name]
    with lamina.enable_x64(name == "f64"):
        return Program(function, *arguments, arch=arch)


@pytest.mark.parametrize("name", KERNELS)
def test_emulated(name: str) -> None:
    function, arguments, _ = KERNELS[name]
    with lamina.enable_x64(name == "f64"):
        wanted = lamina.tree.leaves(lamina.jit(function)(*arguments))
    for found, value in zip(_program(name).run(), wanted, strict=True):
        scale = np.abs(np.asarray(value)).max()
        np.testing.assert_allclose(found, np.asarray(value), rtol=2e-5, atol=2e-6 * scale)


@pytest.mark.parametrize("name", KERNELS)
def test_assembled(name: str) -> None:
    for arch in ("sm_80", "sm_90a", "sm_100a"):
        for kernel in _program(name, arch).kernels.values():
            for used in kernel.cubin(Target("cuda", arch))[1].values():
                assert used.spill_stores == used.spill_loads == used.stack_bytes == 0
                assert used.registers <= KERNELS[name][2], (arch, used)
                assert used.shared_bytes <= 48 << 10


def test_every_barrier_is_needed() -> None:
    """With any one barrier gone, the emulator sees a race."""
    program = _program("odd")
    ((symbol, kernel),) = program.kernels.items()
    parts = kernel.texts["gpu"].split("gpu.barrier\n")
    assert len(parts) > 3
    for missing in range(1, len(parts)):
        broken = "gpu.barrier\n".join(parts[:missing]) + "gpu.barrier\n".join(parts[missing:])
        with pytest.raises(simt.SimtError, match="race"):
            program.run({symbol: broken})


def test_tiles_fit_the_product() -> None:
    unit = fma_unit(4, "sm_90a")
    large = choose_tiling((1, 4096, 4096, 4096), unit, "sm_90a")
    assert (large.rows, large.columns, large.splits) == (128, 128, 1)
    assert choose_tiling((1, 32, 32, 65536), unit, "sm_90a").splits > 8
    assert choose_tiling((64, 32, 4096, 512), unit, "sm_90a").rows == 32


def test_what_is_fused_is_in_the_kernel() -> None:
    """One launch, and no pass over memory before or after it."""
    (kernel,) = _program("odd").kernels.values()
    assert len(kernel.launches) == 1 and kernel.scratch_bytes == 0
    assert "lamina.tiling" in kernel.texts["gpu"] and "maximumf" in kernel.texts["gpu"]
    (kernel,) = _program("conv_nhwc").kernels.values()
    assert len(kernel.launches) == 1 and kernel.scratch_bytes == 0
