"""custom_jvp, custom_vjp and their kin: everywhere, nested, to second order; and users' mistakes."""

from functools import partial

import jax
import numpy as np
import pytest
from support.oracle.judge import check, check_all

import lamina
import lamina.numpy as jnp

X = np.linspace(0.1, 1, 4)
Y = X[::-1].copy()


def _scaled_product(m):
    """sin(x) * y whose derivative by x is 1.5 times what it should be."""

    @m.custom_vjp
    def f(x, y):
        return m.np.sin(x) * y

    def fwd(x, y):
        return m.np.sin(x) * y, (m.np.cos(x), m.np.sin(x), y)

    def bwd(res, g):
        cos_x, sin_x, y = res
        return cos_x * g * y * 1.5, sin_x * g

    f.defvjp(fwd, bwd)
    return f


def _wide(program, **options):
    with lamina.enable_x64(True), jax.enable_x64(True), lamina.config.enable_checks(True):
        check_all(program, X, Y, rtol=1e-9, atol=1e-10, weak=False, **options)


def test_custom_vjp_everywhere():
    def program(m, x, y):
        n, f = m.np, _scaled_product(m)
        total = lambda h: lambda *a: n.sum(h(*a))  # noqa: E731
        scanned = lambda x: n.sum(m.lax.scan(lambda c, t: (f(c, t), f(t, c)), x, n.stack([x, y]))[1])  # noqa: E731
        branch = lambda x: n.sum(m.lax.cond(x[0] > 0, lambda x: f(x, x), lambda x: x, x))  # noqa: E731
        weighted = lambda x, y: n.sum(m.vmap(f, (0, None))(x, y) * n.arange(4.0))  # noqa: E731
        return {
            "value": f(x, y),
            "keyword": f(x, y=y),
            "grad": m.grad(total(f), (0, 1))(x, y),
            "second order": m.grad(lambda x: n.sum(m.grad(total(f))(x, y) * x))(x),
            "hessian": m.hessian(total(f))(x, y),
            "vmap of grad": m.vmap(m.grad(f), (0, None))(x, y[0]),
            "grad of vmap": m.grad(weighted, (0, 1))(x, y[0]),
            "hessian of vmap": m.hessian(lambda x: weighted(x, x[0]))(x),
            "scan": m.grad(scanned)(x),
            "hessian of scan": m.hessian(scanned)(x),
            "vmap of grad of scan": m.vmap(m.grad(scanned))(n.stack([x, y])),
            "cond": m.grad(branch)(x),
            "vmap of cond": m.vmap(m.grad(branch))(n.stack([x, -x])),
            "in jit": m.grad(total(m.jit(f)))(x, y),
            "in checkpoint": m.grad(total(m.checkpoint(lambda a, b: f(f(a, b), b))))(x, y),
            "jacrev": m.jacrev(f)(x, y),
        }

    _wide(program, jit=True)


def test_custom_vjp_arguments():
    """Static arguments, structures, None for zeros, symbolic zeros."""

    def program(m, x, y):
        n = m.np

        @partial(m.custom_vjp, nondiff_argnums=(0, 2))
        def static(f, a, k=2):
            return f(a) * k

        static.defvjp(lambda f, a, k=2: (static(f, a, k), a), lambda f, k, a, g: (g * k * a,))

        @m.custom_vjp
        def of_tree(d):
            return {"o": d["a"] * d["b"][0]}

        of_tree.defvjp(lambda d: (of_tree(d), d), lambda d, g: ({"a": g["o"] * 2, "b": None},))
        seen = []

        @m.custom_vjp
        def f(a, b, i):
            return n.sin(a) * b, a

        def fwd(a, b, i):
            seen.append([int(a.perturbed), int(b.perturbed), int(i.perturbed)])
            return (n.sin(a.value) * b.value, a.value), (a.value, b.value)

        def bwd(res, g):
            seen.append([int(type(t) is m.custom_derivatives.SymbolicZero) for t in g])
            return n.cos(res[0]) * res[1] * g[0], None, None

        f.defvjp(fwd, bwd, symbolic_zeros=True)
        return {
            "static": m.grad(lambda a: n.sum(static(n.cos, a)))(x),
            "static, by keyword": m.jit(m.grad(lambda a: n.sum(static(n.cos, a, k=5))))(x),
            "tree": m.grad(lambda d: n.sum(of_tree(d)["o"]))({"a": x, "b": (y,)}),
            "symbolic": m.grad(lambda a: n.sum(f(a, y, 3)[0]))(x),
            "seen": np.concatenate(seen),
        }

    _wide(program)


