"""Transposes of every kind of size and element: tiles of registers, few rows dealt, one by one."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(5)
TYPES = [np.bool_, np.uint16, np.float32, np.complex64, ml_dtypes.int4]
WIDE = [np.float64, np.complex128]


def _numbers(dtype, shape):
    numbers = RNG.integers(-8, 8, shape)
    return (numbers + 1j * numbers[::-1] if np.dtype(dtype).kind == "c" else numbers).astype(dtype)


def _check(function, *arrays):
    for got, expected in zip(lamina.jit(function)(*arrays), function(*arrays), strict=True):
        np.testing.assert_array_equal(np.asarray(got), expected, str(expected.shape))


def _turn_all_sizes(dtype):
    sizes = [(few, many) for few in (0, 1, 2, 3, 4, 5, 7, 9, 12, 17) for many in (7, 130)]
    sizes += [(side, many) for side in (4, 8, 16) for many in (side, side + 5)]
    _check(lambda *xs: [x.T for x in xs], *(_numbers(dtype, s) for s in sizes))
    _check(lambda *xs: [x.T for x in xs], *(_numbers(dtype, s[::-1]) for s in sizes))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_few_rows_and_columns(dtype):
    _turn_all_sizes(dtype)


@pytest.mark.parametrize("dtype", WIDE, ids=lambda t: np.dtype(t).name)
def test_few_rows_of_wide_elements(dtype):
    with lamina.enable_x64():
        _turn_all_sizes(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32], ids=["u8", "f32"])
@pytest.mark.parametrize("shape", [(3, 37, 67), (5, 2, 19, 7), (3, 6, 5, 2, 21)], ids=str)
def test_all_permutations(dtype, shape):
    x = _numbers(dtype, shape)
    every = list(itertools.permutations(range(len(shape))))
    _check(lambda x: [x.transpose(p) for p in every[:: len(every) // 24 + 1]], x)


def test_arithmetic_on_the_way():
    small, large = _numbers(np.int8, (3, 1000)), RNG.standard_normal((7, 129)).astype(np.float32)
    _check(lambda x: [x.T.astype(np.float32) * 2, x.reshape(1000, 3).T.astype(np.int32)], small)
    _check(lambda x: [1 - x.T, x.T > 0], large)


def test_more_than_one_block_in_tasks():
    x = _numbers(np.float32, (3, 100_003))
    _check(lambda x: [x.T, x.T.reshape(3, 100_003).T.T, x.reshape(-1, 3).T], x)


@pytest.mark.parametrize("times", [2, 3, 5])
def test_repeated_elements(times):
    x = _numbers(np.float32, (9, 41))
    ours = lamina.jit(lambda x: lamina.numpy.repeat(x, times, 1))(x)
    np.testing.assert_array_equal(np.asarray(ours), np.repeat(x, times, 1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "complex64"])
@pytest.mark.parametrize(
    ("shape", "order", "axis"),
    [
        ((37, 130), (1, 0), 1), ((37, 130), (1, 0), 0), ((37, 130), (1, 0), None),
        ((9, 33, 17), (0, 2, 1), 0), ((9, 33, 17), (2, 0, 1), 1), ((9, 33, 17), (2, 1, 0), (0, 2)),
        ((2, 65, 31, 3), (0, 3, 1, 2), -1), ((2, 65, 31, 3), (0, 3, 1, 2), 1), ((0, 5), (1, 0), 1),
    ],
    ids=str,
)  # fmt: skip
def test_reductions_of_what_is_turned(shape, order, axis, dtype):
    x = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)

    def sums(np_, x):
        turned = np_.transpose(x, order)
        numbers = np_.arange(turned.shape[-1]) % 2
        shifted = turned if dtype in ("bool", "int8") else turned + numbers.astype(x.dtype)
        return shifted.sum(axis), (turned != 0).all(axis)

    for got, expected in zip(lamina.jit(lambda x: sums(jnp, x))(x), sums(np, x), strict=True):
        np.testing.assert_allclose(np.asarray(got), expected.astype(got.dtype), rtol=2e-3)


def test_the_largest_of_what_is_turned_is_where_it_was():
    x = np.random.default_rng(0).integers(0, 9, (33, 70)).astype(np.float32)
    x[3, 5] = np.nan
    largest, where = lamina.jit(lambda x: (x.T.max(1), jnp.argmax(x.T * 2, 1)))(x)
    np.testing.assert_array_equal(largest, x.T.max(1))
    np.testing.assert_array_equal(where, np.argmax(x.T * 2, 1))


def test_gradients_of_sums_of_what_is_turned():
    x = np.random.default_rng(0).standard_normal((9, 33, 17)).astype(np.float32)
    got = lamina.grad(lambda x: (jnp.transpose(x, (2, 0, 1)).sum(1) ** 2).sum())(x)
    expected = np.broadcast_to(2 * x.sum(0), x.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex64"])
@pytest.mark.parametrize("size", [3, 16, 65, 130])
def test_sums_of_what_is_read_both_ways(size, dtype):
    x = np.random.default_rng(0).integers(0, 2, (size, size)).astype(dtype)
    y = np.random.default_rng(1).integers(0, 2, (size, size)).astype(dtype)
    total, largest = lamina.jit(lambda x, y: ((x.T * y).sum(), jnp.abs(x.T - y).max()))(x, y)
    np.testing.assert_allclose(np.asarray(total).astype(complex), (x.T * y).astype(complex).sum(), rtol=1e-3)
    assert largest == np.abs(x.T - y).max()
