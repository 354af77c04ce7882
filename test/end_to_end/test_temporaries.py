"""Programs need no more memory, besides arguments and results, than they are known to need: what
is stated here is what they took when it was last brought down, which is no more than JAX takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

import lamina
from lamina import lax
from lamina import numpy as jnp
from lamina.image import resize
from lamina.scipy.linalg import cho_solve
from lamina.scipy.stats import multivariate_normal

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def _normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def _temporary_bytes(program: Callable[..., Any], *args: Any) -> int:
    return lamina.jit(program).lower(*args).compile().memory_analysis().temp_size_in_bytes


def _convolution(
    groups: int = 1, *, spread: int = 1, layout: Any = NHWC, padding: Any = "SAME"
) -> Callable[..., Any]:
    def convolution(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), padding, (spread, spread),
            dimension_numbers=layout, feature_group_count=groups,
        )  # fmt: skip

    return convolution


def _gradients(f: Callable[..., Any], numbers: int | tuple[int, ...]) -> Callable[..., Any]:
    return lamina.grad(lambda x, w: jnp.sum(f(x, w) ** 2), numbers)


CONVOLUTIONS = {
    "NCHW, both gradients": (
        _gradients(_convolution(layout=NCHW), (0, 1)),
        (_normal(4, 64, 28, 28), _normal(64, 64, 3, 3)),
        2_555_904,
    ),
    "transposed": (
        _convolution(spread=2, padding=((2, 2), (2, 2))),
        (_normal(4, 16, 16, 64), _normal(4, 4, 64, 32)),
        0,
    ),
    "bf16": (
        _convolution(),
        # more than what second caches have room for as a whole
        (_normal(2, 56, 56, 32, dtype=ml_dtypes.bfloat16), _normal(3, 3, 32, 32, dtype=ml_dtypes.bfloat16)),
        0,
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    program, args, most = CONVOLUTIONS[name]
    assert _temporary_bytes(program, *args) <= most


VECTOR, MATRIX, INDICES = _normal(1 << 16), _normal(256, 128), np.arange(1 << 16, dtype=np.int32)[::-1]

MOVES = {
    "turned by a quarter": (jnp.rot90, (MATRIX,)),
    "turned by three": (lambda x: jnp.rot90(x, 3), (MATRIX,)),
    "gradient of turned": (lambda x: lamina.grad(lambda x: jnp.sum(jnp.rot90(x) ** 2))(x), (MATRIX,)),
    "computed and reversed": (lambda x: jnp.flip(jnp.exp(x), 0) + 1, (MATRIX,)),
    "upsampled": (lambda x: jnp.repeat(jnp.repeat(x, 2, 0), 2, 1), (MATRIX,)),
    "gathered or filled": (lambda x, i: x.at[i].get(mode="fill"), (VECTOR, INDICES)),
    "taken or filled": (lambda x, i: jnp.take(x, i + 1), (VECTOR, INDICES)),
    "taken along rows or filled": (
        lambda x, i: jnp.take_along_axis(x, i, 1),
        (MATRIX, INDICES[: 256 * 128].reshape(256, 128) % 130),
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    program, args = MOVES[name]
    assert _temporary_bytes(program, *args) == 0




def _gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    return lamina.grad(lambda x: jnp.sum(f(x) ** 2))


# Gradients that cut out again, or add up, what was put together.
PUT_TOGETHER = {
    "insert": (lambda x: jnp.insert(x, 5, 1.0), VECTOR, 2 * VECTOR.nbytes),
    "insert, columns": (lambda x: jnp.insert(x, 5, 1.0, axis=1), MATRIX, 2 * MATRIX.nbytes),
    "pad": (lambda x: jnp.pad(x, 2), MATRIX, 0),
    "stack": (lambda x: jnp.stack([x, MATRIX + 1]), MATRIX, 0),
    "polynomial": (lambda x: jnp.polyval(np.arange(1.0, 7, dtype=np.float32), x), VECTOR, 0),
    # The inner derivative, and what each kernel adds its pads to.
    "laplacian": (
        lambda x: x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1],
        MATRIX,
        MATRIX.nbytes,
    ),
    "differences": (lambda x: jnp.gradient(x)[0] + jnp.gradient(x)[1], MATRIX, MATRIX.nbytes),
}


@pytest.mark.parametrize("name", PUT_TOGETHER)
def test_put_together(name: str) -> None:
    f, x, most = PUT_TOGETHER[name]
    assert _temporary_bytes(_gradient(f), x) <= most
    direction = np.random.default_rng(9).standard_normal(x.shape).astype(np.float32)
    _, slope = lamina.jvp(lambda x: jnp.sum(f(x) ** 2), (x,), (direction,))
    found = np.vdot(lamina.jit(_gradient(f))(x), direction)
    np.testing.assert_allclose(found, slope, rtol=2e-3, atol=1e-2 * np.sqrt(x.size))


def test_one_factor_for_many() -> None:
    x, covariance = _normal(4096, 16), (lambda a: a @ a.T + np.eye(16, dtype=np.float32))(_normal(16, 16))
    mean = _normal(16)
    found = lamina.jit(multivariate_normal.logpdf)(x, mean, covariance)
    expected = scipy.stats.multivariate_normal.logpdf(x, mean, covariance)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    # The points, and these before they are solved for.
    assert _temporary_bytes(multivariate_normal.logpdf, x, mean, covariance) <= 2 * x.nbytes + 2048


@pytest.mark.parametrize(("n", "m"), [(12, 36), (36, 12), (35, 7), (8, 2)])
def test_nearest(n: int, m: int) -> None:
    x = _normal(n, 10, n)
    found = lamina.jit(lambda x: resize(x, (m, 10, m), "nearest"))(x)
    place = np.floor((np.arange(m) + 0.5) * n / m).astype(int)
    np.testing.assert_array_equal(found, x[place][:, :, place])
    assert _temporary_bytes(lambda x: resize(x, (m, 10, m), "nearest"), x) == 0


N = 256
REGULAR = _normal(N, N) + 4 * np.sqrt(N, dtype=np.float32) * np.eye(N, dtype=np.float32)
SYMMETRIC = REGULAR @ REGULAR.T

SOLVED = {
    # One matrix is the factors; the permutation and what a scalar takes come on top.
    "inverse": (jnp.linalg.inv, (REGULAR,), 4 * N * N + 4 * N),
    "solution": (jnp.linalg.solve, (REGULAR, SYMMETRIC), 4 * N * N + 4 * N),
    "determinant": (jnp.linalg.det, (REGULAR,), 4 * N * N + 16 * N),
    "factor of what was computed": (lambda x: jnp.linalg.cholesky(2 * x), (SYMMETRIC,), 0),
    "by a factor": (
        lambda a, b: cho_solve((jnp.linalg.cholesky(a), True), b),
        (SYMMETRIC, REGULAR),
        4 * N * N,
    ),
}


@pytest.mark.parametrize("name", SOLVED)
def test_solved(name: str) -> None:
    program, args, most = SOLVED[name]
    assert _temporary_bytes(program, *args) <= most


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("n", [5, 40, 130])
def test_solved_in_place(n: int, batch: tuple[int, ...], dtype: Any) -> None:
    a = (_normal(*batch, n, n) + 4 * np.sqrt(n) * np.eye(n)).astype(dtype)
    b = _normal(*batch, n, 7, dtype=dtype)
    before, lower = b.copy(), np.tril(a)

    def solve(low: Any, x: Any) -> Any:
        return lax.linalg.triangular_solve(low, x, left_side=True, lower=True)

    close = {"rtol": 1e-3, "atol": 1e-3}
    np.testing.assert_allclose(lamina.jit(jnp.linalg.solve)(a, b), np.linalg.solve(a, b), **close)
    once, twice = np.linalg.solve(lower, b + 1), np.linalg.solve(lower, np.linalg.solve(lower, b + 1))
    found = lamina.jit(lambda low, x: solve(low, solve(low, x + 1)))(lower, b)
    np.testing.assert_allclose(found, twice, **close)
    read_later = lamina.jit(lambda low, x: (lambda y: solve(low, y) + y)(x + 1))(lower, b)
    np.testing.assert_allclose(read_later, once + b + 1, **close)
    itself = lamina.jit(lambda low: solve(low * 2, low * 2))(lower)
    np.testing.assert_allclose(itself, np.broadcast_to(np.eye(n), lower.shape), **close)
    squared = a @ np.swapaxes(a.conj(), -1, -2)
    factor = lamina.jit(lambda x: jnp.linalg.cholesky(2 * x))(squared)
    np.testing.assert_allclose(factor, np.linalg.cholesky(2 * squared), rtol=2e-3, atol=2e-3)
    donated = lamina.jit(solve, donate_argnums=1)(lower, jnp.array(b))
    np.testing.assert_allclose(donated, np.linalg.solve(lower, b), **close)
    np.testing.assert_array_equal(b, before)


@pytest.mark.parametrize("axis", [0, 1])
def test_rolled(axis: int) -> None:
    x = _normal(7, 9)
    rolled = lamina.jit(lambda x, s: jnp.roll(x, s, axis))
    for shift in (0, 1, -3, 8, 9, 1000, -1000):
        np.testing.assert_array_equal(rolled(x, np.int32(shift)), np.roll(x, shift, axis))
    wide = _normal(1 << 16)
    most = 64 + 4 * len(wide) // 64  # the shift, and no part of the array
    assert _temporary_bytes(lambda x, s: jnp.roll(x, s), wide, np.int32(5)) <= most


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
@pytest.mark.parametrize("shape", [(7,), (4, 5), (0, 3)])
def test_inserted(shape: tuple[int, ...], dtype: Any) -> None:
    x = _normal(*shape).astype(dtype)
    for axis in (None, *range(len(shape))):
        n = x.size if axis is None else shape[axis]
        inserted = lamina.jit(lambda x, p, axis=axis: jnp.insert(x, p, 1, axis))
        for place in (0, n, -n, n // 2):
            expected = np.insert(x, place, 1, axis)
            np.testing.assert_array_equal(jnp.insert(x, place, 1, axis), expected)
            np.testing.assert_array_equal(inserted(x, np.int32(place)), expected)
    values = np.ones((3, *x.shape[:-1]), dtype) if x.ndim > 1 else np.array([1, 0, 1], dtype)
    found = jnp.insert(x, n // 2, values, -1)
    np.testing.assert_array_equal(found, np.insert(x, n // 2, values, -1))
    wide = _normal(1 << 16)
    assert _temporary_bytes(lambda x: jnp.insert(x, 5, 1.0), wide) <= 64


@pytest.mark.parametrize("shape", [(64, 64), (37, 53), (5, 300), (3, 70, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_turned(times: int, dtype: Any, shape: tuple[int, ...]) -> None:
    x = (_normal(*shape) * 10).astype(dtype)
    turned = lamina.jit(lambda x: jnp.rot90(x, times, axes=(-2, -1)))(x)
    np.testing.assert_array_equal(np.asarray(turned), np.rot90(x, times, axes=(-2, -1)))


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_upsampled(axes: tuple[int, ...]) -> None:
    x = _normal(3, 4, 5)

    def upsampled(library: Any, x: Any) -> Any:
        for times, axis in enumerate(axes, 2):
            x = library.repeat(x, times, axis)
        return x

    found = lamina.jit(lambda x: upsampled(jnp, x))(x)
    np.testing.assert_array_equal(np.asarray(found), upsampled(np, x))
    y = _normal(*found.shape)
    gradient = lamina.jit(lamina.grad(lambda x: jnp.sum(upsampled(jnp, x) * y)))(x)
    expected = y
    for times, axis in reversed(list(enumerate(axes, 2))):
        split = expected.shape[:axis] + (x.shape[axis], times) + expected.shape[axis + 1 :]
        expected = expected.reshape(split).sum(axis + 1)
    np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-5, atol=1e-6)