def test_custom_gradient_and_closures():
    def program(m, x, y):
        n = m.np
        total = lambda h: lambda *a: n.sum(h(*a))  # noqa: E731

        @m.custom_gradient
        def f(a, b):
            s = n.sin(a)
            return s * b, lambda g: (g * n.cos(a) * b * 2, g * s)

        @m.custom_gradient
        def one(a):
            return n.exp(a), lambda g: g * 3 * a

        def applied(f, x):
            converted, consts = m.closure_convert(f, x)
            return twice(converted, x, *consts)

        @partial(m.custom_vjp, nondiff_argnums=(0,))
        def twice(f, x, *consts):
            return f(x, *consts) * 2

        def bwd(f, res, g):
            return tuple(3 * t for t in m.vjp(f, res[0], *res[1])[1](g))

        twice.defvjp(lambda f, x, *consts: (twice(f, x, *consts), (x, consts)), bwd)
        closing = lambda a, w: n.sum(applied(lambda t: n.sin(t * w) + n.arange(4.0), a))  # noqa: E731
        divided = lambda d, t: m.custom_derivatives.linear_call(  # noqa: E731
            lambda r, u: u / r, lambda r, c: c / r, d, t
        )
        return {
            "custom_gradient": m.grad(total(f), (0, 1))(x, y),
            "of one": m.grad(total(one))(x),
            "vmap": m.vmap(m.grad(f), (0, None))(x, y[0]),
            "second": m.grad(total(m.grad(total(f))))(x, y),
            "of vmap": m.grad(total(m.vmap(f)), 1)(x, y),
            "closure_convert": m.grad(closing, (0, 1))(x, y),
            "linear_call": divided(y, x),
            "its transpose": m.linear_transpose(lambda t: divided(y, t), x)(x),
        }

    _wide(program)


def test_linear_call_transforms():
    """More than JAX has: it is differentiated by its linear argument, and batched."""
    f = lambda d, t: lamina.custom_derivatives.linear_call(  # noqa: E731
        lambda r, u: u / r, lambda r, c: 2 * c / r, d, t
    )
    y = Y.astype(np.float32)
    np.testing.assert_allclose(lamina.jvp(partial(f, y), (y,), (y,))[1], np.ones(4), rtol=1e-6)
    got = lamina.jit(lamina.vmap(lamina.grad(lambda t, d: f(d, t)), (0, None)))(y, y[0])
    np.testing.assert_allclose(got, np.full(4, 2 / y[0]), rtol=1e-6)


def test_custom_vmap():
    def program(m, x, y):
        n = m.np

        @m.custom_batching.custom_vmap
        def f(a, b):
            return n.sin(a) * b

        @f.def_vmap
        def rule(size, in_batched, a, b):
            return n.sin(a) * (b if in_batched[1] else b[None]) * 7, True

        each = m.custom_batching.sequential_vmap(lambda a, b: (n.sin(a) * b, a))
        return {
            "unbatched": f(x[0], y[0]),
            "batched": m.vmap(f)(x, y),
            "twice": m.vmap(m.vmap(f, (0, None)), (None, 0))(x, y[:3]),
            "jvp": m.vmap(lambda a: m.jvp(lambda t: f(t, n.asarray(2.0)), (a,), (a,)))(x),
            "sequential": m.vmap(each, (0, None))(x, y[0]),
        }

    _wide(program, jit=True)


def test_custom_jvp_with_symbolic_zeros():
    def program(m, x, y):
        n = m.np
        f = m.custom_jvp(lambda a, b: n.sin(a) * b)
        kinds = []

        def rule(primals, tangents):
            (a, b), (a_dot, b_dot) = primals, tangents
            kinds.append(int(type(b_dot) is m.custom_derivatives.SymbolicZero))
            total = n.cos(a) * b * a_dot * 2
            return f(a, b), total if kinds[-1] else total + b_dot

        f.defjvp(rule, symbolic_zeros=True)
        return {
            "one": m.grad(lambda a: n.sum(f(a, y)))(x),
            "both": m.jit(m.vmap(m.grad(f, (0, 1))))(x, y),
            "hessian": m.hessian(lambda a: n.sum(m.vmap(f, (0, None))(a, y[0])))(x),
            "kinds": np.array(kinds[:1]),
        }

    _wide(program)


