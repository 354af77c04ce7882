"""Programs that walk the columns of an array several times, beside SciPy in f64: rows that are a power of two
bytes apart, and rows that are not."""

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

SHAPES = [(1024, 1024), (512, 2048), (1023, 1024)]
Array = Any


def _standard(x: Array) -> Array:
    return (x - x.mean(0)) / (x.std(0) + 1e-3)


def _exponentials(x: Array, exp: Callable[[Array], Array] = jnp.exp) -> tuple[Array, Array, Array]:
    """What is reduced is a result itself, and what is written over in softmax stays."""
    e = exp(x - x.max(0))
    return e, e / e.sum(0), x.min(0)


def _with_transpose(x: Array, y: Array) -> Array:
    n = min(x.shape)
    return y[:n, :n] + x.T[:n, :n]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (lambda x: nn.softmax(x, 0), lambda x: scipy.special.softmax(x, 0)),
    "log_softmax": (lambda x: nn.log_softmax(x, 0), lambda x: scipy.special.log_softmax(x, 0)),
    "standard": (_standard, _standard),
    "exponentials": (_exponentials, lambda x: _exponentials(x, np.exp)),
    "of_rows_too": (
        lambda x: nn.softmax(x, 0) * jnp.abs(x).max(1)[:, None],
        lambda x: scipy.special.softmax(x, 0) * np.abs(x).max(1)[:, None],
    ),
    "of_its_transpose": (
        lambda x: _with_transpose(x, nn.softmax(x, 0)),
        lambda x: _with_transpose(x, scipy.special.softmax(x, 0)),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_columns(name: str, shape: tuple[int, int]) -> None:
    ours, theirs = PROGRAMS[name]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    _compare(lamina.jit(ours)(x), theirs(x.astype(np.float64)), 4e-6)


@pytest.mark.parametrize("dtype, tolerance", [(np.float16, 4e-3), (ml_dtypes.bfloat16, 4e-2)])
def test_narrow_columns(dtype: Any, tolerance: float) -> None:
    x = np.random.default_rng(1).normal(size=(1024, 2048)).astype(dtype)
    expected = scipy.special.softmax(x.astype(np.float64), 0)
    _compare(lamina.jit(lambda x: nn.softmax(x, 0))(x), expected, tolerance)


def test_columns_that_no_stack_holds() -> None:
    """No block of so many rows is a task's own temporary."""
    x = np.random.default_rng(4).normal(size=(4096, 1024)).astype(np.float32)
    _compare(lamina.jit(_standard)(x), _standard(x.astype(np.float64)), 4e-6)


def test_columns_of_doubles() -> None:
    x = np.random.default_rng(5).normal(size=(2048, 512))
    with lamina.enable_x64(True):
        _compare(lamina.jit(lambda x: nn.softmax(x, 0))(x), scipy.special.softmax(x, 0), 1e-14)


def test_in_place() -> None:
    """A donated argument is what the result is written over."""
    x = np.random.default_rng(2).normal(size=(1024, 1024)).astype(np.float32)
    out = lamina.jit(lambda x: nn.softmax(x, 0), donate_argnums=0)(jnp.array(x))
    _compare(out, scipy.special.softmax(x.astype(np.float64), 0), 4e-6)


def test_nan_and_infinity() -> None:
    x = np.random.default_rng(3).normal(size=(1024, 1024)).astype(np.float32)
    x[3, 5], x[7, 9], x[8, 70] = np.nan, -np.inf, np.inf
    out = np.asarray(lamina.jit(lambda x: nn.softmax(x, 0))(x))
    assert np.isnan(out[:, [5, 70]]).all()
    assert np.isfinite(np.delete(out, [5, 70], axis=1)).all()
    assert out[7, 9] == 0


def _compare(got: Any, expected: Any, tolerance: float) -> None:
    for x, y in zip(lamina.tree.leaves(got), lamina.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(x).astype(np.float64), y, tolerance, tolerance)
