"""The forms of differentiation: what they take and give, and what they keep, as JAX's."""

import jax
import numpy as np
import pytest
from support.oracle.judge import check_all

import lamina
import lamina.numpy as jnp
from lamina import lax

X = np.linspace(0.1, 1, 4).astype(np.float32)
Y = X[::-1].copy()
Z = (X + 1j * Y).astype(np.complex64)


def test_forms():
    def program(m, x, y, z):
        n, out = m.np, {}
        f = lambda a, b: {"s": n.sin(a) * b, "t": (a * b).sum()}  # noqa: E731
        ct = {"s": x, "t": np.float32(2)}
        for jitted in (True, False):
            fwd, bwd = m.fwd_and_bwd(f, (0, 1), jitted=jitted)
            value, residuals = fwd(x, y)
            out["fwd_and_bwd", jitted] = value, bwd(residuals, ct), bwd(residuals, value)
        fwd, bwd = m.fwd_and_bwd(lambda a, b: (f(a, b), a + b), -1, has_aux=True)
        value, residuals, aux = fwd(x, y)
        out["fwd_and_bwd, aux"] = bwd(residuals, ct), aux
        value, pullback = m.jit(lambda a: m.vjp(f, a, y))(x)
        out["a vjp function out of jit"] = value, pullback(ct)
        out["into jit"] = m.jit(lambda g, ct: g(ct))(m.vjp(f, x, y)[1], ct)
        value, push, aux = m.linearize(lambda a: (n.sin(a), a * 3), x, has_aux=True)
        out["linearize, aux"] = value, push(y), aux
        out["jacfwd, negative"] = m.jacfwd(lambda a, b: a * b, argnums=-1)(x, y)
        out["jacrev, several"] = m.jacrev(lambda a, b: a * b, argnums=(-1, 0))(x, y)
        out["hessian, aux"] = m.hessian(lambda a, b: ((a * b).sum() ** 2, a), (0, 1), has_aux=True)(x, y)
        out["holomorphic"] = (
            m.jacfwd(n.sin, holomorphic=True)(z),
            m.jacrev(n.sin, holomorphic=True)(z),
            m.hessian(lambda z: n.sum(z**3), holomorphic=True)(z),
            m.grad(lambda z: n.sum(z * z), holomorphic=True)(z),
        )
        out["complex to real"] = m.grad(lambda z: n.abs(z).sum())(z)
        return out

    check_all(program, X, Y, Z, jit=True, weak=False)


def test_integers_have_float0_derivatives():
    def program(m, x, y):
        n, out = m.np, {}
        out["integers"] = m.grad(lambda a, i: (a * i).sum(), (0, 1), allow_int=True)(x, 3)
        out["booleans"] = m.grad(lambda a, i: n.where(i, a, 2 * a).sum(), (0, 1), allow_int=True)(x, x > 0.5)
        out["float0 in"] = m.vjp(lambda a, i: (a * i, i + 1), x, 2)[1]((y, np.zeros((), m.float0)))
        out["float0 along"] = m.jvp(lambda a, i: (a * i, i), (x, 2), (y, np.zeros((), m.float0)))
        return out

    check_all(program, X, Y, weak=False)


def test_third_derivatives_of_loops_within_branches():
    def program(m, x):
        n = m.np
        body = lambda c, v: (n.sin(c * v) + c, c)  # noqa: E731
        f = lambda t: m.lax.cond(t > 0, lambda t: m.lax.scan(body, t, x)[0], n.cos, t)  # noqa: E731
        g = lambda t: m.lax.scan(lambda c, v: (f(c) * v, None), t, x)[0]  # noqa: E731
        h = lambda t: m.lax.fori_loop(0, 3, lambda i, c: m.lax.switch(i, [f, n.sin, lambda v: v * t], c), t)  # noqa: E731
        return {
            "scan in cond": m.grad(m.grad(m.grad(f)))(0.3),
            "other branch": m.grad(m.jacfwd(m.grad(f)))(-0.3),
            "cond in scan": m.grad(m.jacfwd(m.grad(g)))(0.3),
            "switch in fori_loop": m.grad(m.grad(h))(0.3),
            "associative_scan": m.grad(lambda x: n.sum(m.lax.associative_scan(n.multiply, x) ** 2))(x),
            "while": m.jvp(lambda t: m.lax.while_loop(lambda c: c < 5, lambda c: c * 2 + t, t), (0.3,), (1.0,)),
        }

    with lamina.enable_x64(True), jax.enable_x64(True), lamina.config.enable_checks(True):
        check_all(program, X.astype(float), jit=True, rtol=1e-9, atol=1e-10, weak=False)


