"""Gathers whose indices are all the same number, known when compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lamina.numpy as jnp
from lamina import jit, lax

_X = np.arange(48, dtype=np.float32).reshape(8, 6)


@pytest.mark.parametrize("at", [0, 3, 7, -2, 100, -100])
@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
def test_rows(at: int, mode: str) -> None:
    indices = np.full((5,), at)
    found = np.asarray(jit(lambda x: jnp.take(x, indices, axis=0, mode=mode))(_X))
    if mode == "fill" and not -8 <= at < 8:
        assert np.isnan(found).all()
    else:
        limited = min(max(at, 0), 7) if mode == "clip" else at % 8
        np.testing.assert_array_equal(found, _X[np.full(5, limited)])


@pytest.mark.parametrize("at", [0, 2, 9])
def test_windows(at: int) -> None:
    """Of two rows and three columns, clamped into the array; one index for both dimensions."""
    numbers = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
    indices = np.full((4, 2), at, np.int32)

    def windows(x: Any) -> Any:
        return lax.gather(x, indices, numbers, (2, 3), mode="clip")

    row, column = min(at, 6), min(at, 3)
    expected = np.broadcast_to(_X[row : row + 2, column : column + 3], (4, 2, 3))
    np.testing.assert_array_equal(jit(windows)(_X), expected)


def test_a_search_begins_without_an_array_of_indices() -> None:
    x = np.sort(np.random.default_rng(0).standard_normal(5000).astype(np.float32))
    values = np.concatenate([x[::7], [np.nan, np.inf, -np.inf, 0]]).astype(np.float32)
    found = jit(jnp.searchsorted)(x, values)
    np.testing.assert_array_equal(found, np.searchsorted(x, values))