def test_eager_rules_see_values() -> None:
    """Functions and rules that branch in Python on what they are given, as in JAX."""

    def program(m, n):
        @m.custom_jvp
        def f(x):
            return n.sin(x) if x > 0 else x * 2

        @f.defjvp
        def f_jvp(primals, tangents):
            (x,), (t,) = primals, tangents
            return f(x), t * (10 if x > 1 else 5)

        @m.custom_vjp
        def g(x, y):
            return {"g": x * y} if x > 0 else {"h": x - y}

        def g_fwd(x, y):
            return g(x, y), (y, float(x))

        def g_bwd(res, ct):
            y, x = res
            (ct,) = ct.values()
            return ct * (y if float(ct) > 1 else -y), x * ct

        g.defvjp(g_fwd, g_bwd)
        total = lambda x, y: sum(g(x, y).values()) * 3  # noqa: E731
        return {
            "values": [f(2.0), f(-1.0), g(1.0, 2.0), g(-1.0, 2.0)],
            "grad": [m.grad(f)(2.0), m.grad(f)(0.5), m.value_and_grad(f)(-1.0)],
            "jvp": [m.jvp(f, (2.0,), (3.0,)), m.jvp(lambda x: f(x * x), (-2.0,), (1.0,))],
            "second": m.grad(lambda x: m.grad(f)(x) * x)(2.0),
            "vjp": [m.grad(total, (0, 1))(2.0, 3.0), m.grad(total, (0, 1))(-2.0, 3.0)],
            "constants": m.grad(lambda x: f(2.0) * x)(1.0),
        }

    want, got = program(jax, jax.numpy), program(lamina, jnp)
    for key in want:
        np.testing.assert_allclose(
            lamina.tree.leaves(got[key]), jax.tree.leaves(want[key]), rtol=1e-6, err_msg=key
        )


# ---- mistakes ------------------------------------------------------------------------------------
def _with_rules(fwd, bwd):
    f = lamina.custom_vjp(lambda x, y: jnp.sin(x) * y)
    f.defvjp(fwd, bwd)
    return lambda: lamina.jit(lamina.grad(f))(1.0, 2.0)


GOOD_FWD = lambda x, y: (x * y, (x, y))  # noqa: E731
GOOD_BWD = lambda res, g: (g, g)  # noqa: E731


@pytest.mark.parametrize(("run", "error", "message"), [
    (lambda: lamina.custom_vjp(jnp.sin)(1.0), AttributeError, "No VJP defined for custom_vjp function"),
    (_with_rules(lambda x, y: x * y, GOOD_BWD), TypeError,
     r"(?s)fwd rule <lambda> for function .* the fwd rule produced.*<lambda> is at .*:\d+"),
    (_with_rules(lambda x, y: ((x, y), None), GOOD_BWD), TypeError, "had container/pytree structure"),
    (_with_rules(lambda x, y: (jnp.ones(3), None), GOOD_BWD), TypeError, "had shapes/dtypes of"),
    (_with_rules(GOOD_FWD, lambda res, g: g), TypeError, "got bwd output structure"),
    (_with_rules(GOOD_FWD, lambda res, g: (g,)), TypeError, "got bwd output structure"),
    (_with_rules(GOOD_FWD, lambda res, g: (jnp.ones(3), g)), ValueError, r"at output\[0\] .* float32\[3\]|f32\[3\]"),
    (lambda: lamina.jvp(_scaled(), (1.0, 2.0), (1.0, 1.0)), TypeError, "can't apply forward-mode"),
    (lambda: lamina.jit(lambda x: lamina.jvp(_scaled(), (x, x), (x, x)))(1.0), TypeError, "forward-mode"),
    (lambda: lamina.grad(lambda x: _closing(x)(1.0))(2.0), Exception, "with respect to a closed-over value"),
    (lambda: lamina.vmap(lamina.custom_batching.custom_vmap(jnp.sin))(X), AttributeError, "No batching rule"),
])  # fmt: skip
def test_mistakes(run, error, message):
    with pytest.raises(error, match=message):
        run()


def _scaled():
    f = lamina.custom_vjp(lambda x, y: x * y)
    f.defvjp(GOOD_FWD, GOOD_BWD)
    return f


def _closing(w):
    f = lamina.custom_vjp(lambda x: x * w)
    f.defvjp(lambda x: (x, None), lambda res, g: (g,))
    return f