# ---- what is kept ---------------------------------------------------------------------------------
def _kept(f, *args):
    return [aval.shape for aval, _ in lamina.ad_checkpoint.saved_residuals(f, *args)]


def test_a_scan_keeps_operands_as_they_are_and_constants_once():
    xs = np.ones((5, 4), np.float32)

    def f(w, xs):
        def step(c, x):
            return jnp.tanh(c * jnp.sin(w)) * x, None

        return jnp.sum(lax.scan(step, w, xs)[0])

    closed = lamina.make_jaxpr(lamina.grad(f))(X, xs)
    forward = next(e for e in closed.eqns if e.primitive.name == "scan")
    # The carry, tanh and its derivative by step; xs, sin(w) and cos(w) are not stacked.
    assert [v.aval.shape for v in forward.outvars].count((5, 4)) <= 4
    shapes = _kept(f, X, xs)
    assert shapes.count((4,)) == 2
    assert shapes.count((5, 4)) <= 5


def test_branches_share_places():
    f = lambda x: jnp.sum(lax.switch(1, [jnp.sin, jnp.cos, jnp.tan], x * 2))  # noqa: E731
    g = lambda i, x: jnp.sum(lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x * 2))  # noqa: E731
    assert len(_kept(f, X)) <= 3
    assert len(_kept(lambda x, i: g(i, x), X, 1)) == 2  # the place, and the index
    h = lambda x, p: jnp.sum(lax.cond(p, lambda a, b: a * b, lambda a, b: a / b, x, x + 1))  # noqa: E731
    np.testing.assert_allclose(lamina.grad(h)(X, True), 2 * X + 1, rtol=1e-6)


def test_unread_results_of_nested_programs_cost_nothing():
    def f(x):
        a, b = lamina.jit(lambda x: (jnp.sin(x), jnp.exp(x)))(x)
        c, ys = lax.scan(lambda c, v: (c * v, jnp.log(v)), 1.0, x)
        return jnp.sum(a) + c

    shown = lamina.jit(lamina.grad(f)).lower(X).compile().as_text("optimized")
    assert "stablehlo.exponential" not in shown
    assert "stablehlo.log" not in shown


# ---- mistakes -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("run", "error", "message"), [
    (lambda: lamina.jacfwd(jnp.sin)(Z), TypeError, "jacfwd requires real-valued inputs"),
    (lambda: lamina.jacfwd(jnp.sin, holomorphic=True)(X), TypeError, "requires inputs with complex dtype"),
    (lambda: lamina.jacrev(jnp.sin)(Z), TypeError, "jacrev requires real-valued outputs"),
    (lambda: lamina.jacrev(jnp.sin)(3), TypeError, "jacrev requires real- or complex-valued inputs"),
    (lambda: lamina.grad(jnp.sin, 3)(1.0), TypeError, "requires at least 4 positional arguments"),
    (lambda: lamina.jacfwd(jnp.sin, (0, -3))(1.0), TypeError, "requires at least 3 positional arguments"),
    (lambda: lamina.jit(jnp.sin, backend="tpu"), RuntimeError, "Unknown backend 'tpu'"),
])  # fmt: skip
def test_mistakes(run, error, message):
    with pytest.raises(error, match=message):
        run()


def test_ensure_compile_time_eval():
    def f(x):
        with lamina.ensure_compile_time_eval():
            table = jnp.sin(jnp.arange(3.0))
            assert float(table[1]) > 0
        return x + table

    np.testing.assert_allclose(lamina.jit(f)(1.0), 1 + np.sin(np.arange(3.0)), rtol=1e-6)
    assert lamina.jit(_evaluated)(1.0) == 2
    assert lamina.grad(lamina.jit(_evaluated))(1.0) == 1


def _evaluated(x):
    with lamina.ensure_compile_time_eval():
        return x + 1
