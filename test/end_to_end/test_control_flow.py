"""cond, switch, while_loop, fori_loop, scan, map, associative_scan: values, types and messages."""

import gc
import weakref

import jax
import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA, check

import lamina
import lamina.numpy as jnp
from lamina import lax

X = np.array([0.5, -1.0, 2.0], np.float32)
M = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
BOTH = [lambda m, f: f, lambda m, f: m.jit(f)]


def agree(program, *args, **tolerances):
    """Eagerly and under jit."""
    for wrap in BOTH:
        check(lambda m, wrap=wrap: wrap(m, lambda *a: program(m, *a))(*args), **tolerances)


# ---- cond and switch -------------------------------------------------------------------------------
@pytest.mark.parametrize("pred", [True, False, np.bool_(True), 1, 0, 2.5, 0.0])
def test_cond_of_any_scalar(pred):
    agree(lambda m, p, x: m.lax.cond(p, lambda v: v * 2, lambda v: v - 1, x), pred, X)


def test_cond_with_pytrees_none_and_no_operands():
    agree(lambda m, p: m.lax.cond(p, lambda: {"a": (1.0, None)}, lambda: {"a": (2.0, None)}), True)
    agree(lambda m, p, t: m.lax.cond(p, lambda t: t["x"] + t["y"][0], lambda t: t["x"], t),
          False, {"x": X, "y": [X]})  # fmt: skip
    agree(lambda m, p: m.lax.cond(p, lambda _: 1.0, lambda _: 2.0, operand=None), True)
    agree(lambda m, p, x: m.lax.cond(p, lambda x: None, lambda x: None, x), True, X)
    agree(lambda m, p, x: m.lax.cond(p, (x, 1), lambda t: t[0] + t[1], x[:1], lambda v: v * X), False, X)


def test_cond_runs_one_branch_only():
    def program(p):
        return lax.cond(p, lambda: 1.0, lambda: lax.while_loop(lambda c: True, lambda c: c, 0.0))

    assert lamina.jit(program)(True) == 1.0


def test_cond_joins_weak_and_strong_types():
    # Here a strong type wins; JAX takes the type of the first branch.
    agree(lambda m, p, x: m.lax.cond(p, lambda: x, lambda: 1.0), True, np.float32(3), weak=False)
    agree(lambda m, p, x: m.lax.cond(p, lambda: 2, lambda: 1), True, np.float32(3))
    agree(lambda m, p: m.lax.cond(p, lambda: 2.0, lambda: m.np.float32(1)), False, weak=False)


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
def test_switch_clamps(index):
    branches = [lambda v: v, lambda v: v * 10, lambda v: v.sum() + v]
    agree(lambda m, i, x: m.lax.switch(i, branches, x), index, X)
    agree(lambda m, i, x: m.lax.switch(i, branches, x), np.int8(index), X)
    agree(lambda m, i, x: m.lax.switch(i, branches[:1], x), index, X)


def test_switch_under_vmap_and_batched_predicates():
    branches = [lambda v: v, lambda v: v * 10, lambda v: -v]
    agree(lambda m, i, x: m.vmap(lambda i, v: m.lax.switch(i, branches, v))(i, x),
          np.array([2, 0, 7, 1]), M)
    agree(lambda m, i, x: m.vmap(lambda v: m.lax.switch(i, branches, v))(x), 1, M)
    agree(lambda m, x: m.vmap(lambda v: m.lax.cond(v.sum() > 0, lambda u: m.np.sqrt(u.sum()),
                                                   lambda u: 0.0, v))(x), M)


def test_many_branches_and_many_results():
    branches = [lambda v, k=k: (v * k, k, {"k": float(k)}) for k in range(20)]
    agree(lambda m, i, x: m.lax.switch(i, branches, x), 13, X)


def test_results_that_are_operands_or_constants():
    agree(lambda m, p, x, y: m.lax.cond(p, lambda a, b: (a, b), lambda a, b: (b, a), x, y), True, X, X * 2)
    agree(lambda m, p, x: m.lax.cond(p, lambda a: (a, m.np.ones(3)), lambda a: (m.np.zeros(3), a), x),
          False, X)


def test_nested_conds():
    def program(m, a, b, x):
        return m.lax.cond(a, lambda v: m.lax.cond(b, lambda u: u + 1, lambda u: u + 2, v * 10),
                          lambda v: m.lax.cond(b, lambda u: u + 3, lambda u: u + 4, v * 20), x)  # fmt: skip

    for a in (True, False):
        for b in (True, False):
            agree(program, a, b, X)


