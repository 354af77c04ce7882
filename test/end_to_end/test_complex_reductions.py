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


@DTYPES
@pytest.mark.parametrize("size", [1, 7, 1023, 1024, 5000, 1 << 17])
def test_products_of_vectors(size, dtype):
    x, y = numbers(size, dtype), numbers((2, size), dtype)[1]

    def products(m, x, y):
        return m.vdot(x, y), x @ y, m.sum(x.conj() * (y + x)), m.sum(x * (x * y))

    with lamina.enable_x64(True):
        found = lamina.jit(lambda x, y: products(jnp, x, y))(x, y)
    wanted = products(np, x.astype(np.clongdouble), y.astype(np.clongdouble))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=9 * np.finfo(dtype).eps, atol=30 * np.sqrt(size) * np.finfo(dtype).eps)


@DTYPES
@pytest.mark.parametrize(("rows", "columns"), [(64, 32), (1, 2000), (2000, 1), (37, 129), (3, 5)])
def test_products_of_matrices_with_vectors(rows, columns, dtype):
    a, v, w = numbers((rows, columns), dtype), numbers(columns, dtype), numbers(rows, dtype)

    def products(m, a, v, w):
        return a @ v, w @ a, a @ v[:, None], (a * 2) @ v, (a.T @ w).conj(), m.vdot(w, a @ v)

    with lamina.enable_x64(True):
        found = lamina.jit(lambda *args: products(jnp, *args))(a, v, w)
    wanted = products(np, *(x.astype(np.clongdouble) for x in (a, v, w)))
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == dtype and x.shape == y.shape
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(x, y, rtol=9 * eps, atol=30 * np.sqrt(rows * columns) * eps)


def test_sum_of_products_is_made_in_its_loop():
    x = numbers(1 << 17, np.complex64)
    compiled = lamina.jit(jnp.vdot).lower(x, x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes == 0


def test_sum_of_products_with_no_number():
    x, y = numbers(4096, np.complex64), numbers(4096, np.complex64)
    y[17] = complex(np.nan, 1)
    assert np.isnan(np.asarray(lamina.jit(jnp.vdot)(x, y)))
    y[17] = complex(np.inf, 1)
    assert not np.isfinite(np.asarray(lamina.jit(jnp.vdot)(x, y)))