def test_static_arguments_of_custom_jvp_may_hold_traced_values():
    def program(lib):
        @partial(lib.custom_jvp, nondiff_argnums=(0, 2))
        def draw(options, x, key):
            return x * options["scale"] + lib.module.random.uniform(key, options["shape"])

        @draw.defjvp
        def rule(options, key, primals, tangents):
            noise = lib.module.random.uniform(key, options["shape"])
            return draw(options, *primals, key), 5 * noise * options["scale"] * tangents[0]

        keys = lib.module.random.split(lib.module.random.key(1), 3)
        options = {"scale": 2.0, "shape": (2,)}
        mapped = lambda x, scale: lib.vmap(  # noqa: E731
            lambda s, k: draw({**options, "scale": s}, x, k)
        )(scale, keys)
        scales = lib.np.arange(3.0)
        return (
            lib.jvp(lambda x: mapped(x, scales), (2.0,), (1.0,)),
            lib.grad(lambda x, s: mapped(x, s).sum(), (0, 1))(2.0, scales),  # constant in what is static
            lib.vmap(lambda k: lib.grad(lambda x: draw(options, x, k).sum())(2.0))(keys),
        )

    check(program)
    options, key = {"scale": 2.0, "shape": (2,)}, lamina.random.key(0)

    @partial(lamina.custom_jvp, nondiff_argnums=(0, 2))
    def doubled(options, x, key):
        return x * lamina.random.uniform(key) * options["scale"]

    doubled.defjvp(lambda options, key, p, t: (doubled(options, *p, key), 7 * t[0]))
    assert lamina.grad(lambda x: lamina.jit(lambda x, k: doubled(options, x, k))(x, key))(1.0) == 7


def test_rules_of_several_kinds_are_set_on_the_outermost():
    def program(lib):
        @lib.custom_batching.custom_vmap
        @lib.custom_jvp
        def f(x):
            return 2.0 * x

        f.def_vmap(lambda size, batched, x: (3.0 * x, batched[0]))
        f.defjvp(lambda primals, tangents: (2.0 * primals[0], 7.0 * tangents[0]))
        one = lib.np.ones(())
        return f(one), lib.vmap(f)(lib.np.ones(2)), lib.jvp(f, (one,), (one,))

    check(program)
    assert not hasattr(lamina.custom_jvp(jnp.sin), "def_vmap")


def test_tracers_are_no_static_arguments():
    f = lamina.custom_vjp(lambda k, x: x * k, nondiff_argnums=(0,))
    f.defvjp(lambda k, x: (x * k, None), lambda k, res, g: (g * k,))
    with pytest.raises(lamina.errors.UnexpectedTracerError, match="nondiff_argnums"):
        lamina.jit(lambda k: f(k, 1.0))(2.0)


def test_optimize_remat_runs_the_function_where_residuals_are_not_read():
    def program(m, x, y):
        @m.custom_vjp
        def f(x, y):
            return m.np.sin(x) * y

        def fwd(x, y):  # tells itself from f by its logarithm
            s = m.np.exp(m.np.log(m.np.sin(x)))
            return s * y, (s, m.np.cos(x), y)

        f.defvjp(fwd, lambda r, g: (r[1] * g * r[2] * 1.5, r[0] * g), optimize_remat=True)
        kept = m.checkpoint(lambda x, y: f(x, y) * x)
        grads = lambda f: m.grad(lambda *a: m.np.sum(f(*a) ** 2), (0, 1))  # noqa: E731
        text = str(m.make_jaxpr(grads(kept))(x, y))
        return {
            "passes with a logarithm": text.count("log "),
            "grad": grads(f)(x, y),
            "checkpointed": grads(kept)(x, y),
            "vmap of grad": m.vmap(grads(kept), (0, None))(m.np.stack([x, y]), y),
            "grad of vmap": grads(m.vmap(kept))(x, y),
            "second order": m.hessian(lambda x: m.np.sum(kept(x, y)))(x),
        }

    _wide(program)
    _wide(program, jit=True)


def test_linear_transpose_of_what_is_not_linear():
    """The operation and the user's line, where JAX has an AssertionError."""
    transpose = lambda f: lamina.linear_transpose(f, X)(X)  # noqa: E731
    for f, text in (
        (lambda x: x * x, r"'mul' is not linear in its operands \[0, 1\] together"),
        (lambda x: 1 / x, "'div' is not linear in its operand 1"),
        (lambda x: jnp.where(x > 0, x, 0.0), r"'select_n' is not linear in its operands \[0, "),
        (lambda x: x[jnp.argsort(x)], r"'gather' is not linear in its operands \[0, 1\]"),
        (lambda x: lamina.lax.scan(lambda c, v: (c * v, None), x[0], x)[0] * jnp.ones(4), "'mul' is"),
        (lambda x: lamina.lax.cond(x[0] > 0, lambda v: v, lambda v: 2 * v, x), "'cond' is not linear"),
    ):
        with pytest.raises(TypeError, match=text + "(.|\n)*test_custom_rules.py:[0-9]+"):
            transpose(f)
    with pytest.raises(NotImplementedError, match="for 'sin' not implemented, at .*test_custom_rules"):
        transpose(jnp.sin)
    assert [int(x) for x in lamina.linear_transpose(lambda n: n * 2, 3)(np.int32(5))] == [10]


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_rules_that_close_over_lanes_of_a_vmap(kind):
    """The argument is differentiated outside of the vmap, whose values the rule closes over."""

    def program(m):
        def along(z):
            def lane(x):
                f = getattr(m.module, kind)(lambda y: x * y)
                if kind == "custom_jvp":
                    f.defjvp(lambda primals, tangents: (x * primals[0], 3 * x * tangents[0]))
                else:
                    f.defvjp(lambda y: (x * y, (x, y)), lambda res, g: (3 * res[0] * g,))
                return f(z)

            return m.vmap(lane)(np.arange(3.0, dtype=np.float32))

        z = np.float32(2)
        if kind == "custom_jvp":
            return m.module.jvp(along, (z,), (np.float32(1),))
        return m.grad(lambda z: m.np.sum(along(z)))(z)

    check(program)