# ---- while_loop and fori_loop ----------------------------------------------------------------------
def test_while_loops():
    agree(lambda m, x: m.lax.while_loop(lambda c: c < 100, lambda c: c * 2, x), 3)
    agree(lambda m, x: m.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, x)), X)
    agree(lambda m, x: m.lax.while_loop(lambda c: False, lambda c: c, x), X)
    agree(lambda m, n: m.lax.while_loop(lambda c: c["i"] < n, lambda c: {"i": c["i"] + 1, "n": None},
                                        {"i": 0, "n": None}), 7)
    agree(lambda m, x: m.lax.while_loop(lambda c: m.np.sum(c) < 10, lambda c: c + m.np.abs(x), x), X)


def test_swapped_carries():
    agree(lambda m, x, y: m.lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x, y)), X, X + 1)
    agree(lambda m, x, y: m.lax.while_loop(lambda c: c[2] < 3, lambda c: (c[1], c[0], c[2] + 1),
                                           (x, y, 0)), X, X + 1)
    agree(lambda m, x: m.lax.fori_loop(0, 5, lambda i, c: (c[2], c[0], c[1]), (x, x + 1, x + 2)), X)


def test_weak_carries_are_promoted():
    agree(lambda m: m.lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0))
    agree(lambda m: m.lax.fori_loop(0, 3, lambda i, c: c + m.np.float32(1), 0))
    agree(lambda m, x: m.lax.scan(lambda c, v: (c + v, c), 0, x), X)


@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (2, 2), (3, 1), (-3, 2), (np.int8(0), np.int8(4))])
def test_fori_loops_with_known_and_traced_bounds(lower, upper):
    body = lambda i, c: c * 2 + i  # noqa: E731
    check(lambda m: m.lax.fori_loop(lower, upper, body, m.np.zeros(2, np.int32)))
    check(lambda m: m.jit(lambda a, b: m.lax.fori_loop(a, b, body, m.np.zeros(2, np.int32)))(lower, upper))


def test_the_counter_is_weak_where_its_bounds_are():
    agree(lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c + i, x), np.int8(1))
    agree(lambda m, x: m.jit(lambda n: m.lax.fori_loop(0, n, lambda i, c: c + i, x))(3), np.int8(1))
    agree(lambda m, x: m.lax.fori_loop(np.int32(0), 3, lambda i, c: c + i, x), np.int32(1))


def test_fori_loop_unroll():
    for unroll in (2, 3, 10, True):
        agree(lambda m, x, u=unroll: m.lax.fori_loop(0, 7, lambda i, c: c * 1.1 + i, x, unroll=u), X)


def test_in_place_updates_in_loops():
    def program(m, x):
        def body(i, c):
            return c.at[i].set(c[i - 1] + c[i])

        return m.lax.fori_loop(1, 6, body, x)

    agree(program, np.arange(6, dtype=np.float32))
    agree(lambda m, x: m.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1].at[c[0]].add(1.0)),
                                        (0, x)), np.zeros(5, np.float32))
    # The old value is read after the update: it may not be overwritten.
    agree(lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c.at[i].set(9.0) + c[::-1], x), X)


def test_loops_under_vmap_stop_lane_by_lane():
    agree(lambda m, n: m.vmap(lambda k: m.lax.while_loop(lambda c: c < k, lambda c: c * 3 + 1, 1))(n),
          np.array([0, 5, 100, 1000]))
    agree(lambda m, n: m.vmap(lambda k: m.lax.fori_loop(0, k, lambda i, c: c + i, 0))(n), np.arange(4))
    agree(lambda m, x: m.vmap(lambda v: m.lax.while_loop(lambda c: c[0] < 3,
                                                         lambda c: (c[0] + 1, c[1] * v), (0, v)))(x), M)


def test_collatz_and_newton():
    def collatz(m, n):
        def body(c):
            n, steps = c
            return m.np.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        return m.lax.while_loop(lambda c: c[0] != 1, body, (n, 0))[1]

    agree(collatz, 27)

    def newton(m, a):
        return m.lax.while_loop(lambda c: m.np.abs(c * c - a) > 1e-5, lambda c: (c + a / c) / 2, a)

    agree(newton, np.float32(2.0), rtol=1e-5)


