"""Blocks of a task's rows may overlap by a few: sums over several dimensions, and updates in place."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp


def gradient(x, y):
    return jnp.einsum("bsm,bsn->mn", x, y)


@pytest.mark.parametrize("rows", [512, 511, 500, 128])
@pytest.mark.parametrize("donate", [False, True])
def test_weights_of_rows_that_fill_no_blocks(rows: int, donate: bool) -> None:
    drawn = np.random.default_rng(0)
    x, y = drawn.random((4, 64, rows), np.float32), drawn.random((4, 64, 48), np.float32)
    w = drawn.random((rows, 48), np.float32)
    step = lamina.jit(
        lambda w, x, y: w - 0.5 * gradient(x, y), donate_argnums=(0,) if donate else ()
    )
    expected = w - 0.5 * np.einsum("bsm,bsn->mn", x, y, dtype=np.float64)
    np.testing.assert_allclose(step(jnp.array(w), x, y), expected, rtol=2e-6)
    np.testing.assert_allclose(
        lamina.jit(gradient)(x, y), np.einsum("bsm,bsn->mn", x, y, dtype=np.float64), rtol=2e-6
    )
