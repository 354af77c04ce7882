"""Loops that do scalars one after another: what they compute, and that special values get through."""

import itertools

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

SPECIAL = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("name", ["minimum", "maximum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_lesser_and_greater_of_any_two_scalars(name, dtype):
    least = name == "minimum"

    def chain(first, x, y):
        def step(before, pair):
            found = getattr(jnp, name)(pair[0], pair[1])
            return getattr(jnp, name)(before, found), found

        return lax.scan(step, first, (x, y))

    x, y = np.array(list(itertools.product(SPECIAL, SPECIAL)), dtype).T.copy()
    with lamina.enable_x64(True):
        last, found = lamina.jit(chain)(dtype(0), x, y)
        finite = np.isfinite(x) & np.isfinite(y)
        best, _ = lamina.jit(chain)(dtype(1), x[finite], y[finite])
    found = np.asarray(found)
    assert found.dtype == dtype and np.isnan(last)
    exact = getattr(np, name)(x, y)
    both_zero = (x == 0) & (y == 0)
    exact[both_zero] = np.where(
        (np.signbit(x) | np.signbit(y)) if least else (np.signbit(x) & np.signbit(y)), -0.0, 0.0
    )[both_zero]
    np.testing.assert_array_equal(found, exact)
    real = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(exact[real]))
    assert best == (-2.0 if least else 1.5)
