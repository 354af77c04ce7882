"""Prefetches: in loops over what is not in the cache, and in no others."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp


@pytest.mark.parametrize(
    ("shape", "axis", "is_asked_ahead"),
    [((1 << 20,), None, True), ((1 << 14,), None, False), ((2048, 2048), 0, False)],
    ids=["large", "small", "reduction"],
)
def test_kernels(shape: tuple[int, ...], axis: int | None, is_asked_ahead: bool) -> None:
    def program(x):
        return jnp.tanh(x) if axis is None else jnp.sum(x, axis)

    code = lamina.jit(program).lower(np.zeros(shape, np.float32)).compile().as_text("llvm")
    assert ("@llvm.prefetch" in code) == is_asked_ahead


def test_a_loop_that_gathers_beside_one_that_does_not() -> None:
    """An image rotated, each pixel from the four around its origin: a kernel of loops in vectors, which ask ahead,
    and of gathers, which LLVM sees to."""
    image = np.random.default_rng(0).random((500, 600))

    rows, columns = image.shape

    def rotated(image, y, x):
        v = (0.9 * y - 0.3 * x + rows / 2).clip(0, rows - 1.001)
        u = (0.3 * y + 0.9 * x + columns / 2).clip(0, columns - 1.001)
        i, j = v.astype(np.int32), u.astype(np.int32)
        a, b = v - i, u - j
        upper = (1 - b) * image[i, j] + b * image[i, j + 1]
        lower = (1 - b) * image[i + 1, j] + b * image[i + 1, j + 1]
        return (1 - a) * upper + a * lower

    y, x = np.meshgrid(np.arange(rows) - rows / 2, np.arange(columns) - columns / 2, indexing="ij")
    with lamina.enable_x64(True):
        np.testing.assert_allclose(lamina.jit(rotated)(image, y, x), rotated(image, y, x), rtol=1e-9)
