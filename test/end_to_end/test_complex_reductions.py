"""Products and running sums of complex numbers against NumPy's in twice the digits."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

SHAPES = [((1000,), (0,)), ((256,), (0,)), ((1 << 16,), (0,)), ((5, 3072), (1,)), ((3, 4, 768), (0, 2)),
          ((1040, 2), (0, 1)), ((0,), (0,)), ((3, 0), (1,))]  # fmt: skip
DTYPES = pytest.mark.parametrize("dtype", [np.complex64, np.complex128])


def numbers(shape, dtype):
    rng = np.random.default_rng(0)
    return (np.exp(2j * np.pi * rng.random(shape)) * (1 + 1e-3 * rng.normal(size=shape))).astype(dtype)


@DTYPES
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_products(shape, axes, dtype):
    x = numbers(shape, dtype)
    with lamina.enable_x64(True):
        found = np.asarray(lamina.jit(lambda x: jnp.prod(x, axes))(x))
    wanted = np.prod(x.astype(np.clongdouble), axes)
    assert found.dtype == dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=300 * np.finfo(dtype).eps)


@pytest.mark.parametrize("place", [0, 17, 4095])
@pytest.mark.parametrize("value", [np.nan, np.inf, complex(0, -np.inf)])
def test_product_with_no_number(place, value):
    x = numbers(4096, np.complex64)
    x[place] = value
    assert not np.isfinite(np.asarray(lamina.jit(jnp.prod)(x)))


@DTYPES
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((5000,), 0), ((3, 300), 1), ((300, 3), 0), ((0,), 0)], ids=str)
def test_running_sums(shape, axis, reverse, dtype):
    x = numbers(shape, dtype)
    with lamina.enable_x64(True):
        found = np.asarray(lamina.jit(lambda x: lax.cumsum(x, axis, reverse))(x))
    wide = x.astype(np.clongdouble)
    wanted = np.flip(np.cumsum(np.flip(wide, axis), axis), axis) if reverse else np.cumsum(wide, axis)
    assert found.dtype == dtype
    near = 4 * np.finfo(dtype).eps * max(1, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=near)


def test_running_sum_beside_infinity():
    x = numbers(300, np.complex64)
    x[100], x[200] = complex(np.inf, 1), complex(1, np.nan)
    found = np.asarray(lamina.jit(jnp.cumsum)(x))
    assert np.isfinite(found[:100]).all() and np.isinf(found[100:].real).all()
    assert np.isfinite(found[:200].imag).all() and np.isnan(found[200:].imag).all()


def test_gradients():
    x, w = numbers(300, np.complex64), numbers(300, np.complex64)
    found = lamina.grad(lambda x: jnp.sum(jnp.cumsum(x) * w).real)(x)
    wanted = np.cumsum(w[::-1])[::-1]
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-4)
