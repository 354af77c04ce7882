"""Many short rows, which are turned so that vectors go across them (`linalg-pack-short-rows`): beside SciPy
and NumPy, for rows that fill blocks and rows that don't, and for what is no number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import lamina
import lamina.numpy as jnp
from lamina import nn

SHAPES = [(1000, 10), (512, 6), (200, 10), (129, 3), (40, 10), (1001, 24), (700, 96), (20, 30, 7), (100, 1), (64, 64)]
Array = Any


def _standard(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-3)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (nn.softmax, lambda x: scipy.special.softmax(x, -1)),
    "log_softmax": (nn.log_softmax, lambda x: scipy.special.log_softmax(x, -1)),
    "logsumexp": (lambda x: nn.logsumexp(x, -1), lambda x: scipy.special.logsumexp(x, -1)),
    "standard": (_standard, _standard),
    "extremes": (lambda x: (x.min(-1), x.max(-1)), lambda x: (x.min(-1), x.max(-1))),
    "argmax": (lambda x: x.argmax(-1), lambda x: x.argmax(-1)),
    "softmax_and_more": (
        lambda x: (nn.softmax(x), x.sum(0), jnp.exp(x) + jnp.exp(x).sum(-1, keepdims=True)),
        lambda x: (
            scipy.special.softmax(x, -1), x.sum(0), np.exp(x) + np.exp(x).sum(-1, keepdims=True),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows(name: str, shape: tuple[int, ...]) -> None:
    ours, theirs = PROGRAMS[name]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    _compare(lamina.jit(ours)(x), theirs(x.astype(np.float64)), 2e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int32])
def test_other_types(dtype: Any) -> None:
    x = (np.random.default_rng(1).normal(size=(999, 11)) * 20).astype(np.float32).clip(0, 99).astype(dtype)
    wide = x.astype(np.float64)
    results = lamina.jit(lambda x: (x.argmax(-1), x.min(-1), x.max(-1)))(x)
    _compare(results, (wide.argmax(-1), wide.min(-1), wide.max(-1)), 0)
    _compare(lamina.jit(nn.softmax)(x.astype(dtype)), scipy.special.softmax(wide, -1), 2e-2)


def test_no_numbers() -> None:
    x = np.random.default_rng(2).normal(size=(300, 9)).astype(np.float32)
    x[3, 4] = np.nan
    x[7] = np.inf
    x[8, 2] = np.inf
    x[9] = -np.inf
    x[11, :5] = -np.inf
    x[13, 1], x[13, 2] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        _compare(lamina.jit(nn.softmax)(x), scipy.special.softmax(x, -1), 2e-6)
        _compare(lamina.jit(lambda x: nn.logsumexp(x, -1))(x), scipy.special.logsumexp(x, -1), 2e-6)
    _compare(lamina.jit(lambda x: (x.argmax(-1), x.max(-1)))(x), (x.argmax(-1), x.max(-1)), 0)


@pytest.mark.parametrize("rows", [1024, 1000])
def test_donated(rows: int) -> None:
    x = np.random.default_rng(3).normal(size=(rows, 10)).astype(np.float32)
    result = lamina.jit(lambda x: nn.softmax(x * 2) + x, donate_argnums=0)(jnp.array(x))
    _compare(result, scipy.special.softmax(x.astype(np.float64) * 2, -1) + x, 4e-6)


@pytest.mark.parametrize("columns", [3, 10, 32])
def test_gradients(columns: int) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 700, columns)).astype(np.float32)

    def of_softmax(x: Array) -> Array:
        return (nn.softmax(x) * y).sum()

    p = scipy.special.softmax(x.astype(np.float64), -1)
    _compare(lamina.jit(lamina.grad(of_softmax))(x), p * (y - (p * y).sum(-1, keepdims=True)), 2e-6)
    _compare(lamina.jit(lamina.grad(lambda x: nn.logsumexp(x, -1).sum()))(x), p, 2e-6)


def test_same_with_any_number_of_threads() -> None:
    x = np.random.default_rng(5).normal(size=(30011, 12)).astype(np.float32)
    softmax = lamina.jit(nn.softmax)
    before = np.asarray(softmax(x))
    with lamina.num_threads(1):
        np.testing.assert_array_equal(before, softmax(x))


def _compare(ours: Any, theirs: Any, tolerance: float) -> None:
    ours, theirs = (one if isinstance(one, tuple) else (one,) for one in (ours, theirs))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            np.asarray(one).astype(np.float64), other, rtol=tolerance, atol=tolerance
        )
