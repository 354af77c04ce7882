"""Arrays that a scalar selects in loops: what is not selected is not computed."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax


def sieve(n, steps):
    """Crosses out the multiples of primes."""
    index = jnp.arange(n)

    def step(p, prime):
        multiple = (index % p == 0) & (index > p)
        return jnp.where(prime[p], prime & ~multiple, prime)

    return lax.fori_loop(2, steps, step, index >= 2)


def test_a_sieve():
    found = np.flatnonzero(lamina.jit(lambda: sieve(20_000, 142))())
    assert found[:6].tolist() == [2, 3, 5, 7, 11, 13] and len(found) == 2262
    fused = lamina.jit(lambda: sieve(20_000, 142)).lower().compile().as_text("fused")
    assert '"stablehlo.if"' in fused and "stablehlo.select" not in fused


@pytest.mark.parametrize("grad", [False, True])
def test_both_sides_and_selections_in_each_other(grad):
    def f(np_, x, steps=9):
        def step(i, state):
            x, y = state
            inner = np_.where(i % 2 == 0, np_.exp(-x), np_.sin(x))
            x = np_.where(i % 3 == 0, np_.tanh(inner) + y, x)
            return x, np_.where(x[0] > 0.5, np_.cos(y), y)

        state = (x, 2 * x)
        if np_ is jnp:
            return sum(lax.fori_loop(0, steps, step, state))
        for i in range(steps):
            state = step(i, state)
        return sum(state)

    x = np.linspace(-2, 2, 3000)
    with lamina.enable_x64(True):
        got = lamina.jit(lambda x: f(jnp, x))(x)
        np.testing.assert_allclose(got, f(np, x), rtol=1e-12)
        if grad:
            slope = lamina.jit(lamina.grad(lambda x: f(jnp, x).sum()))(x)
            near = (f(np, x + 1e-6) - f(np, x - 1e-6)) / 2e-6
            np.testing.assert_allclose(slope, near, rtol=1e-5, atol=1e-7)
