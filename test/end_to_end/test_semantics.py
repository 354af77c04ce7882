"""JAX's semantics that are easily got wrong, as values: promotion, overflow, NaN, bounds, gradients.

The values were observed on JAX (JAX_SURFACE.md, section 2); most programs are compared with the
installed JAX as well.
"""

import numpy as np
import pytest
from support.oracle.judge import check, check_all

import lamina
import lamina.numpy as jnp
from lamina import errors, lax

MIN, MAX = -(2**31), 2**31 - 1
NAN, INF = np.nan, np.inf


def test_promotion():
    i8, bf16, f32 = np.ones(2, np.int8), "bfloat16", np.ones(2, np.float32)

    def program(m):
        b = m.np.ones(2, bf16)
        return {
            "u8+i8": m.np.ones(2, "uint8") + i8, "i+bf16": m.np.ones(2, int) + b,
            "bf16+f16": b + m.np.ones(2, "float16"),
            "i8+1": m.np.asarray(i8) + 1, "bf16+1.": b + 1.0, "i8+1.": m.np.asarray(i8) + 1.0,
            "f32+1j": m.np.asarray(f32) + 1j,
            "bool+1": m.np.asarray(True) + 1, "strong scalar": m.np.asarray(i8) + np.int64(1),
            "f16+f64": m.np.ones(2, "float16") + np.float64(1),
            "sum i8": m.np.sum(i8), "prod u8": m.np.prod(i8.astype(np.uint8)),
            "sum bool": m.np.sum(i8 > 0), "cumsum": m.np.cumsum(i8),
            "mean": m.np.mean(i8), "div": m.np.asarray(i8) / m.np.asarray(i8),
            "mean f16": m.np.mean(m.np.ones(70000, "float16")),
            "sum f16": m.np.sum(m.np.ones(70000, "float16")),
        }  # fmt: skip

    check_all(program, jit=True)
    for a, b in (("int4", "int8"), ("float8_e4m3fn", "float32"), ("uint4", "int4")):
        with pytest.raises(errors.TypePromotionError, match="implicit"):
            jnp.ones(2, a) + jnp.ones(2, b)
    with pytest.raises(TypeError, match="requires arguments to have the same dtypes, got float32, int32"):
        lax.add(jnp.float32(1), jnp.int32(1))


def test_width_of_integers():
    for call in (lambda: jnp.array(2**40), lambda: jnp.uint8(300),
        lambda: jnp.array(-1, jnp.uint8)):
        with pytest.raises(OverflowError):
            call()
    with pytest.raises(OverflowError, match="x"):
        lamina.jit(lambda x: x)(2**40)
    assert int(jnp.asarray(np.array([2**40 + 5]))[0]) == 5
    with lamina.enable_x64(True):
        assert jnp.array(2**40).dtype == np.int64
        assert int(lamina.jit(lambda x: x + 1)(2**40)) == 2**40 + 1
    traces = []
    f = lamina.jit(lambda x: (traces.append(1), x)[1])
    for x in (1.0, 2.0, np.float32(1), 1, True, np.int8(1), jnp.float32(3), np.float64(1)):
        f(x)
    assert len(traces) == 5  # weak float, f32, weak int, bool, i8


