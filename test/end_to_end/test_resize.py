"""lamina.image.resize of images large enough to be sums of a few samples, against JAX."""

from __future__ import annotations

import jax
import jax.image
import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.image
import lamina.numpy as jnp

RNG = np.random.default_rng(0)
IMAGE = RNG.uniform(size=(2, 48, 64, 3)).astype(np.float32)
SHAPES = {
    "smaller": (2, 37, 41, 3),
    "half": (2, 24, 32, 3),
    "larger": (2, 100, 64, 3),
    "twice": (2, 96, 128, 3),
    "one": (2, 1, 64, 3),
    "three axes": (2, 30, 64, 7),
}
METHODS = ("linear", "cubic", "lanczos3", "area", "cubic-pytorch")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("antialias", (True, False))
def test_values(method, shape, antialias):
    got = lamina.image.resize(IMAGE, SHAPES[shape], method, antialias=antialias)
    want = jax.image.resize(IMAGE, SHAPES[shape], method, antialias=antialias)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("dtype", ("float16", ml_dtypes.bfloat16, "uint8", "complex64"))
def test_dtypes(dtype):
    image = (IMAGE * 200).astype(dtype)
    got = lamina.image.resize(image, (2, 30, 90, 3), "cubic")
    want = jax.image.resize(image, (2, 30, 90, 3), "cubic")
    assert got.dtype == want.dtype
    wide = np.complex64 if dtype == "complex64" else np.float32
    rough = 2e-2 if np.dtype(dtype).itemsize == 2 else 2e-5
    np.testing.assert_allclose(
        np.asarray(got).astype(wide), np.asarray(want).astype(wide), rtol=rough, atol=200 * rough
    )


@pytest.mark.parametrize("shape", ("smaller", "twice"))
def test_derivatives(shape):
    tangent = RNG.normal(size=IMAGE.shape).astype(np.float32)

    def found(m):
        resized = lambda x: m.image.resize(x, SHAPES[shape], "cubic")  # noqa: E731
        loss = lambda x: m.numpy.sum(m.numpy.sin(resized(x)))  # noqa: E731
        hessian = m.jvp(m.grad(loss), (IMAGE,), (tangent,))[1]
        one_by_one = m.vmap(lambda x: m.image.resize(x, SHAPES[shape][1:], "cubic"))(IMAGE)
        return m.jit(m.grad(loss))(IMAGE), m.jvp(resized, (IMAGE,), (tangent,)), hessian, one_by_one

    got, want = (jax.tree.leaves(found(m)) for m in (lamina, jax))
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_large_images_are_no_products():
    large = jnp.zeros((256, 300, 3))
    resized = lambda x: lamina.image.resize(x, (224, 224, 3), "linear")  # noqa: E731
    assert "dot_general" not in lamina.jit(resized).lower(large).as_text()
    gradient = lamina.grad(lambda x: jnp.sum(resized(x) ** 2))
    assert "dot_general" not in lamina.jit(gradient).lower(large).as_text()
    assert "dot_general" in lamina.jit(resized).lower(jnp.zeros((5, 5, 3))).as_text()


def test_what_is_not_finite_stays_where_it_is():
    image = IMAGE.copy()
    image[0, 10, 20, 1] = np.nan
    got = np.asarray(lamina.image.resize(image, (2, 40, 50, 3), "linear"))
    assert 0 < np.isnan(got).sum() <= 9
    assert np.isfinite(got[1]).all() and np.isfinite(got[..., 0]).all()


def test_nothing():
    assert lamina.image.resize(IMAGE, (2, 0, 64, 3), "linear").shape == (2, 0, 64, 3)
    np.testing.assert_array_equal(
        lamina.image.resize(IMAGE[:0], (0, 20, 20, 3), "linear"), np.zeros((0, 20, 20, 3))
    )
