"""Programs need no more memory, besides arguments and results, than they are known to need: what
is stated here is what they took when it was last brought down, which is no more than JAX takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lamina
from lamina import lax
from lamina import numpy as jnp

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def _normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def _temporary_bytes(program: Callable[..., Any], *args: Any) -> int:
    return lamina.jit(program).lower(*args).compile().memory_analysis().temp_size_in_bytes


def _convolution(
    groups: int = 1, *, spread: int = 1, layout: Any = NHWC, padding: Any = "SAME"
) -> Callable[..., Any]:
    def convolution(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), padding, (spread, spread),
            dimension_numbers=layout, feature_group_count=groups,
        )  # fmt: skip

    return convolution


def _gradients(f: Callable[..., Any], numbers: int | tuple[int, ...]) -> Callable[..., Any]:
    return lamina.grad(lambda x, w: jnp.sum(f(x, w) ** 2), numbers)


CONVOLUTIONS = {
    "NCHW, both gradients": (
        _gradients(_convolution(layout=NCHW), (0, 1)),
        (_normal(4, 64, 28, 28), _normal(64, 64, 3, 3)),
        2_555_904,
    ),
    "transposed": (
        _convolution(spread=2, padding=((2, 2), (2, 2))),
        (_normal(4, 16, 16, 64), _normal(4, 4, 64, 32)),
        0,
    ),
    "bf16": (
        _convolution(),
        (_normal(2, 28, 28, 32, dtype=ml_dtypes.bfloat16), _normal(3, 3, 32, 32, dtype=ml_dtypes.bfloat16)),
        0,
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    program, args, most = CONVOLUTIONS[name]
    assert _temporary_bytes(program, *args) <= most