def test_integers():
    seven, u8 = np.array([-7, 7, 7, MIN], np.int32), np.array([255, 0], np.uint8)
    by = np.array([2, -2, 0, -1], np.int32)
    check_all(lambda m, a, b, u: {
        "//": a // b, "%": a % b, "div": m.lax.div(a, b), "rem": m.lax.rem(a, b),
        "fmod": m.np.fmod(a, b),
        "wrap": (u + 1, u + 300, u + (-1)), "abs": m.np.abs(a),
        "u32": m.np.asarray(7, "uint32") // m.np.asarray(0, "uint32"),
        "shift": (m.np.left_shift(1, b * 0 + 33), m.np.right_shift(-1, b * 0 + 40),
            m.lax.shift_right_logical(a * 0 - 8, b * 0 + 1)),
        "pow": (a ** 3, m.np.asarray(0) ** 0, a ** m.np.abs(b)),
        "float": (m.np.float32(-1) % INF, m.np.float32(-1) // INF,
        m.np.float32(1) % 0, m.np.float32(1) // 0),
    }, seven, by, u8, jit=True)  # fmt: skip
    with pytest.raises(TypeError):
        jnp.arange(3) ** -1


def test_casts_and_rounding():
    x = np.array([NAN, INF, -INF, 3e9, -1.7, 300, -1, 0.5, 1.5, 2.5, -0.0], np.float32)
    check_all(lambda m, x: {
        **{t: x.astype(t) for t in ("int8", "uint8", "int16", "int32", "uint32", "bool", "float16",
            "bfloat16")},
        "round": m.np.round(x), "away": m.lax.round(x),
    }, x, jit=True)  # fmt: skip


def test_nan_order_and_ties():
    x = np.array([2, NAN, -0.0, 0.0, -NAN, INF, -INF, 2], np.float32)
    ties = np.array([2, 1, 2, 1])
    check_all(lambda m, x, t: {
        "max": (m.np.max(x), m.np.min(x), m.np.fmax(x, 0), m.np.maximum(x, 0), m.lax.max(x, x * 0)),
        "arg": (m.np.argmax(x), m.np.argmin(x), m.np.argmax(t), m.np.argmin(t)),
        "sort": m.np.sort(x), "descending": m.np.sort(x, descending=True),
        "zeros": 1 / m.lax.sort(m.np.array([0.0, -0.0, 0.0, -0.0])),
        "argsort": (m.np.argsort(x), m.np.argsort(t), m.np.argsort(t, descending=True)),
        "top": m.lax.top_k(m.np.abs(x), 3), "clip": (m.np.clip(x, 1.0, -1.0), m.np.clip(NAN, 0, 1)),
        "complex": m.np.max(m.np.array([1 + 2j, 1 + 3j, 0 + 9j])),
        "empty": (m.np.sum(x[:0]), m.np.mean(x[:0])),
        "softmax": (m.np.exp(m.np.log(x[6:7] * 0)), m.np.logaddexp(-INF, -INF)),
    }, x, ties, jit=True)  # fmt: skip
    check(lambda m: m.np.unique(np.array([NAN, 1, NAN])))
    with pytest.raises(ValueError, match="zero-size array to reduction operation max which has no identity"):
        jnp.max(jnp.zeros(0))
    with pytest.raises(ValueError, match="attempt to get argmax of an empty sequence"):
        jnp.argmax(jnp.zeros(0))


def test_gradients_at_the_edges():
    ties = np.array([2, 2, 1.0], np.float32)
    check_all(lambda m, t: {
        "max": m.grad(m.np.max)(t), "maximum": m.grad(lambda x: m.np.maximum(x, 1.0))(1.0),
        "abs": m.grad(m.np.abs)(0.0),
        "sqrt": m.grad(m.np.sqrt)(0.0),
        "where": m.grad(lambda x: m.np.where(x > 0, m.np.log(x), 0.0))(0.0),
        "square": m.grad(lambda x: x ** 2.0)(0.0), "base": m.grad(lambda y: 0.0 ** y)(1.5),
        "logaddexp": m.grad(m.np.logaddexp)(-INF, -INF),
        "relu": m.grad(m.module.nn.relu)(0.0),
    }, ties, jit=True, weak=False)  # fmt: skip


def test_bounds():
    x, i = np.arange(5, dtype=np.float32), np.array([7, -7, -1, 4])
    check_all(lambda m, x, i: {
        "gather": (x[i], x[i[0]], x[i[1]]), "take": m.np.take(x, i),
        "ints": m.np.take(x.astype(np.int32), i),
        "u8": m.np.take(x.astype(np.uint8), i), "bool": m.np.take(x > 1, i),
        "along": m.np.take_along_axis(x, i, 0),
        **{k: x.at[i].get(mode=k) for k in ("clip", "fill", "drop", "promise_in_bounds")},
        "value": x.at[i].get(mode="fill", fill_value=-3.0),
        "set": x.at[i].set(9.0), "set clip": x.at[i].set(9.0, mode="clip"),
        "add": x.at[m.np.array([1, 1, 7])].add(1.0),
        "slice": [m.lax.dynamic_slice(x, (s,), (2,)) for s in (-2, -9, 9)],
        "update": [m.lax.dynamic_update_slice(x, x[:2], (s,)) for s in (-2, -9, 9)],
        "switch": [m.lax.switch(s, [lambda: 1, lambda: 2]) for s in (-3, 5)],
        "nonzero": m.np.nonzero(x > 2, size=4), "unique": m.np.unique(i, size=5),
    }, x, i, jit=True)  # fmt: skip
    with pytest.warns(FutureWarning, match="incompatible types") as caught:
        assert jnp.arange(3).at[0].set(1.7)[0] == 1
    assert caught[0].filename == __file__
    for bad in ([0, 1], 1.0):
        with pytest.raises(TypeError):
            jnp.arange(3)[bad]


def test_random_numbers():
    key = lamina.random.PRNGKey(0)
    assert lamina.random.PRNGKey(42).tolist() == [0, 42]
    assert lamina.random.PRNGKey(-1).tolist() == [0, 2**32 - 1]
    assert lamina.random.PRNGKey(2**40).tolist() == [0, 0]
    assert lamina.random.split(key).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    assert lamina.random.split(key, 3)[:2].tolist() == lamina.random.split(key).tolist()
    assert lamina.random.bits(key, (3,)).tolist() == [4070199207, 4202968722, 1427181096]
    assert lamina.random.randint(key, (5,), 0, 10).tolist() == [9, 0, 2, 3, 1]
    assert lamina.random.permutation(key, 5).tolist() == [0, 1, 4, 3, 2]
    np.testing.assert_allclose(lamina.random.uniform(key, (3,)), [0.9476670, 0.9785799, 0.3322915],
        rtol=1e-6)
    np.testing.assert_allclose(lamina.random.normal(key, (3,)), [1.6226422, 2.0252647, -0.4335944],
        rtol=1e-6)
    with pytest.raises(OverflowError):
        lamina.random.fold_in(key, -1)


def test_loops_and_trees():
    check(lambda m: m.lax.while_loop(lambda c: c < 2, lambda c: c + 1.5, 0))
    with pytest.raises(TypeError, match="carry"):
        lax.while_loop(lambda c: c < 2, lambda c: c + 1.5, jnp.int32(0))
    with pytest.raises(ValueError, match="everse-mode"):
        lamina.grad(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x))(1.0)
    check(lambda m: m.grad(lambda x: m.lax.fori_loop(0, 3, lambda i, c: c * x, 1.0))(2.0))
    assert lamina.tree.leaves({"b": 1, "a": None, "c": (2,)}) == [1, 2]
    assert lamina.tree_util.tree_structure(None).num_leaves == 0
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        lamina.jit(lambda x, y: x, static_argnums=1)(1, [2])
    traces = []
    f = lamina.jit(lambda x, k: (traces.append(k), x)[1], static_argnums=1)
    for k in (1, 1.0, True, np.int64(1), 1):
        f(0, k)
    assert len(traces) == 4
