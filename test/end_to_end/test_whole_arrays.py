"""What is reduced of all of a large array after a shift by what is reduced of it: in chunks, and right
where chunks, or all, have nothing but infinities or no number at all."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import lamina
import lamina.numpy as jnp
from lamina import nn

RNG = np.random.default_rng(0)
SHAPES = ((1 << 17,), (256, 1024), (64, 8, 512), (3, 1 << 16), (140000,), (131073,), (1 << 16, 4), (5,))


def wide(x):
    return x.astype(np.float64)


FUNCTIONS = {
    "softmax": (lambda x: nn.softmax(x, axis=None), lambda x: scipy.special.softmax(wide(x))),
    "log_softmax": (lambda x: nn.log_softmax(x, axis=None), lambda x: scipy.special.log_softmax(wide(x))),
    "logsumexp": (nn.logsumexp, lambda x: scipy.special.logsumexp(wide(x))),
    "var": (jnp.var, lambda x: np.var(wide(x))),
    "std": (lambda x: jnp.std(x, ddof=1), lambda x: np.std(wide(x), ddof=1)),
    "normalised": (
        lambda x: (x - x.mean()) / jnp.sqrt(x.var() + 1e-5),
        lambda x: (wide(x) - wide(x).mean()) / np.sqrt(wide(x).var() + 1e-5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_scipy(name, shape):
    function, reference = FUNCTIONS[name]
    x = (RNG.standard_normal(shape) * 3 + 40).astype(np.float32)
    np.testing.assert_allclose(lamina.jit(function)(x), reference(x), rtol=1e-5, atol=3e-5 * (name == "normalised"))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16, np.float16], ids=lambda d: np.dtype(d).name)
def test_of_other_floats(name, dtype):
    function, reference = FUNCTIONS[name]
    x = RNG.standard_normal((512, 300)).astype(dtype)
    with lamina.enable_x64(dtype == np.float64):
        got = lamina.jit(function)(x)
    assert got.dtype == dtype
    tolerance = 1e-11 if dtype == np.float64 else 3e-2
    np.testing.assert_allclose(wide(np.asarray(got)), reference(x), rtol=tolerance, atol=tolerance)


def edges():
    x = RNG.standard_normal((256, 1024)).astype(np.float32)
    yield "a chunk of -inf", np.where(np.arange(256)[:, None] == 7, np.float32(-np.inf), x)
    yield "-inf but for one", np.where(np.arange(1 << 18).reshape(x.shape) == 70000, x, np.float32(-np.inf))
    yield "all -inf", np.full_like(x, -np.inf)
    yield "an inf", np.where(np.arange(1 << 18).reshape(x.shape) == 70000, np.float32(np.inf), x)
    yield "a NaN", np.where(np.arange(1 << 18).reshape(x.shape) == 70000, np.float32(np.nan), x)
    yield "large", x * np.float32(1e15)
    yield "huge", np.where(np.arange(256)[:, None] == 7, np.float32(3e38), abs(x) * np.float32(1e37))
    yield "chunks far apart", x + np.arange(256, dtype=np.float32)[:, None] * 100
    yield "zeros of both signs", np.where(x > 0, np.float32(0.0), np.float32(-0.0))


@pytest.mark.parametrize("x", [pytest.param(x, id=name) for name, x in edges()])
def test_edges(x):
    for name in ("softmax", "logsumexp", "var"):
        function, reference = FUNCTIONS[name]
        with np.errstate(all="ignore"):
            want = reference(x)
            if name == "var":
                want = np.float32(want)  # beyond f32 it is infinite
        np.testing.assert_allclose(lamina.jit(function)(x), want, rtol=3e-5, atol=1e-37)


def test_gradients():
    x = (RNG.standard_normal((512, 600)) * 2).astype(np.float32)
    slope = lamina.jit(lamina.grad(nn.logsumexp))(x)
    np.testing.assert_allclose(slope, scipy.special.softmax(wide(x)), rtol=1e-5)
    slope = lamina.jit(lamina.grad(jnp.var))(x)
    np.testing.assert_allclose(slope, 2 * (wide(x) - wide(x).mean()) / x.size, rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize("name, large", [("softmax", 2), ("logsumexp", 1), ("var", 1), ("normalised", 2)])
def test_walks(name, large):
    """Kernels that read the array, whatever its shape: the others read a number of each chunk."""
    for shape in ((1 << 20,), (1024, 1024), (64, 128, 128)):
        fused = lamina.jit(FUNCTIONS[name][0]).lower(np.zeros(shape, np.float32)).compile().as_text("fused")
        heads = [line for line in fused.splitlines() if "func.func private" in line]
        arguments = [line.split("->")[0] for line in heads]
        sizes = ["tensor<" + "x".join(map(str, of)) for of in (shape, (128, 8192), (1024, 1024))]
        assert sum(any(size in line for size in sizes) for line in arguments) == large, fused


@pytest.mark.parametrize("shape", [(1 << 20,), (1000, 700), (131073,), (3, 100003)], ids=str)
def test_siblings(shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    x.flat[77] = 50
    got = lamina.jit(lambda x: (x.sum(), x.max(), (x * x).sum(), jnp.mean(x) + x.min()))(x)
    w = wide(x)
    for value, want in zip(got, (w.sum(), w.max(), (w * w).sum(), w.mean() + w.min()), strict=True):
        np.testing.assert_allclose(value, want, rtol=2e-5, atol=2e-2)
    x.flat[99] = np.nan
    assert np.isnan(lamina.jit(lambda x: (x.sum(), x.max(), x.min()))(x)).all()