# ---- scan --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 2}, {"unroll": True},
                                     {"reverse": True, "unroll": 3}, {"length": 4}])  # fmt: skip
def test_scans(options):
    agree(lambda m, x, xs: m.lax.scan(lambda c, v: (c * 0.5 + v, (c, v.sum())), x, xs, **options), X, M)


def test_scan_structures():
    agree(lambda m, xs: m.lax.scan(lambda c, v: ({"n": c["n"] + 1, "s": c["s"] + v["a"]}, None),
                                   {"n": 0, "s": X}, xs), {"a": M, "b": (M, None)})
    agree(lambda m: m.lax.scan(lambda c, _: (c + 1, c), 0, None, length=5))
    agree(lambda m, xs: m.lax.scan(lambda c, v: ((), v * 2), (), xs), M)
    agree(lambda m, xs: m.lax.scan(lambda c, v: (c, ()), 1.0, xs), M)
    agree(lambda m, x: m.lax.scan(lambda c, v: (c + 1, c), x, m.np.zeros((0, 2))), X)
    agree(lambda m, x: m.lax.scan(lambda c, v: (v, c), x[0], x), M)
    agree(lambda m, x: m.lax.scan(lambda c, v: (c, (c, 1, x)), 2.0, x), X)


def test_scan_of_bools_ints_and_complex():
    agree(lambda m, x: m.lax.scan(lambda c, v: (c ^ v, ~c), True, x), np.array([True, False, True]))
    agree(lambda m, x: m.lax.scan(lambda c, v: (c * v, c), np.int8(1), x), np.array([3, 5, 7], np.int8))
    agree(lambda m, x: m.lax.scan(lambda c, v: (c * v, c), np.complex64(1j), x), X.astype(np.complex64))
    agree(lambda m, x: m.lax.scan(lambda c, v: (c + v, c), np.float16(0), x), X.astype(np.float16))


@pytest.mark.parametrize("options", [{}, {"reverse": True}])
@pytest.mark.parametrize("batch", [(), (300,)])  # a kernel of its own, and one with kernels in it
def test_rows_that_a_scan_makes_lie_where_those_lay_that_it_has_read(options, batch):
    rng = np.random.default_rng(0)
    h, xs, w, u = (rng.uniform(-0.2, 0.2, shape).astype(np.float32)
                   for shape in ((*batch, 64), (20 if batch else 800, *batch, 64), (64, 64), (64, 64)))  # fmt: skip

    def rnn(m, h, xs, w, u):
        def step(h, x):
            new = m.np.tanh(h @ w + x)
            return new, (new, x * new)

        return m.lax.scan(step, h, m.np.sin(xs @ u), **options)

    check(lambda m: m.jit(lambda *a: rnn(m, *a))(h, xs, w, u), rtol=1e-4, atol=1e-5)
    total = lambda m, *a: sum(m.np.sum(part**2) for part in rnn(m, *a)[1])  # noqa: E731
    check(lambda m: m.jit(m.grad(lambda *a: total(m, *a), (0, 1, 2, 3)))(h, xs, w, u), rtol=1e-3, atol=1e-3)
    # Nothing but what the loop carries, and what it multiplies.
    rows = lambda *a: lax.scan(lambda h, x: 2 * (jnp.tanh(h @ a[2] + x),), a[0], a[1] @ a[3], **options)  # noqa: E731
    plan = lamina.jit(rows).lower(h, xs, w, u).compile().memory_analysis()
    assert plan.temp_size_in_bytes < xs.nbytes // 2 + (1 << 16)


@pytest.mark.parametrize("options", [{}, {"reverse": True}])
def test_products_with_what_a_scan_reads_are_done_for_some_steps_at_a_time(options):
    rng = np.random.default_rng(0)
    h, xs, ys, u, v, w = (rng.uniform(-0.2, 0.2, shape).astype(np.float32)
                          for shape in ((40,), (420, 24), (420, 1, 16), (24, 160), (16, 80), (40, 40)))  # fmt: skip

    def network(m, h, xs, ys, u, v, w):
        def step(carry, row):
            h, count = carry
            x, y, number = row
            first, second, third, fourth = m.np.split(x @ u, 4)
            left, right = m.np.split((y @ v)[0], 2)
            new = m.np.tanh(h @ w + first * left + second) * third + m.np.sin(fourth + right) + number * count
            return (new, count + 1e-3), new

        return m.lax.scan(step, (h, m.np.float32(0)), (xs, ys, m.np.arange(420.0) / 420), **options)

    check(lambda m: m.jit(lambda *a: network(m, *a))(h, xs, ys, u, v, w), rtol=1e-4, atol=1e-5)
    compiled = lamina.jit(lambda *a: network(LAMINA, *a)).lower(h, xs, ys, u, v, w).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 420 * 80 * 4


