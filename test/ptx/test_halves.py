"""Two 16-bit floats of a register at a time: the same bits as one at a time, whatever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp

_F16, _BF16 = np.float16, ml_dtypes.bfloat16


def _bits(kind: Any, *shape: int) -> np.ndarray:
    """Any bits, among them infinities, NaNs, zeros of both signs and subnormals."""
    bits = np.random.default_rng(5).integers(0, 1 << 16, shape, np.uint16)
    bits.flat[:8] = 0, 0x8000, 1, 0x8001, *(np.array([np.inf, -np.inf, np.nan, 1]).astype(kind).view(np.uint16))
    return bits.view(kind)


def _check(function: Callable[..., Any], arch: str, *arrays: np.ndarray) -> str:
    """The PTX, whose results are the CPU's."""
    program = Program(function, *arrays, arch=arch)
    wanted = lamina.tree_util.tree_leaves(lamina.jit(function)(*arrays))
    for found, want in zip(program.run(), wanted, strict=True):
        want = np.asarray(want)
        kind = np.dtype(f"u{found.itemsize}")
        nan = np.isnan(want.astype(np.float32))
        assert (np.isnan(found.astype(np.float32)) == nan).all()
        np.testing.assert_array_equal(found.view(kind)[~nan], want.view(kind)[~nan])
    return "".join(kernel.ptx for kernel in program.kernels.values())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_arithmetic_on_f16(arch: str) -> None:
    def several(x: Any, y: Any) -> Any:
        return x - y, x * y, x + y, jnp.maximum(x, y), jnp.minimum(x, y), -jnp.abs(x - y)

    x, y = _bits(_F16, 64, 256), _bits(_F16, 64, 256)[::-1].copy()
    text = _check(several, arch, x, y)
    for name in ("sub", "mul", "add", "max.NaN", "min.NaN"):
        assert any(f"{name}{rounding}.f16x2" in text for rounding in ("", ".rn")), name


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_rows_of_f16(arch: str) -> None:
    """Extremes of a row are taken of f16 that are widened first; then the same is taken from each of its elements."""
    x = np.random.default_rng(6).normal(size=(96, 1024)).astype(_F16)
    x[3, 5], x[4, 6], x[5, 7] = np.nan, np.inf, -np.inf
    text = _check(lambda x: (x - x.max(1, keepdims=True), x.min(1)), arch, x)
    assert "max.NaN.f16x2" in text and "sub.f16x2" in text


def test_older_than_their_extremes() -> None:
    x, y = _bits(_F16, 64, 256), _bits(_F16, 64, 256)[::-1].copy()
    assert "sub.f16x2" in _check(lambda x, y: (x - y, jnp.maximum(x, y)), "sm_75", x, y)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("columns", [256, 255])
def test_bf16_widened(arch: str, columns: int) -> None:
    x = _bits(_BF16, 64, columns)
    x[np.abs(x.astype(np.float32)) < 2.0**-100] = 0  # a CPU computes as if subnormal f32 were 0
    y = x[::-1].copy()
    text = _check(lambda x, y: (x.astype(np.float32) * 2, jnp.maximum(x, y) - y), arch, x, y)
    assert ("and.b32" in text and ", -65536" in text) == (columns % 2 == 0)
