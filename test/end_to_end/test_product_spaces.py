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


def _kernel(np_, x, y, w):
    return (np_.exp(-((x[:, None] - y[None]) ** 2).sum(-1)) @ w).sum()


def _cauchy(np_, x, y, w):
    return (1 / (1 + ((x[:, None] - y[None]) ** 2).sum(-1)) * w).max(1).sum()


def _energy(np_, x, y, w):
    squares = ((x[None] - x[:, None]) ** 2).sum(-1) + 1e-3
    masses = np_.abs(x[:, 0])
    return -0.5 * (masses[None] * masses[:, None] / np_.sqrt(squares)).sum() + y.sum() * w.sum()


def _forces(np_, x, y, w):
    d = x[None] - x[:, None]
    pull = d * (((d * d).sum(-1) + 1e-2) ** -1.5)[..., None]
    return (pull.sum(1) ** 2).sum() + (w * y[:, 0]).sum()


@pytest.mark.parametrize("form", [_kernel, _cauchy, _energy, _forces])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m"), [(401, 333), (512, 512), (3, 5)])
def test_gradients_in_both_directions(form, dtype, n, m):
    rng = np.random.default_rng(n)
    args = [rng.standard_normal(shape).astype(dtype) for shape in ((n, 3), (m, 3), (m,))]
    args[2] = np.abs(args[2]) + dtype(0.1)
    with lamina.enable_x64(True), jax.enable_x64(True):
        ours = lamina.jit(lamina.value_and_grad(lambda *a: form(lamina.numpy, *a), (0, 1, 2)))
        theirs = jax.jit(jax.value_and_grad(lambda *a: form(jax.numpy, *a), (0, 1, 2)))
        got, want = ours(*args), theirs(*args)
        np.testing.assert_allclose(got[0], want[0], rtol=2e-4)
        for g, e in zip(got[1], want[1], strict=True):
            limit = 2e-4 * np.abs(e).max()
            np.testing.assert_allclose(g, e, rtol=2e-4, atol=limit)


def test_infinities_and_nans_pass_through_both_directions():
    x = np.linspace(-3, 3, 600, dtype=np.float32)
    y = np.linspace(-2, 2, 500, dtype=np.float32)
    x[7], y[11], x[200] = np.nan, np.inf, -np.inf

    def f(np_, x, y):
        space = np_.exp(-((x[:, None] - y[None]) ** 2))
        return space.sum(0), space.max(1), space.min(0)

    got = lamina.jit(lambda *a: f(lamina.numpy, *a))(x, y)
    for g, e in zip(got, f(np, x, y), strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["complex64", "bfloat16", "int32", "uint8"])
def test_other_elements_in_both_directions(dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 9, n).astype(dtype) for n in (700, 900))

    def f(np_, x, y):
        space = x[:, None] * 2 - y[None] * x[:, None]
        return space.sum(0), space.sum(1)

    got = lamina.jit(lambda *a: f(lamina.numpy, *a))(x, y)
    want = jax.jit(lambda *a: f(jax.numpy, *a))(x, y)
    for g, e in zip(got, want, strict=True):
        np.testing.assert_allclose(
            np.asarray(g).astype("complex64"), np.asarray(e).astype("complex64"), rtol=1e-2
        )


@pytest.mark.parametrize(("form", "most"), [(_kernel, 32_768), (_energy, 65_536), (_forces, 8_437_760)])
def test_gradients_store_no_space(form, most):
    """1024 x 1024 numbers are 4 MB; the forces' gradient reads two such arrays."""
    args = [np.ones(shape, np.float32) for shape in ((1024, 3), (1024, 3), (1024,))]
    program = lamina.jit(lamina.grad(lambda *a: form(lamina.numpy, *a), (0, 1, 2)))
    assert program.lower(*args).compile().memory_analysis().temp_size_in_bytes <= most
