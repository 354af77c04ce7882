"""What vjp and linearize give, since JAX 0.12: refs for gradients, logs of rules, flags of arguments."""

import jax
import numpy as np
import pytest
from jax.experimental import hijax
from support.oracle.judge import JAX, LAMINA, assert_same, check_all

import lamina
import lamina.numpy as jnp
from lamina.experimental import hijax as our_hijax

X = np.array([0.5, -1.0, 2.0], np.float32)


def logging(m, name="ct"):
    """The identity times x, with its cotangent in the logs."""

    @m.custom_vjp
    def f(x):
        return m.np.sin(x)

    f.defvjp_with_logs(
        lambda x: (m.np.sin(x), x), lambda x, g: ((g * m.np.cos(x),), {name: {"of": g, "at": x}})
    )
    return f


def logs_of(m, fun, *args):
    _, f_vjp = m.vjp(fun, *args)
    return m.jit(lambda f: f.with_logs(m.np.float32(1.0)))(f_vjp), f_vjp.with_logs(1.0)


@pytest.mark.parametrize("where", ["plain", "jit", "scan", "vmap", "checkpoint", "batch of scans"])
def test_logs(where):
    def program(m):
        f = logging(m)

        def scanned(x):
            return m.lax.scan(lambda c, y: (f(c * y), None), x, m.np.asarray(X))[0]

        within = {
            "plain": lambda x: m.np.sum(f(x)),
            "jit": lambda x: m.np.sum(m.jit(f)(x) * x),
            "scan": lambda x: m.np.sum(scanned(x)),
            "vmap": lambda x: m.np.sum(m.vmap(f)(x)),
            "checkpoint": m.checkpoint(lambda x: m.np.sum(f(x) ** 2)),
            "batch of scans": lambda x: m.np.sum(m.vmap(scanned)(x)),
        }[where]
        return logs_of(m, within, m.np.asarray(X))

    check_all(lambda m: dict(enumerate(program(m))), rtol=1e-5)


def test_logs_are_dropped_and_keys_are_unique():
    f = logging(LAMINA)
    assert_same(lamina.grad(lambda x: jnp.sum(f(x)))(X), jax.grad(lambda x: jax.numpy.sum(jax.numpy.sin(x)))(X))
    for fun in (lambda x: f(f(x)), lambda x: lamina.jit(f)(x) + f(x)):
        _, f_vjp = lamina.vjp(fun, 1.0)
        with pytest.raises(ValueError, match="repeated key.*'ct'"):
            f_vjp(1.0)
    _, f_vjp = lamina.vjp(lambda x: lamina.lax.cond(x > 0, f, jnp.cos, x), 1.0)
    _, f_vjp = lamina.jit(lambda x: lamina.vjp(
        lambda x: lamina.lax.cond(x > 0, f, jnp.cos, x), x))(1.0)  # fmt: skip
    with pytest.raises(NotImplementedError, match="logs 'ct' within"):
        f_vjp(1.0)


def test_wrong_logs():
    def rule(made):
        @lamina.custom_vjp
        def f(x):
            return x

        f.defvjp_with_logs(lambda x: (x, None), lambda _, g: made(g))
        return lamina.vjp(f, 1.0)[1]

    with pytest.raises(TypeError, match="must produce a pair"):
        rule(lambda g: (g,))(1.0)
    with pytest.raises(TypeError, match="dict of backward-pass log entries, but got list"):
        rule(lambda g: ((g,), [g]))(1.0)


def test_gradients_into_refs():
    def program(m):
        def f(x, y, n):
            return m.np.sum(m.np.sin(x["a"]) * y) * n["b"]

        args = {"a": m.np.asarray(X)}, m.np.asarray(X + 1), {"b": 2.0}
        _, f_vjp = m.vjp(f, *args)
        ad, ref = m.module.ad, m.module.new_ref(m.np.ones(3))
        out = f_vjp.with_refs({"a": ref}, ad.GradValue(), {"b": ad.DontWant()})(2.0)
        f_vjp.with_refs({"a": ref}, ad.DontWant(), {"b": ad.DontWant()})(1.0)
        kinds = [type(x).__name__ for x in (out[0]["a"], out[2]["b"])]
        assert kinds == ["GradRef", "DidntWant"]
        return {"ref": ref[...], "value": out[1]}

    check_all(program, rtol=1e-6)
    _, f_vjp = lamina.vjp(lambda x: jnp.sum(x), X)
    with pytest.raises(ValueError, match="unexpected tree structure.*`with_refs`"):
        f_vjp.with_refs(None)
    with pytest.raises(ValueError, match="unexpected type"):
        f_vjp.with_refs(lamina.new_ref(jnp.ones(2)))


def test_inputs_without_tangents():
    def program(m):
        def f(x, y):
            return {"x": m.np.sin(x[0]), "both": x[1] * y, "none": 3.0 * y}

        x, y = (m.np.float32(0.5), m.np.float32(2.0)), m.np.float32(3.0)
        out, f_vjp = m.vjp(f, x, y, in_nzs=((True, False), False))
        _, push = m.linearize(f, x, y, in_nzs=((True, False), False))
        ones = {name: m.np.float32(1.0) for name in out}
        assert f_vjp.out_nzs == push.out_nzs == {"both": False, "none": False, "x": True}
        return {"out": out, "pulled": f_vjp(ones), "pushed": push((1.0, 1.0), 1.0)}

    check_all(program)


