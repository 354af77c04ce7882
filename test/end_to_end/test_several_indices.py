"""Elements and windows read and written by several index arrays, inside and outside, against NumPy."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(11)
X = RNG.integers(0, 99, (6, 7, 5)).astype(np.float32)
TYPES = [np.int8, np.uint8, np.int32, np.uint32]


def _indices(dtype, size, outside):
    low = -size if np.dtype(dtype).kind == "i" else 0
    beyond = 3 if outside else 0
    return RNG.integers(low - (beyond if low else 0), size + beyond, 40).astype(dtype)


def _place(index, size):
    index = index.astype(np.int64)
    index = np.where(index < 0, index + size, index)
    return index, (index >= 0) & (index < size)


def _pairs(dtype, sizes):
    pairs = [_indices(dtype, size, True) for size in sizes]
    (i, i_in), (j, j_in) = (_place(p, s) for p, s in zip(pairs, sizes, strict=True))
    return pairs, i, j, i_in & j_in


@pytest.mark.parametrize("dtype", TYPES)
def test_read(dtype):
    (a, b), i, j, inside = _pairs(dtype, (6, 7))
    rows = X[np.clip(i, 0, 5), np.clip(j, 0, 6)]
    modes = lamina.jit(lambda x, i, j: [x.at[i, j].get(mode=m) for m in ("clip", "fill")])(X, a, b)
    np.testing.assert_array_equal(np.asarray(modes[0]), rows)
    np.testing.assert_array_equal(np.asarray(modes[1]), np.where(inside[:, None], rows, np.nan))
    i, j, k = (_indices(np.int32, size, False) for size in X.shape)
    ours = lamina.jit(lambda x, i, j, k: (x[i, j, k], x[:, j, k], x[i, 3, k], x[i, :, k]))(X, i, j, k)
    expected = X[i, j, k], X[:, j, k], X[i, 3, k], X[i, :, k]
    for got, want in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", TYPES)
def test_written(dtype):
    (a, b), i, j, inside = _pairs(dtype, (7, 5))
    updates = RNG.integers(0, 9, 40).astype(np.float32)
    ours = lamina.jit(lambda x, i, j, u: (x.at[:, i, j].add(u), x[0].at[i, j].max(u), x[1].at[i, j].set(u)))(
        X, a, b, updates
    )
    added, largest, put = X.copy(), X[0].copy(), X[1].copy()
    for at_i, at_j, update in zip(i[inside], j[inside], updates[inside], strict=True):
        added[:, at_i, at_j] += update
        largest[at_i, at_j] = max(largest[at_i, at_j], update)
        put[at_i, at_j] = update
    for got, want in zip(ours, (added, largest, put), strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)


def test_wide_indices():
    with lamina.enable_x64():
        i, j = np.array([2**40, -1, 3]), np.array([0, 2**33 + 1, 4])
        ours = lamina.jit(lambda x, i, j: (x.at[i, j].get(mode="clip"), x.at[i, j].set(-1)))(X[0], i, j)
        np.testing.assert_array_equal(np.asarray(ours[0]), X[0][[6, 6, 3], [0, 4, 4]])
        put = X[0].copy()
        put[3, 4] = -1
        np.testing.assert_array_equal(np.asarray(ours[1]), put)


def test_gradient_and_donation():
    i, j = np.array([0, 2, 2, 5]), np.array([6, 1, 1, 0])
    slope = lamina.jit(lamina.grad(lambda x: (x[i, j] ** 2).sum()))(X[:, :, 0])
    expected = np.zeros((6, 7), np.float32)
    np.add.at(expected, (i, j), 2 * X[i, j, 0])
    np.testing.assert_array_equal(np.asarray(slope), expected)
    program = lamina.jit(lambda x, i, j: x.at[i, j].add(1), donate_argnums=0)
    x = jnp.asarray(X[:, :, 0])
    assert program.lower(x, i, j).compile().memory_analysis().temp_size_in_bytes < 1024
    expected = X[:, :, 0].copy()
    np.add.at(expected, (i, j), 1)
    np.testing.assert_array_equal(np.asarray(program(x, i, j)), expected)


def test_nothing_to_read():
    none = np.zeros(0, np.int32)
    assert lamina.jit(lambda x, i: x[i, i])(X, none).shape == (0, 5)
    np.testing.assert_array_equal(np.asarray(lamina.jit(lambda x, i: x.at[i, i].set(1))(X, none)), X)
