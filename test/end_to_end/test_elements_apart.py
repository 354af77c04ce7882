"""Loops over elements that lie apart, backwards or where an index says give what NumPy gives, in vectors or not."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

RNG = np.random.default_rng(0)
SIZES = (1, 3, 4, 7, 31, 257, 20_003)
DTYPES = ("float64", "float32", "int32", "int8", "bool")


def _numbers(size: int, dtype: str) -> np.ndarray:
    x = RNG.integers(-100, 100, size)
    return (x % 2 == 0) if dtype == "bool" else x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_backwards(size, dtype):
    x, y = _numbers(size, dtype), _numbers(size, dtype)

    def f(x, y, where):
        return where(x[::-1] > y, x[::-1], y), where(y < x, y, x)[::-1]

    with lamina.enable_x64(True):
        got = lamina.jit(lambda x, y: f(x, y, jnp.where))(x, y)
    for found, wanted in zip(got, f(x, y, np.where), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_looked_up(size, dtype):
    table, at = _numbers(50, dtype).reshape(10, 5), RNG.integers(-10, 10, size)

    def f(table, at, where):
        a, b = table[at, 1], table[at, 4]
        return where(a > b, a, b), where(at > 0, a, b)

    with lamina.enable_x64(True):
        got = lamina.jit(lambda table, at: f(table, at, jnp.where))(table, at)
    for found, wanted in zip(got, f(table, at, np.where), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtype", ("float64", "float32", "int32"))
@pytest.mark.parametrize("rows", (1, 5, 64, 203))
def test_columns_in_a_loop(rows, dtype):
    """Columns are read and written in each step."""
    x = _numbers(rows * 9, dtype).reshape(rows, 9)

    def step(i, x):
        return x.at[:, i].set(jnp.maximum(x[:, i] * 2 - x[:, i + 1] * 3 + x[::-1, i + 1], x[:, i]))

    want = x.copy()
    for i in range(8):
        want[:, i] = np.maximum(want[:, i] * 2 - want[:, i + 1] * 3 + want[::-1, i + 1], want[:, i])
    with lamina.enable_x64(True):
        np.testing.assert_array_equal(np.asarray(lamina.jit(lambda x: lax.fori_loop(0, 8, step, x))(x)), want)


def test_threads_change_no_bit():
    x, at = RNG.standard_normal(1000), RNG.integers(-1000, 1000, 100_001)

    def f(x, at):
        near, far = x[at], x[::-1][at // 2]
        return near * 1.5 + far * near - jnp.exp(far)

    found = []
    try:
        with lamina.enable_x64(True):
            for threads in (1, 2):
                lamina.set_num_threads(threads)
                found.append(np.asarray(lamina.jit(f)(x, at)))
    finally:
        lamina.set_num_threads(None)
    np.testing.assert_array_equal(found[0].view(np.int64), found[1].view(np.int64))


@pytest.mark.parametrize("count", [3, 8, 100, 1024])
def test_what_is_done_in_place_of_an_argument_around_a_pad(count):
    """Columns are read into a temporary of one element before they are overwritten."""

    def distance(p):
        return jnp.minimum(jnp.linalg.norm(p - jnp.array([0.0, 0.0, 3.0])) - 1, p[1] + 1)

    points = (np.random.default_rng(0).standard_normal((count, 3)) * 2).astype(np.float32)
    away = points - np.array([0, 0, 3], np.float32)
    length = np.linalg.norm(away, axis=1, keepdims=True)
    nearer = (length[:, 0] - 1 < points[:, 1] + 1)[:, None]
    wanted = np.where(nearer, away / length, np.array([0, 1, 0], np.float32))
    got = lamina.jit(lamina.vmap(lamina.grad(distance)))(points)
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5, atol=1e-6)