@pytest.mark.parametrize("flags, said", [
    ((True,), "1 children"), ((True, (True, True)), "is a leaf"), ((True, 3), "tree of bools"),
    (({"c": True}, True), "keys"),
])  # fmt: skip
def test_wrong_flags(flags, said):
    for name in ("in_nzs", "saveable_args"):
        for m in (LAMINA, JAX):
            with pytest.raises(ValueError, match=said):
                m.vjp(lambda x, y: x["a"] * y, {"a": 1.0}, 2.0, **{name: flags})


def test_arguments_that_are_not_kept():
    def program(m):
        x, y = m.np.asarray(X), m.np.asarray(X + 1)
        _, f_vjp = m.vjp(lambda x, y, z: m.np.sum(x["a"] * y) + z, {"a": x}, y, 1.0,
                         saveable_args=(False, True, True))  # fmt: skip
        kinds = [type(r).__name__ for r in (f_vjp.args_res[0]["a"], f_vjp.args_res[2])]
        assert kinds == ["NotSaveable", "NotNeeded"]
        with pytest.raises(ValueError, match="before restoring its not-saveable residuals"):
            f_vjp(1.0)
        f_vjp.args_res[0] = {"a": x}
        return {"now": f_vjp(2.0), "in a jit": m.jit(lambda f: f(3.0))(f_vjp)}

    check_all(program)


def test_rules_with_places_for_cotangents():
    def program(m):
        @m.custom_vjp
        def f(x, y):
            return x["a"] * y

        def bwd(res, g, x_place, y_place):
            x_place["a"].accum(g * res[1])
            x_place["a"].accum(g)
            y_place.accum(g * res[0])
            return {"places": g}

        f.defvjp_with_accums(lambda x, y: (f(x, y), (x["a"], y)), bwd)
        _, f_vjp = m.vjp(lambda x: f({"a": x}, 3.0), 2.0)
        return {"by x": m.grad(f)({"a": 2.0}, 3.0), "by y": m.grad(f, 1)({"a": 2.0}, 3.0),
                "logs": f_vjp.with_logs(1.0)}  # fmt: skip

    check_all(program)


def test_rematerialised_rules():
    """JAX's default implementation refuses `defremat`, so the derivatives are compared by value."""

    @lamina.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defremat(
        lambda x: (jnp.sin(x), jnp.cos(x)), lambda c, x: (jnp.sin(x), 2 * c), lambda c, g: (g * c,)
    )
    twice = 2 * np.cos(X)
    for fun in (f, lamina.checkpoint(f), lamina.jit(f)):
        np.testing.assert_allclose(lamina.vjp(fun, X)[1](jnp.ones(3))[0], twice, rtol=1e-6)


def test_custom_gradients():
    def program(m):
        @m.custom_gradient(with_logs=True)
        def logged(x, y):
            return x * y, lambda g: ((g * y, 2 * g * x), {"g": g})

        from_fun = m.custom_gradient(lambda x: (x**2, lambda g: g * x))
        accum = our_hijax.ValAccum if m is LAMINA else hijax.ValAccum

        @m.custom_gradient(with_accums=accum)
        def placed(x, y):
            def rule(g, x_place, y_place):
                x_place.accum(5 * g * y)
                return {"of": g}

            return x * y, rule

        return {
            "plain": m.grad(from_fun)(3.0),
            "logged": m.vjp(logged, 2.0, 3.0)[1].with_logs(1.0),
            "dropped": m.grad(logged, 1)(2.0, 3.0),
            "placed": m.vjp(placed, 2.0, 3.0)[1].with_logs(1.0),
            "one": m.grad(placed)(2.0, 3.0),
        }

    check_all(program)


@lamina.custom_gradient(remat=True)
def _remat_sine(x):
    cosine = jnp.cos(x)

    def again(x):
        return jnp.sin(x), lambda g: (3 * g * cosine,)

    return jnp.sin(x), again


def test_custom_gradient_that_is_done_again():
    for fun in (_remat_sine, lamina.checkpoint(_remat_sine)):
        np.testing.assert_allclose(lamina.grad(fun)(0.5), 3 * np.cos(0.5), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="with_accums or remat"):
        lamina.custom_gradient(lambda x: x, remat=True, with_accums=True)


@pytest.mark.parametrize("m", [lamina, jax])
def test_cotangents_of_integers_are_of_any_dtype(m):
    def f(x):
        return m.numpy.sort(x), m.numpy.argsort(x), x > 0

    out, f_vjp = m.vjp(f, X)
    for cotangents in (out, jax.tree.map(np.ones_like, out), (out[0], *(np.zeros(3, jax.dtypes.float0),) * 2)):
        given = np.asarray(cotangents[0])
        for pull in (f_vjp, m.jit(f_vjp)) if cotangents[1].dtype != jax.dtypes.float0 else (f_vjp,):
            np.testing.assert_array_equal(pull(cotangents)[0], given[np.argsort(np.argsort(X))])
    with pytest.raises(ValueError, match="unexpected (JAX )?type"):
        f_vjp((out[0], np.zeros(2, np.int32), out[2]))
