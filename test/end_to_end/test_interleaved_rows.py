"""Arrays of short rows (points, colours, pairs): whole rows are loaded into vectors, dealt into columns and back."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

DTYPES = (np.float32, np.float64, np.int32, np.int8, np.uint16, np.float16)


def _rows(dtype: type, count: int, columns: int) -> np.ndarray:
    numbers = np.random.default_rng(count * columns).integers(-9, 9, (count, columns))
    return np.abs(numbers).astype(dtype) if np.dtype(dtype).kind == "u" else numbers.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", range(1, 6))
def test_columns_are_combined(dtype, columns):
    """Of any number of rows, those that don't fill a vector included, and of none."""
    with lamina.enable_x64(True):
        for count in (0, 1, 7, 8, 33, 1000):
            x, y = _rows(dtype, count, columns), _rows(dtype, count, columns)[::-1].copy()

            def mixed(m, x, y):
                turned = [x[:, (n + 1) % columns] * y[:, n] - x[:, n] for n in range(columns)]
                return m.stack(turned, axis=1)

            np.testing.assert_array_equal(lamina.jit(lambda x, y: mixed(jnp, x, y))(x, y), mixed(np, x, y))


@pytest.mark.parametrize("columns", (2, 3, 4, 9))
def test_distances_along_a_short_dimension(columns):
    x, c = _rows(np.float32, 101, columns), _rows(np.float32, 11, columns)
    found = lamina.jit(lambda x, c: ((x[:, None] - c[None]) ** 2).sum(-1))(x, c)
    np.testing.assert_array_equal(found, ((x[:, None] - c[None]) ** 2).sum(-1))


def test_one_column_alone_is_changed():
    x = _rows(np.float32, 77, 3)
    found = lamina.jit(lambda x: x.at[:, 1].multiply(2.0))(x)
    np.testing.assert_array_equal(found, x * np.array([1, 2, 1], np.float32))


def test_rows_are_changed_in_place_in_a_loop():
    """Each step reads what the one before has left in the same rows."""

    def step(_, p):
        return jnp.stack([p[:, 1], p[:, 2] + p[:, 0], p[:, 0] - 1], axis=1)

    x = _rows(np.float32, 50, 3)
    expected = x.copy()
    for _ in range(5):
        expected = np.stack([expected[:, 1], expected[:, 2] + expected[:, 0], expected[:, 0] - 1], axis=1)
    np.testing.assert_array_equal(lamina.jit(lambda x: lamina.lax.fori_loop(0, 5, step, x))(x), expected)


def test_matrices_times_small_vectors():
    matrix, x = _rows(np.float64, 3, 3), _rows(np.float64, 500, 3)
    with lamina.enable_x64(True):
        found = lamina.jit(lambda m, x: jnp.einsum("ij,nj->ni", m, x))(matrix, x)
    np.testing.assert_array_equal(found, x @ matrix.T)
