"""Losses of labels that are integers: each is one walk over the rows, and right at all their edges."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax, nn

RNG = np.random.default_rng(0)


def picked(x, labels):
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), labels[:, None], 1))


def indexed(x, labels):
    return -jnp.mean(nn.log_softmax(x)[jnp.arange(x.shape[0]), labels])


def one_hot(x, labels):
    return -jnp.mean(jnp.sum(nn.log_softmax(x) * nn.one_hot(labels, x.shape[1]), 1))


def of_logsumexp(x, labels):
    return jnp.mean(nn.logsumexp(x, 1) - x[np.arange(x.shape[0]), labels])


LOSSES = (picked, indexed, one_hot, of_logsumexp)


def expected(x, labels):
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        shifted = wide - wide.max(1, keepdims=True)
        rows = np.log(np.exp(shifted).sum(1))
        probabilities = np.exp(shifted - rows[:, None])
    at = np.arange(len(x)), labels
    probabilities[at] -= 1
    return np.mean(rows - shifted[at]), probabilities / len(x)


@pytest.mark.parametrize("shape", [(4, 64), (5, 100), (3, 70), (33, 129), (700, 1000), (9, 10), (1, 77)], ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda f: f.__name__)
def test_against_numpy(loss, shape):
    x = RNG.standard_normal(shape).astype(np.float32) * 4
    labels = RNG.integers(0, shape[1], shape[0]).astype(np.int32)
    value, gradient = lamina.jit(lamina.value_and_grad(loss))(x, labels)
    want, slope = expected(x, labels)
    np.testing.assert_allclose(value, want, rtol=2e-6)
    np.testing.assert_allclose(gradient, slope, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(lamina.jit(loss)(x, labels), want, rtol=2e-6)
    np.testing.assert_allclose(lamina.jit(lamina.grad(loss))(x, labels), gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float64], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("loss", [picked, indexed], ids=lambda f: f.__name__)
def test_of_other_floats(loss, dtype):
    with lamina.enable_x64(np.dtype(dtype).itemsize == 8):
        x = RNG.standard_normal((40, 96)).astype(dtype)
        labels = RNG.integers(0, 96, 40).astype(np.int32)
        value, gradient = lamina.jit(lamina.value_and_grad(loss))(x, labels)
        want, slope = expected(x, labels)
        tolerance = {2: 3e-2, 8: 1e-12}[np.dtype(dtype).itemsize]
        assert gradient.dtype == dtype
        np.testing.assert_allclose(np.float64(value), want, rtol=tolerance)
        np.testing.assert_allclose(np.float64(gradient), slope, rtol=tolerance, atol=tolerance / 40)


def test_labels_from_the_end_and_beyond():
    x = RNG.standard_normal((6, 80)).astype(np.float32)
    from_the_end = np.array([-1, -80, 0, 79, -3, 5], np.int32)
    want, _ = expected(x, from_the_end % 80)
    for loss in (picked, indexed, of_logsumexp):
        np.testing.assert_allclose(lamina.jit(loss)(x, from_the_end), want, rtol=2e-6)
    beyond = np.array([0, 1, 80, 3, 4, 5], np.int32)
    assert np.isnan(lamina.jit(picked)(x, beyond))  # take_along_axis fills
    held, _ = expected(x, np.minimum(beyond, 79))
    np.testing.assert_allclose(lamina.jit(indexed)(x, beyond), held, rtol=2e-6)
    assert not np.any(lamina.jit(lamina.grad(indexed))(x, beyond)[2, 79] < 0)  # drops


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_of_no_numbers(odd):
    x = RNG.standard_normal((5, 70)).astype(np.float32)
    x[2, 7] = odd
    labels = np.array([1, 2, 3, 4, 5], np.int32)
    want, slope = expected(x, labels)
    value, gradient = lamina.jit(lamina.value_and_grad(indexed))(x, labels)
    np.testing.assert_allclose(value, want, rtol=2e-6)
    np.testing.assert_allclose(gradient, slope, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("loss", [picked, indexed, one_hot], ids=lambda f: f.__name__)
def test_one_walk_over_the_rows(loss):
    x = np.zeros((300, 1000), np.float32)
    labels = np.zeros(300, np.int32)
    for function, kernels in [(loss, 2), (lamina.grad(loss), 1), (lamina.value_and_grad(loss), 2)]:
        fused = lamina.jit(function).lower(x, labels).compile().as_text("fused")
        assert fused.count(" call @") == kernels, fused
        assert fused.count('lamina.kind = "rows"') == 1, fused


def test_rows_and_columns_by_number():
    """Numbers of rows in any place of the index, of several dimensions, in steps, and of some rows."""
    x = RNG.standard_normal((5, 6, 7)).astype(np.float32)
    i, j = np.arange(5), np.arange(6)
    k = RNG.integers(0, 7, (5, 6))
    cases = [
        (i[:, None], j[None, :], k),
        (RNG.integers(0, 5, 6), j, RNG.integers(0, 7, 6)),
        (i, RNG.integers(0, 6, 5), slice(None)),
        (i[:3], RNG.integers(0, 6, 3)),
        (i[::-1], RNG.integers(0, 6, 5)),
        (i, i, i),
    ]
    for index in cases:
        traced = tuple(jnp.asarray(part) if not isinstance(part, slice) else part for part in index)

        def read(x, *, index=index):
            return x[index]

        def read_traced(x, *, index=traced):
            return x[index]

        def added(x, *, index=index):
            return x.at[index].add(1.0)

        np.testing.assert_array_equal(lamina.jit(read)(x), x[index])
        np.testing.assert_array_equal(lamina.jit(read_traced)(x), x[index])
        want = x.copy()
        np.add.at(want, index, np.float32(1))
        np.testing.assert_array_equal(lamina.jit(added)(x), want)
    counted = lamina.jit(lambda x, k: x[lax.iota(int, 5)[:, None], jnp.arange(6)[None, :], k])
    np.testing.assert_array_equal(counted(x, k), x[cases[0]])