def test_scan_under_vmap():
    step = lambda c, v: (c * v + 1, c)  # noqa: E731
    agree(lambda m, c, xs: m.vmap(lambda c, x: m.lax.scan(step, c, x))(c, xs), X, M[:3])
    agree(lambda m, c, xs: m.vmap(lambda c: m.lax.scan(step, c, xs))(c), X, M[0])
    agree(lambda m, c, xs: m.vmap(lambda x: m.lax.scan(step, c, x), 1, (0, 1))(xs), 1.0, M,
          weak=False)
    agree(lambda m, k, xs: m.vmap(lambda k: m.lax.scan(lambda c, v: (c + k * v, 0), 0.0, xs)[0])(k), X, M[0])


def test_scans_in_scans():
    def program(m, xs):
        def row(c, r):
            inner, ys = m.lax.scan(lambda a, v: (a + v, a * v), c, r)
            return inner, ys.sum()

        return m.lax.scan(row, 0.5, xs)

    agree(program, M)


def test_products_that_leave_loops():
    """x @ u of a part of xs goes before the loop, sums of outer products after it: in both
    directions, from a sum that is not zero, of one array with itself, in a loop in a loop."""

    def program(m, h, xs, w, u):
        def loss(w, u, reverse):
            def step(h, x):
                h = m.np.tanh(h @ w + x @ u)
                return h, h

            return (m.lax.scan(step, h, xs, reverse=reverse)[1] ** 2).sum()

        def grams(g, x):
            return (g[0] + m.np.outer(x, x), g[1] + m.np.outer(g[2], x), g[2] * 0.5 + x), None

        def outer(g, _):
            return m.lax.scan(grams, g, xs)[0], g[0][0, 0]

        return (
            [m.grad(loss, (0, 1))(w, u, reverse) for reverse in (False, True)],
            m.lax.scan(outer, (w, u, h), None, 9),
        )

    rng = np.random.default_rng(0)
    h, xs, w, u = (
        rng.standard_normal(shape).astype(np.float32) * 0.3
        for shape in ((24,), (11, 24), (24, 24), (24, 24))
    )
    check(lambda m: m.jit(lambda *a: program(m, *a))(h, xs, w, u), rtol=1e-4, atol=1e-5)


def test_closed_over_arrays_large_and_small():
    big = np.arange(20_000, dtype=np.float32)
    agree(lambda m, xs: m.lax.scan(lambda c, i: (c + m.np.asarray(big)[i], c), 0.0, xs),
          np.array([3, 19_999]), weak=False)


def test_map_and_associative_scan():
    agree(lambda m, x: m.lax.map(lambda v: (v * 2, v.sum()), x), M)
    agree(lambda m, x: m.lax.map(lambda v: v.sum(), x, batch_size=3), M)
    for reverse in (False, True):
        agree(lambda m, x, r=reverse: m.lax.associative_scan(m.np.add, x, reverse=r), M)
        agree(lambda m, x, r=reverse: m.lax.associative_scan(m.np.maximum, x, reverse=r, axis=1), M)
    for n in (1, 2, 3, 7, 8):
        agree(lambda m, x: m.lax.associative_scan(lambda a, b: a * 0.5 + b, x), np.ones(n, np.float32))
    agree(lambda m, x: m.lax.associative_scan(lambda a, b: (a[0] + b[0], a[1] * b[1]), (x, x)), X)
    agree(lambda m, x: m.lax.associative_scan(m.np.logical_or, x), np.array([False, True, False]))


def test_disable_jit_runs_control_flow_in_python():
    seen = []

    def step(c, v):
        seen.append(float(v))
        return c + v, c

    with lamina.disable_jit():
        carry, ys = lax.scan(step, 0.0, X)
        assert lax.cond(True, lambda: 1, lambda: 2) == 1
        assert lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0) == 3
        assert lax.fori_loop(0, 3, lambda i, c: c + i, 0) == 3
        assert lax.switch(5, [lambda: 1, lambda: 2]) == 2
    assert seen == X.tolist()
    np.testing.assert_allclose(ys, [0, 0.5, -0.5])


