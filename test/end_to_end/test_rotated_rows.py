"""Arrays rotated along several dimensions at once, as in stencils that are periodic: which row is read is looked up,
and only rows themselves are cut into parts."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp


def _laplacian(m, x, shift=1):
    around = [m.roll(x, sign * shift, axis) for axis in range(x.ndim) for sign in (1, -1)]
    return sum(around[1:], around[0]) - 2 * x.ndim * x


@pytest.mark.parametrize("dtype", (np.float32, np.float64, np.int32, np.int8))
@pytest.mark.parametrize("shape", ((5, 64), (64, 5), (33, 40), (4, 6, 48), (3, 70, 2), (2, 3, 4, 33)))
def test_periodic_stencils(shape, dtype):
    with lamina.enable_x64(True):
        x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
        for shift in (1, 3):
            found = lamina.jit(lambda x, shift=shift: _laplacian(jnp, x, shift))(x)
            np.testing.assert_array_equal(found, _laplacian(np, x, shift))


def test_steps_of_two_arrays():
    """Each is overwritten by what is computed of its own neighbours and the other's."""

    def step(m, u, v):
        return u + _laplacian(m, u) - v, v - _laplacian(m, v) + u

    u, v = np.random.default_rng(1).integers(-9, 9, (2, 36, 45)).astype(np.float32)
    expected = u, v
    for _ in range(3):
        expected = step(np, *expected)
    found = lamina.jit(lambda u, v: lamina.lax.fori_loop(0, 3, lambda _, c: step(jnp, *c), (u, v)))(u, v)
    np.testing.assert_array_equal(found, np.stack(expected))


def test_neighbours_along_the_diagonal():
    def alive(m, x):
        near = [m.roll(m.roll(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        return sum(near[1:], near[0])

    x = np.random.default_rng(2).integers(0, 2, (40, 50)).astype(np.int32)
    np.testing.assert_array_equal(lamina.jit(lambda x: alive(jnp, x))(x), alive(np, x))


def test_gradients_of_a_periodic_stencil():
    x = np.random.default_rng(3).standard_normal((20, 64)).astype(np.float32)
    found = lamina.grad(lambda x: (_laplacian(jnp, x) ** 2).sum())(x)
    np.testing.assert_allclose(found, 2 * _laplacian(np, _laplacian(np, x)), rtol=1e-3, atol=1e-3)
