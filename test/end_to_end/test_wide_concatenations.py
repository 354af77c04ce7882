"""Very many arrays put together: compiled in time in proportion to them."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp


@pytest.mark.parametrize("count", [257, 3000])
def test_many_arrays(count: int) -> None:
    xs = [np.full((1 + i % 2, 2), i, np.float32) for i in range(count)]
    np.testing.assert_array_equal(lamina.jit(lambda *x: jnp.concatenate(x))(*xs), np.concatenate(xs))


def test_many_numbers_that_are_computed() -> None:
    found = lamina.jit(lambda x: jnp.stack([x * i for i in range(2000)]))(np.float32(0.5))
    np.testing.assert_array_equal(found, np.float32(0.5) * np.arange(2000, dtype=np.float32))


def test_columns() -> None:
    xs = [np.arange(5, dtype=np.int32) + i for i in range(600)]
    found = lamina.jit(lambda *x: jnp.stack(x, axis=-1))(*xs)
    np.testing.assert_array_equal(found, np.stack(xs, axis=-1))