def test_equal_programs_outside_of_jit_are_compiled_once(monkeypatch):
    compiled = []
    from lamina.jit import programs

    build = programs.compile_program
    monkeypatch.setattr(programs, "compile_program",
                        lambda closed, name, **k: compiled.append(name) or build(closed, name, **k))  # fmt: skip

    def run(k):
        scale = jnp.float32(k)  # closed over: an operand of the loop, not a part of the program
        lax.scan(lambda c, v: (c * scale + v, c), 0.0, X + k)
        lax.cond(k > 3, lambda v: v * 2, lambda v: v - 1, X)
        lax.while_loop(lambda c: c < 3, lambda c: c + scale + 1, 0.0)
        lamina.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x))(float(k))

    run(0)
    first = len(compiled)
    for k in range(1, 6):
        run(k)
    assert len(compiled) == first and compiled.count("scan") >= 1
    lax.scan(lambda c, v: (c * 3.0 + v, c), 0.0, X)
    assert len(compiled) == first + 1


def test_programs_outside_of_jit_are_not_kept_for_ever():
    from lamina.core import interning

    kept = []
    for k in range(3):
        closed = lamina.make_jaxpr(lambda x, k=k: lax.fori_loop(0, 3, lambda i, c: c * k, x))(1.0)
        inner = closed.eqns[0].params["jaxpr"]
        kept.append(weakref.ref(inner))
        lamina.core.eval_jaxpr(closed.jaxpr, [], 1.0)
        del closed, inner
    interning._known.clear()
    lamina.core.trace.eval_trace()._function.cache_clear()
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3


def test_thousand_steps_of_a_loop_cost_little():
    f = lamina.jit(lambda x: lax.fori_loop(0, 100_000, lambda i, c: c * 1.0000001 + 1e-9, x))
    assert abs(float(f(1.0)) - float(jax.jit(lambda x: jax.lax.fori_loop(
        0, 100_000, lambda i, c: c * 1.0000001 + 1e-9, x))(1.0))) < 1e-3  # fmt: skip


# ---- messages --------------------------------------------------------------------------------------
def f32_to_i32(c, v):
    return jnp.int32(1), v


