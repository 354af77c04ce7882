"""Reductions of long arrays down few columns, of which several rows are one wide row: against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

ROWS, COLUMNS = (2047, 30_011, 65_536), (2, 3, 5, 7, 10, 12, 24, 33)


def _drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", ROWS)
def test_sums_and_extremes(rows: int, columns: int) -> None:
    x = _drawn((rows, columns), "float32")
    total, largest, least = lamina.jit(lambda x: (x.sum(0), x.max(0), (x * x).min(0)))(x)
    np.testing.assert_allclose(total, x.astype(np.float64).sum(0), rtol=1e-5, atol=2e-2)
    np.testing.assert_array_equal(largest, x.max(0))
    np.testing.assert_array_equal(least, (x * x).min(0))


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int16", "int32", "uint32", "bool"])
def test_of_all_types(dtype: str) -> None:
    x = _drawn((30_011, 3), dtype)
    total, largest = lamina.jit(lambda x: (x.sum(0), x.max(0)))(x)
    expected = x.astype(np.float64).sum(0)
    if dtype == "float16":
        np.testing.assert_allclose(total, expected, rtol=2e-2, atol=0.5)
    else:
        np.testing.assert_array_equal(total, expected.astype(total.dtype))
    np.testing.assert_array_equal(largest, x.max(0))


def test_of_logic() -> None:
    x = np.ones((30_011, 3), bool)
    x[30_010, 1] = False
    both = lamina.jit(lambda x: (x.all(0), (~x).any(0)))(x)
    np.testing.assert_array_equal(both[0], [True, False, True])
    np.testing.assert_array_equal(both[1], [False, True, False])


def test_nan_and_infinity_in_the_first_wide_row_and_in_the_last_rows() -> None:
    for row in (1, 30_010):
        x = _drawn((30_011, 3), "float32")
        x[row, 0], x[row, 1] = np.nan, -np.inf
        total, largest, least = lamina.jit(lambda x: (x.sum(0), x.max(0), x.min(0)))(x)
        np.testing.assert_array_equal(np.isnan(total), [True, False, False])
        assert total[1] == -np.inf == least[1]
        np.testing.assert_array_equal(largest, x.max(0))
        np.testing.assert_array_equal(least, x.min(0))


def test_zeros_keep_their_sign() -> None:
    x = np.full((4096, 3), -0.0, np.float32)
    np.testing.assert_array_equal(np.signbit(lamina.jit(lambda x: x.max(0))(x)), [True] * 3)


def test_products() -> None:
    x = np.exp(_drawn((5003, 3), "float32") * 0.01)
    np.testing.assert_allclose(
        lamina.jit(lambda x: jnp.prod(x, 0))(x), x.astype(np.float64).prod(0), rtol=1e-3
    )


@pytest.mark.parametrize("shape", [(5, 4099, 3), (2, 3, 2500, 6), (1, 5000, 3), (40, 1500, 3), (3, 2048, 2, 5)])
def test_in_batches(shape: tuple[int, ...]) -> None:
    x = _drawn(shape, "float32")
    axis = -3 if shape[-2] == 2 else -2
    np.testing.assert_allclose(
        lamina.jit(lambda x: jnp.exp(x).sum(axis))(x), np.exp(x.astype(np.float64)).sum(axis), rtol=1e-5
    )


def test_with_a_row_for_all_and_with_several_arrays() -> None:
    x, y = _drawn((30_011, 5), "float32"), _drawn((30_011, 5), "int8")
    row, scalar = _drawn((5,), "float32"), np.float32(0.5)

    def function(x, y, row, scalar):
        return ((x - row) ** 2 * scalar + y.astype(np.float32)).sum(0)

    expected = function(*(a.astype(np.float64) for a in (x, y, row, scalar)))
    np.testing.assert_allclose(lamina.jit(function)(x, y, row, scalar), expected, rtol=1e-5)


def test_with_a_number_for_each_row() -> None:
    x, weights = _drawn((30_011, 3), "float32"), _drawn((30_011,), "float32")
    expected = (x.astype(np.float64) * weights[:, None]).sum(0)
    np.testing.assert_allclose(lamina.jit(lambda x, w: (x * w[:, None]).sum(0))(x, weights), expected, atol=1e-2)


def test_gradients() -> None:
    x = _drawn((5003, 3), "float32")
    found = lamina.grad(lambda x: (x.mean(0) ** 2).sum())(x)
    np.testing.assert_allclose(found, np.broadcast_to(2 * x.mean(0) / 5003, x.shape), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 3), (7, 3)])
def test_of_nothing_and_of_little(shape: tuple[int, ...]) -> None:
    x = _drawn(shape, "float32")
    np.testing.assert_allclose(lamina.jit(lambda x: x.sum(0))(x), x.sum(0), rtol=1e-6)


def test_results_do_not_depend_on_threads() -> None:
    x = _drawn((300_007, 3), "float32")
    function = lamina.jit(lambda x: jnp.sin(x).sum(0))
    with lamina.num_threads(1):
        one = np.asarray(function(x))
    with lamina.num_threads(2):
        np.testing.assert_array_equal(one, function(x))


def test_is_one_kernel() -> None:
    x = _drawn((30_011, 3), "float32")
    compiled = lamina.jit(lambda x: (jnp.tanh(x) * 2).sum(0)).lower(x).compile()
    assert len(json.loads(compiled.as_text("manifest"))["kernels"]) == 1
