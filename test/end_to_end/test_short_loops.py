"""Loops of few steps over large arrays: one kernel goes through all steps."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax


def _kernels(f, *args):
    return lamina.jit(f).lower(*args).compile().as_text("fused").count("func.func private")


@pytest.mark.parametrize("steps", [0, 1, 5, 8])
@pytest.mark.parametrize("size", [1024, 5000])
@pytest.mark.parametrize("dtype", ["uint32", "int8", "float32", "bfloat16"])
def test_as_step_by_step(steps, size, dtype):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 50, size), dtype)

    def step(i, carried):
        x, one, other = carried
        return (x + one) * x.dtype.type(3), other, one

    def looped(x, one, other):
        return lax.fori_loop(0, steps, step, (x, one, other))

    one, other = jnp.asarray(1, dtype), jnp.asarray(2, dtype)
    wanted = (x, one, other)
    for i in range(steps):
        wanted = step(i, wanted)
    for found, value in zip(lamina.jit(looped)(x, one, other), wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(found, "float64"), np.asarray(value, "float64"), rtol=1e-2 if dtype == "bfloat16" else 1e-6
        )


def test_one_kernel():
    def looped(x):
        return lax.fori_loop(0, 5, lambda i, x: jnp.tanh(x) + i, x)

    assert _kernels(looped, jnp.ones(2000)) == 1
