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


def quadrature(np_, a, n=500):
    """Simpson's rule for exp(-x^2) cos x from 0 to a."""
    h = a / n

    def term(i, s):
        x = i * h
        return s + np_.where(i % 2 == 1, 4.0, 2.0) * np_.exp(-x * x) * np_.cos(x)

    s = 1.0 + np_.exp(-a * a) * np_.cos(a)
    if np_ is jnp:
        return h / 3 * lax.fori_loop(1, n, term, s)
    for i in range(1, n):
        s = term(i, s)
    return h / 3 * s


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_that_only_the_counter_decides(dtype):
    a = dtype(1.75)
    with lamina.enable_x64(dtype == np.float64):
        compiled = lamina.jit(lambda a: quadrature(jnp, a)).lower(a).compile()
        got = compiled(a)
        each = lamina.jit(lambda a: lax.map(lambda b: quadrature(jnp, b), a))(np.linspace(1, 2, 9, dtype=dtype))
        batch = lamina.jit(lamina.vmap(lambda b: quadrature(jnp, b)))(np.linspace(1, 2, 9, dtype=dtype))
    tolerance = 1e-4 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(got, quadrature(np, float(a)), rtol=tolerance)
    exact = [quadrature(np, float(b)) for b in np.linspace(1, 2, 9, dtype=dtype)]
    np.testing.assert_allclose(each, exact, rtol=tolerance)
    np.testing.assert_allclose(batch, exact, rtol=tolerance)
    assert "tensor<499x" in compiled.as_text("fused")


def test_elements_that_are_read_in_turn():
    """Metropolis' walk with given numbers; rows and columns, from the middle, in steps of several counters."""

    def walk(np_, moves, chances):
        def step(i, state):
            x, seen = state
            y = x + moves[i + 0, 1]
            taken = np_.log(chances[2, i]) < np_.sin(x) - np_.sin(y)
            x = np_.where(taken, y, x)
            return x, seen + x * np_.tanh(np_.float64(2 * i + 3))

        state = (np_.float64(0.25), np_.float64(0))
        if np_ is jnp:
            return lax.fori_loop(5, 65, step, state)
        for i in range(5, 65):
            state = step(i, state)
        return state

    rng = np.random.default_rng(2)
    moves, chances = rng.standard_normal((70, 3)), rng.random((4, 65))
    with lamina.enable_x64(True):
        got = lamina.jit(lambda *a: walk(jnp, *a))(moves, chances)
    np.testing.assert_allclose(got, walk(np, moves, chances), rtol=1e-12)
