"""What arrays make when broadcast against each other: sums of few terms and products in place."""

import jax
import jax.numpy
import numpy as np
import pytest

import lamina
import lamina.numpy


def program(np_, x, y, w, b):
    distance = ((x[:, None] - y[None]) ** 2).sum(-1)
    return {
        "product": np_.exp(-distance) @ w,
        "product from the left": w @ np_.exp(-distance).T,
        "greatest": np_.max(np_.abs(x[:, None] * y[None]), -1),
        "of sums": np_.prod(x[:, None] + y[None], -1),
        "least": (x[:, None, :] + b).min(-1),
        "outer": np_.einsum("ij,j->i", np_.sin(x[:, :1] + y[:, 0][None]), w),
        "equal": (x[:, None] == y[None]).sum(-1),
        "used twice": np_.tanh(distance) @ w + np_.sum(distance, 1),
    }


def loss(np_, *args):
    return np_.sum(program(np_, *args)["product"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients(dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in ((150, 3), (200, 3), (200,))]
    args = (*arrays, dtype(2))
    with lamina.enable_x64(True), jax.enable_x64(True):
        compiled = lamina.jit(lambda *a: program(lamina.numpy, *a))
        text = compiled.lower(*args).compile().as_text("fused")
        assert "150x200x3" not in text.partition("func.func private")[0]
        got, want = compiled(*args), jax.jit(lambda *a: program(jax.numpy, *a))(*args)
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-4, err_msg=name)
        got = lamina.jit(lamina.grad(lambda *a: loss(lamina.numpy, *a), (0, 1, 2)))(*args)
        want = jax.jit(jax.grad(lambda *a: loss(jax.numpy, *a), (0, 1, 2)))(*args)
        for g, e in zip(got, want, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-3, atol=1e-3)
