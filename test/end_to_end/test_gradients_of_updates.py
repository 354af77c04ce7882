"""Gradients of updates and of windows side by side, which are one pass over memory, beside JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import lamina
from lamina import lax
from lamina import numpy as jnp

UPDATES: dict[str, Callable[[Any], Any]] = {
    "rows added to": lambda x: x.at[3:9].add(x[4:10] * 2),
    "a row": lambda x: x.at[5].set(0.0),
    "inner elements": lambda x: x.at[1:-1, 1:-1].add(x[2:, 1:-1] - 4 * x[1:-1, 1:-1] + x[:-2, 1:-1]),
    "a box of itself": lambda x: x.at[3:40, 4:90].set(x[3:40, 4:90] * x[2:39, 4:90]),
    "one after the other": lambda x: x.at[:4].multiply(2.0).at[2:6].add(1.0),
    "in another shape": lambda x: x.reshape(-1).at[1000:3000].add(1.0).reshape(x.shape),
}
WINDOWS = [
    ((4, 9, 8, 3), (1, 2, 2, 1), "VALID"),
    ((4, 9, 8, 3), (1, 2, 2, 1), "SAME"),
    ((4, 9, 8, 3), (1, 3, 4, 3), "SAME"),
    ((7,), (3,), ((1, 1),)),
    ((7,), (3,), ((2, 4),)),
    ((6,), (1,), "VALID"),
    ((3, 5), (7, 7), "SAME"),
]  # fmt: skip


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(50, 100)).astype(np.float32)

    def loss(x: Any) -> Any:
        return (UPDATES[name](x) ** 3).sum()

    np.testing.assert_allclose(lamina.jit(UPDATES[name])(jnp.array(x)), jax.jit(UPDATES[name])(x), 1e-6)
    ours, theirs = lamina.jit(lamina.grad(loss))(x), jax.jit(jax.grad(loss))(x)
    np.testing.assert_allclose(ours, theirs, 2e-5, 1e-5)


@pytest.mark.parametrize("shape, window, padding", WINDOWS)
def test_windows_side_by_side(shape: Any, window: Any, padding: Any) -> None:
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)

    def loss(of: Any) -> Callable[[Any], Any]:
        return lambda x: (of.reduce_window(x, 0.0, of.add, window, window, padding) ** 2).sum()

    expected = jax.grad(loss(jax.lax))(x)
    np.testing.assert_allclose(lamina.jit(lamina.grad(loss(lax)))(x), expected, 1e-5, 1e-5)
    several = lamina.vmap(lamina.grad(loss(lax)))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(several, np.stack([expected, 2 * expected]), 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.bool_, np.complex64, np.float16])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_so_far(name: str, dtype: Any) -> None:
    x = (np.random.default_rng(2).normal(size=(6, 5)) * 9).astype(np.int8).astype(dtype)
    for axis in (0, 1, -1):
        ours = getattr(jnp, name).accumulate(x, axis=axis)
        theirs = getattr(jax.numpy, name).accumulate(x, axis=axis)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert getattr(jnp, name).accumulate(x[:0]).shape == (0, 5)
