"""Transposes of every kind of size and element: tiles of registers, few rows dealt, one by one."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import lamina

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