MISTAKES = [
    (TypeError, "true_fun and false_fun arguments should be callable", lambda m: m.lax.cond(True, 1, 2)),
    (TypeError, "Pred must be a scalar, got .* of shape", lambda m: m.lax.cond(X > 0, lambda: 1, lambda: 2)),
    (TypeError, "Pred must be a scalar, got a of type", lambda m: m.lax.cond("a", lambda: 1, lambda: 2)),
    (TypeError, "Pred type must be either boolean or number", lambda m: m.lax.cond(abs, lambda: 1, lambda: 2)),
    (TypeError, "cond predicate is None", lambda m: m.lax.cond(None, lambda: 1, lambda: 2)),
    (TypeError, "branch outputs must have the same pytree structure|must have same type structure",
     lambda m: m.lax.cond(True, lambda: (1, 2), lambda: 1)),
    (TypeError, "must have equal (output )?types but they differ",
     lambda m: m.lax.cond(True, lambda: m.np.ones(2), lambda: m.np.ones(3))),
    (TypeError, "must have equal (output )?types but they differ",
     lambda m: m.lax.cond(True, lambda: m.np.int32(2), lambda: m.np.float32(3))),
    (ValueError, "(?i)empty", lambda m: m.lax.switch(0, [])),
    (TypeError, "Index type must be an integer", lambda m: m.lax.switch(1.0, [lambda: 1, lambda: 2])),
    (TypeError, "should be a sequence of callables|callable", lambda m: m.lax.switch(1, [1, 2])),
    (TypeError, "must have the same pytree structure|same type structure",
     lambda m: m.lax.switch(1, [lambda: 1, lambda: (2,)])),
    (TypeError, "body_fun and cond_fun arguments should be callable", lambda m: m.lax.while_loop(1, 2, 3)),
    (TypeError, "cond_fun must return a boolean scalar",
     lambda m: m.lax.while_loop(lambda c: 1, lambda c: c, 0)),
    (TypeError, "cond_fun must return a boolean scalar",
     lambda m: m.lax.while_loop(lambda c: (True, True), lambda c: c, 0)),
    (TypeError, "carry (output|input).*equal types|must have equal types",
     lambda m: m.lax.while_loop(lambda c: True, lambda c: c + 1.5, np.int32(0))),
    (TypeError, "same pytree structure|must have equal types",
     lambda m: m.lax.while_loop(lambda c: True, lambda c: (c, c), 0.0)),
    (TypeError, "integer", lambda m: m.lax.fori_loop(0.0, 3, lambda i, c: c, 0)),
    (TypeError, "pair",
     lambda m: m.lax.scan(lambda c, v: c, 0.0, X)),
    (TypeError, "Revise the function|must have equal types",
     lambda m: m.lax.scan(lambda c, v: (c[:2], v), X, X)),
    (ValueError, "different leading axis sizes", lambda m: m.lax.scan(lambda c, v: (c, v), 0, (X, M))),
    (ValueError, "`?length`? argument .*disagrees", lambda m: m.lax.scan(lambda c, v: (c, v), 0, X, length=5)),
    (ValueError, "no values to scan over|length", lambda m: m.lax.scan(lambda c, v: (c, v), 0)),
    (ValueError, "no leading axis|with shape|0-d|scan got", lambda m: m.lax.scan(lambda c, v: (c, v), 0, 3.0)),
    (TypeError, "callable", lambda m: m.lax.scan(1, 0, X)),
    (TypeError, "callable", lambda m: m.lax.associative_scan(1, X)),
    (ValueError, "same size|share the same shape|must have the same",
     lambda m: m.lax.associative_scan(lambda a, b: a, (X, M))),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_raise_jax_s_errors(number):
    kind, text, program = MISTAKES[number]
    with pytest.raises(kind, match=text):
        program(LAMINA)
    with pytest.raises(kind):
        program(JAX)


def message(call) -> str:
    with pytest.raises(TypeError) as e:
        call()
    return str(e.value)


def test_carry_messages_name_the_entry_both_types_and_the_way_out():
    def step(carry, x):
        return {"count": carry["count"] + 1.5, "mean": carry["mean"]}, x

    text = message(lambda: lax.scan(step, {"count": np.int32(0), "mean": X}, X))
    assert "carry['count'] has type int32[] but the corresponding output carry component has type" in text
    assert "the dtypes do not match" in text and "mean" not in text
    assert "Revise the function so that all output types match" in text
    text = message(lambda: lax.while_loop(lambda c: True, lambda c: (c[0], c[1][:2]), (0, X)))
    assert "c[1] has type float32[3] but the corresponding output carry component has" in text
    assert "the shapes do not match" in text


def test_branch_messages_name_the_branches():
    text = message(lambda: lax.cond(True, lambda: (1.0, X), lambda: (1.0, X[:2])))
    assert "The output[1] of false_fun has type float32[2]" in text and "true_fun has type float32[3]" in text
    text = message(lambda: lax.switch(0, [lambda: 1.0, lambda: 1.0, lambda: X]))
    assert "output of branch 2 has type float32[3]" in text


def test_what_the_steps_of_a_gradient_add_up_is_one_product():
    """The gradient to the weights of a recurrence is a product after the loop, not an outer one a step."""

    def loss(weights, xs):
        w, u = weights
        last, hs = lax.scan(lambda h, x: (jnp.tanh(h @ w + x @ u),) * 2, jnp.zeros(64), xs)
        return jnp.sum(hs**2) + jnp.sum(last)

    xs, w = np.ones((100, 64), np.float32), np.eye(64, dtype=np.float32)
    text = lamina.jit(lamina.grad(loss)).lower((w, w), xs).compile().as_text("fused")
    main = text[: text.index("func.func private")]
    assert main.count("(tensor<100x64xf32>, tensor<100x64xf32>) -> tensor<64x64xf32>") == 2, main


def test_scan_counts_beyond_32_bits():
    steps = 2**31 + 10
    scan = lambda x: lax.scan(lambda c, _: (c + 1, None), x, None, length=steps)[0]  # noqa: E731
    assert int(lamina.jit(scan)(np.uint32(5))) == steps + 5
    with pytest.raises(OverflowError, match=r"scan: length=.* more than 2\*\*63 - 1 steps"):
        lax.scan(lambda c, _: (c, None), np.float32(1), None, length=2**63)


def test_scan_refuses_to_write_out_millions_of_operations():
    def many(x):
        return lax.scan(lambda c, _: (c * 2 + 1, None), x, None, length=2**20, unroll=True)[0]

    with pytest.raises(ValueError, match="unroll=1048576 .* smaller `unroll`"):
        lamina.jit(many)(np.float32(1))