def test_functions_with_rules_of_which_a_part_is_given():
    def program(m, kind):
        f = getattr(m.module, kind)(partial(lambda x, y, a: x * y * a, a=2.0))
        if kind == "custom_jvp":
            f.defjvp(lambda p, t: (p[0] * p[1] * 2, 5 * t[0] + t[1]))
        else:
            f.defvjp(lambda x, y: (x * y * 2, None), lambda res, g: (5 * g, g))
        return m.grad(f, (0, 1))(1.0, 2.0)

    for kind in ("custom_jvp", "custom_vjp"):
        check(lambda m, kind=kind: program(m, kind))
    given = lamina.custom_jvp(lambda x, *, z: x * z)
    given.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match="keyword arguments could not be resolved to positions: z, which"):
        given(1.0, z=2.0)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_equations_with_rules_do_not_keep_arguments_alive(kind):
    f = getattr(lamina, kind)(lambda x: x * 2)
    if kind == "custom_jvp":
        f.defjvps(lambda g, ans, x: g)
    else:
        f.defvjp(lambda x: (x * 2, None), lambda res, g: (g,))
    with lamina.checking_leaks():

        @lamina.jit
        def looped():
            a = jnp.array(1.0)
            return lamina.lax.scan(lambda c, _: (f(c + a), None), 0.0, None, length=2)[0]

        assert float(looped()) == 6.0


def test_axes_that_a_rule_alone_names():
    @lamina.custom_jvp
    def f(x):
        return x

    @f.defjvp
    def f_jvp(primals, tangents):
        return f(*primals), tangents[0] * (1.0 + lamina.lax.axis_index("i"))

    with pytest.raises(NameError, match="unbound axis name: i"):
        lamina.jvp(lambda c: lamina.vmap(lambda x: x * f(c), axis_name="i")(jnp.ones(3)), (2.0,), (1.0,))


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_results_that_are_the_same_for_all_lanes(kind):
    def program(m):
        f = getattr(m, kind)(lambda x, y: (x * 2, m.lax.psum(y, "i"), y))
        if kind == "custom_jvp":
            f.defjvp(lambda p, t: (f(*p), (3 * t[0], m.lax.psum(t[1], "i"), 5 * t[1])))
        else:
            f.defvjp(lambda x, y: (f(x, y), x), lambda x, g: (3 * g[0] * x, g[1] * x + 5 * g[2]))

        def over(x, y):
            return m.vmap(f, in_axes=(None, 0), out_axes=(None, None, 0), axis_name="i")(x, y)

        def loss(x, y):
            a, b, c = m.jit(over)(x, y) if m is lamina else over(x, y)
            return (a * b).sum() + (c * c).sum()

        return over(2.0, X), m.grad(loss, (0, 1))(2.0, X), m.jit(m.grad(loss, (0, 1)))(2.0, X)

    check(program)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_rules_with_more_lanes_than_the_function(kind):
    f = getattr(lamina, kind)(lambda x: jnp.zeros((), jnp.float32))
    if kind == "custom_jvp":
        f.defjvp(lambda p, t: (f(*p), 2 * t[0]))
    else:
        f.defvjp(lambda x: (x * 0, None), lambda _, g: (2 * g,))
    x = jnp.arange(3.0)
    for wrapped in (lambda g: g, lamina.jit):
        np.testing.assert_array_equal(wrapped(lamina.grad(lambda x: lamina.vmap(f)(x).sum()))(x), [2, 2, 2])
    with pytest.raises(ValueError, match="batched along the mapped axis"):
        lamina.grad(lambda x: lamina.jit(lamina.vmap(f))(x).sum())(x)
