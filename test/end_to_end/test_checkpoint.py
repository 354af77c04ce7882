"""checkpoint: the values of the plain function, fewer residuals, less memory, a barrier that stays."""

import contextlib
import io

import jax
import numpy as np
import pytest
from support.oracle.judge import check_all

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals

X = np.linspace(0.1, 1, 4)
W = np.linspace(-1, 1, 16).reshape(4, 4)
POLICIES = ["everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable"]


def _program(m, x, w):
    """Every use of checkpoint in one program."""
    n, out = m.np, {}
    name = m.ad_checkpoint.checkpoint_name

    def f(x, w):
        h = name(n.tanh(x @ w), "h")
        return n.sum(n.sin(m.jit(lambda a: a @ w)(h)) ** 2)

    P = m.checkpoint_policies
    policies = {p: getattr(P, p) for p in POLICIES}
    policies |= {
        "only": P.save_only_these_names("h"),
        "any": P.save_any_names_but_these("other"),
        "except": P.save_anything_except_these_names("h"),
        "both": P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("h")),
    }
    for key, policy in policies.items():
        g = m.checkpoint(f, policy=policy)
        out[key] = g(x, w), m.grad(g, (0, 1))(x, w)
    g = m.checkpoint(f)
    out["hessian"] = m.hessian(g)(x, w)
    out["jvp"] = m.jvp(g, (x, w), (x, w))
    out["nested"] = m.grad(m.checkpoint(lambda x, w: m.checkpoint(f)(n.sin(x), w) * x[0]))(x, w)
    out["vmap"] = m.vmap(m.grad(g), (0, None))(n.stack([x, -x]), w)
    out["grad of vmap"] = m.grad(lambda w: n.sum(m.vmap(g, (0, None))(n.stack([x, -x]), w)))(w)
    step = m.checkpoint(lambda c, v: (n.tanh(c @ w + v), n.sum(c)))
    loop = lambda x: sum(map(n.sum, m.lax.scan(step, x, n.stack([x, x * 2, x * 3]))))  # noqa: E731
    out["scan"] = m.grad(loop)(x)
    out["scan, third derivative"] = m.grad(lambda v: n.sum(m.jacfwd(m.grad(loop))(v) ** 2))(x)
    whole = m.checkpoint(loop, policy=P.dots_saveable)
    out["checkpoint of scan"] = m.grad(whole)(x)
    branch = m.checkpoint(lambda x: m.lax.cond(x[0] > 0, lambda v: n.sum(n.sin(v) * v), n.sum, x))
    out["cond"] = m.grad(branch)(x), m.grad(branch)(-x)
    out["static"] = m.grad(m.checkpoint(lambda k, x, flag: n.sum(x**k) if flag else x[0],
                                        static_argnums=(0, 2)), 1)(3, x, True)  # fmt: skip
    out["integer"] = m.grad(lambda x: n.sum(m.checkpoint(lambda a, i: a[i] * i)(x, 2)))(x)
    return out


def test_values_and_derivatives():
    with lamina.enable_x64(True), jax.enable_x64(True), lamina.config.enable_checks(True):
        check_all(_program, X, W, jit=True, rtol=1e-9, atol=1e-10)


def _kept(f, *args):
    return sorted(what for _, what in saved_residuals(f, *args))


def test_residuals_follow_the_policy():
    def f(x, w):
        return jnp.sum(jnp.sin(checkpoint_name(jnp.tanh(x @ w), "h") @ w))

    P = lamina.checkpoint_policies
    arguments = ["from the argument w", "from the argument x"]
    assert _kept(lamina.checkpoint(f), X, W) == arguments
    assert _kept(lamina.checkpoint(f, policy=P.nothing_saveable), X, W) == arguments
    named = _kept(lamina.checkpoint(f, policy=P.save_only_these_names("h")), X, W)
    assert [w for w in named if w not in arguments][0].startswith("named 'h' from ")
    dots = _kept(lamina.checkpoint(f, policy=P.dots_saveable), X, W)
    assert sum("dot_general" in w for w in dots) == 2
    # A call that f makes is looked into.
    dots = _kept(lamina.checkpoint(lamina.jit(f), policy=P.dots_saveable), X, W)
    assert sum("dot_general" in w for w in dots) == 2
    # Results with a batch dimension are of no weights.
    batched = lambda x, w: jnp.sum(jnp.sin(jnp.einsum("bij,bjk->bik", x, w)))  # noqa: E731
    stacked = np.stack([W, W])
    few = _kept(lamina.checkpoint(batched, policy=P.dots_with_no_batch_dims_saveable), stacked, stacked)
    assert few == arguments
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_saved_residuals(lambda x: jnp.sum(jnp.sin(x)), np.float32([1, 2]))
    assert text.getvalue().startswith("f32[2] output of cos from ")


def _deep(x, w, wrap, depth=12):
    layer = wrap(lambda x, w: jnp.tanh(jnp.sin(jnp.cos(x @ w) * 2) + jnp.exp(-jnp.cos(x))))
    for _ in range(depth):
        x = layer(x, w)
    return jnp.sum(x)


def _deep_scan(x, w, wrap):
    return jnp.sum(lax.scan(wrap(lambda c, _: (_deep(c, w, lambda f: f, 2) * c, None)), x, None, 12)[0])


@pytest.mark.parametrize(("program", "ratio"), [(_deep, 2.5), (_deep_scan, 3.0)])
def test_memory_falls(program, ratio):
    """The compiler neither merges the second computation with the first nor does it too early."""
    x = np.full((64, 64), 0.01, np.float32)
    plain, remat = (
        lamina.jit(lamina.grad(lambda x, w, wrap=wrap: program(x, w, wrap))).lower(x, x).compile()
        for wrap in (lambda f: f, lamina.checkpoint)
    )
    np.testing.assert_allclose(remat(x, x), plain(x, x), rtol=1e-5)
    before, after = (c.memory_analysis().temp_size_in_bytes for c in (plain, remat))
    assert after * ratio < before


def test_the_barrier_survives_until_buffers_are_planned():
    f = lamina.jit(lamina.grad(lambda x, w: _deep(x, w, lamina.checkpoint, 3))).lower(X, W)
    stages = f.as_text(), f.compile().as_text("optimized")
    assert [text.count("optimization_barrier") for text in stages] == [3, 3]
    # exp(-cos(x)) of each layer: forwards, where the next one needs it, and again.
    assert stages[1].count("stablehlo.exponential") == 2 + 3
    free = lamina.grad(lambda x, w: _deep(x, w, lambda g: lamina.checkpoint(g, prevent_cse=False), 3))
    assert "optimization_barrier" not in lamina.jit(free).lower(X, W).as_text()


def test_effects_of_known_branches_stay():
    """A branch without residuals still prints when its gradient alone is asked for."""

    def f(x):
        def show(x):
            lamina.debug.print("x is {}", x[0])
            return 2.0 * x

        return jnp.sum(lax.cond(x[0] > 0, show, lambda x: x, x))

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        lamina.jit(lamina.grad(f))(np.ones(3, np.float32))
        lamina.effects_barrier()
    assert text.getvalue() == "x is 1.0\n"


def test_mistakes():
    with pytest.raises(NotImplementedError, match="static_argnums"):
        lamina.checkpoint(jnp.sin, concrete=True)
    with pytest.raises(TypeError, match="Expected a callable"):
        lamina.checkpoint(3)
    with pytest.raises(ValueError, match="out of range"):
        lamina.grad(lamina.checkpoint(jnp.sin, static_argnums=3))(1.0)
    with pytest.raises(ValueError, match="are in both"):
        lamina.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip
