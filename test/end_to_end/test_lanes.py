"""vmap of loops and branches whose predicate is batched: every way of doing it gives JAX's results."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

RNG = np.random.default_rng(0)
MODES = ("auto", "branch", "select")


def _steps(m):
    """Newton's iteration for a square root, so many steps."""

    def f(x, count, scale):
        def body(state):
            y, k = state
            return 0.5 * (y + scale * x / y), k + 1

        return m.lax.while_loop(lambda s: s[1] < count, body, (x, m.numpy.int32(0)))[0]

    return f


def _until(m):
    """A loop over vectors, with a branch in it."""

    def f(v, limit):
        def body(s):
            s = m.lax.cond(s.sum() > 3, lambda a: a * 1.5, lambda a: a + 0.7, s)
            return m.lax.fori_loop(0, 2, lambda i, a: a.at[i].add(0.1), s)

        return m.lax.while_loop(lambda s: m.numpy.max(s) < limit, body, v)

    return f


def _branches(m):
    """Branches worth branching for."""

    def f(k, x, w):
        def long(a):
            return m.lax.scan(lambda c, t: (m.numpy.sin(c * t), c), a, w)[0]

        return m.lax.switch(k, [long, lambda a: a * 2.0, lambda a: m.numpy.cos(a) * w.sum()], x)

    return f


LANES = 150
CASES = {
    "steps": (
        _steps,
        (0, 0, None),
        (
            RNG.uniform(1, 2, LANES).astype("f"),
            RNG.integers(0, 30, LANES).astype("i"),
            np.float32(1.0),
        ),
    ),
    "until": (
        _until,
        (0, 0),
        (RNG.uniform(0, 1, (9, 3)).astype("f"), RNG.uniform(2, 40, 9).astype("f")),
    ),
    "branches": (
        _branches,
        (0, 0, None),
        (
            RNG.integers(-1, 4, 20).astype("i"),
            RNG.uniform(0, 1, (20, 2)).astype("f"),
            RNG.uniform(0, 1, 5).astype("f"),
        ),
    ),
}


def _check(got, want) -> None:
    for g, w in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(want), strict=True):
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_values_and_forward_derivatives(case: str, mode: str) -> None:
    make, axes, args = CASES[case]

    def both(m, vmap):
        f = vmap(make(m), axes)
        floats = [i for i, a in enumerate(args) if a.dtype == np.float32]

        def of_floats(*xs):
            given = list(args)
            for i, x in zip(floats, xs):
                given[i] = x
            return f(*given)

        xs = [args[i] for i in floats]
        ts = [np.cos(x) for x in xs]
        return m.jit(lambda: (of_floats(*xs), m.jvp(of_floats, tuple(xs), tuple(ts))))()

    got = both(lamina, lambda f, a: lamina.vmap(f, a, lanes=mode))
    _check(got, both(jax, jax.vmap))


@pytest.mark.parametrize("mode", ["auto", "branch"])
def test_reverse_derivatives_of_branches(mode: str) -> None:
    k, x, w = CASES["branches"][2]

    def both(m, vmap):
        f = vmap(_branches(m), (0, 0, None))
        loss = lambda x, w: (f(k, x, w) ** 2).sum()  # noqa: E731
        return m.jit(m.value_and_grad(loss, argnums=(0, 1)))(x, w)

    _check(both(lamina, lambda f, a: lamina.vmap(f, a, lanes=mode)), both(jax, jax.vmap))


@pytest.mark.parametrize("mode", MODES)
def test_nested(mode: str) -> None:
    x = RNG.uniform(1, 2, (5, 7)).astype("f")
    n = RNG.integers(0, 20, (7, 3)).astype("i")

    def both(m, vmap):
        f = vmap(vmap(vmap(_steps(m), (None, 0, None)), (0, 0, None)), (0, None, None))
        g = vmap(vmap(_steps(m), (0, None, 0)), (None, 0, None))
        return m.jit(lambda: (f(x, n, np.float32(1)), g(x[0], n[:, 0], x[1])))()

    _check(both(lamina, lambda f, a: lamina.vmap(f, a, lanes=mode)), both(jax, jax.vmap))


def test_the_choice() -> None:
    """Loops over a few scalars go by lanes, those with shared products by select; eager, too."""
    x, n = np.ones(200, "f"), np.arange(200, dtype="i")
    f = lamina.vmap(_steps(lamina), (0, 0, None))
    text = str(lamina.make_jaxpr(f)(x, n, np.float32(1)))
    assert "lanes[" in text and "block=64" in text and "size=200" in text
    np.testing.assert_allclose(f(x * 4, n + 20, np.float32(1)), np.full(200, 2.0), rtol=1e-6)
    w = np.eye(4, dtype="f")
    dot = lamina.vmap(lambda v, k: lax.fori_loop(0, k, lambda _, a: a @ w, v))
    assert "lanes[" not in str(lamina.make_jaxpr(dot)(np.ones((3, 4), "f"), n[:3]))
    cheap = lamina.vmap(lambda p, a: lax.cond(p, jnp.sin, jnp.cos, a))
    assert "lanes[" not in str(lamina.make_jaxpr(cheap)(x > 0, x))
    with lamina.config.lanes("branch"):
        assert "lanes[" in str(lamina.make_jaxpr(cheap)(x > 0, x))
    with pytest.raises(ValueError, match='lanes must be "auto"'):
        lamina.vmap(f, lanes="yes")


def test_other_tools_read_the_select_form() -> None:
    x, n = np.ones(100, "f"), np.arange(100, dtype="i")
    lowered = lamina.jit(lamina.vmap(_steps(lamina), (0, 0, None))).lower(x, n, np.float32(1))
    text = lowered.as_text()
    assert 'stablehlo.composite "lamina.lanes"' in text and "decomposition = @all_lanes" in text
    fused = lowered.compile().as_text("fused")
    assert "lamina.lanes = array<i64: 2, 1>" in fused and "all_lanes" not in fused


@pytest.mark.parametrize("mode", MODES)
def test_what_lanes_do_together_stays_together(mode: str) -> None:
    def both(m, vmap):
        def f(x, count):
            def body(state):
                v, k = state
                return v + 0.1 * m.lax.psum(v, "i"), k + 1

            start = (x, m.numpy.int32(0))
            return m.lax.while_loop(lambda s: s[1] < count, body, start)[0]

        return m.jit(vmap(f))(np.arange(5, dtype="f"), np.array([1, 2, 3, 2, 1], "i"))

    got = both(lamina, lambda f: lamina.vmap(f, axis_name="i", lanes=mode))
    _check(got, both(jax, lambda f: jax.vmap(f, axis_name="i")))
