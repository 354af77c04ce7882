"""Donated arguments of jit: what becomes of them, when that is told, and what is refused."""
import copy

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

X = np.arange(3, dtype=np.float32)


def test_donated_arguments_are_deleted_and_reported_when_used():
    f = lamina.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(3), jnp.ones(3)
    np.testing.assert_array_equal(f(x, y), [2, 2, 2])
    assert x.is_deleted() and not y.is_deleted()
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: f(x, y), lambda: float(x[0])):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
            use()


def test_donation_by_name_and_in_pytrees():
    f = lamina.jit(lambda state, x: {k: v + x for k, v in state.items()}, donate_argnames="state")
    state = {"a": jnp.ones(3), "b": jnp.zeros(3)}
    new = f(state=state, x=2.0)
    assert state["a"].is_deleted() and state["b"].is_deleted()
    np.testing.assert_array_equal(new["a"], [3, 3, 3])
    g = lamina.jit(lambda state, x: {k: v + x for k, v in state.items()}, donate_argnums=0)
    newer = g(new, 1.0)
    assert new["b"].is_deleted()
    np.testing.assert_array_equal(newer["b"], [3, 3, 3])


def test_donation_that_no_result_can_use_warns():
    f = lamina.jit(lambda x: x.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3\]"):
        f(jnp.ones(3))


def test_donated_numpy_arrays_stay_as_they_are():
    x = np.ones(3, np.float32)
    f = lamina.jit(lambda v: v + 1, donate_argnums=0)
    np.testing.assert_array_equal(f(x), [2, 2, 2])
    np.testing.assert_array_equal(x, [1, 1, 1])


def test_the_same_array_donated_and_passed_again_is_refused_or_safe():
    f = lamina.jit(lambda x, y: (x + y, y * 2), donate_argnums=0)
    x = jnp.ones(3)
    try:
        a, b = f(x, x)
    except (RuntimeError, ValueError) as e:
        assert "donate" in str(e)
    else:
        np.testing.assert_array_equal(a, [2, 2, 2])
        np.testing.assert_array_equal(b, [2, 2, 2])


def test_donation_within_an_outer_jit_is_no_error():
    inner = lamina.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    np.testing.assert_array_equal(lamina.jit(lambda v: inner(v) + v)(x), [3, 3, 3])
    assert not x.is_deleted()


NEW_ARRAYS = {
    "numpy.copy": jnp.copy,
    "numpy.array": jnp.array,
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "method": lambda x: x.copy(),
    "astype": lambda x: x.astype(x.dtype, copy=True),
    "asarray": lambda x: jnp.asarray(x, copy=True),
    "squeeze": jnp.squeeze,
    "ravel": jnp.ravel,
    "flatten": lambda x: x.flatten(),
    "positive": lambda x: +x,
    "real": jnp.real,
    "conj": jnp.conj,
    "clip": jnp.clip,
    "atleast_1d": jnp.atleast_1d,
}


@pytest.mark.parametrize("name", NEW_ARRAYS)
@pytest.mark.parametrize("size", [3, 5000])
def test_what_makes_a_new_array_outlives_a_donated_operand(name, size):
    x = jnp.arange(size, dtype=np.float32)
    y = NEW_ARRAYS[name](x)
    lamina.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(y, np.arange(size, dtype=np.float32))


def test_copies_have_memory_of_their_own_where_the_array_is():
    mesh = lamina.make_mesh((lamina.device_count(),), ("i",))
    sharding = lamina.sharding.NamedSharding(mesh, lamina.P("i"))
    x = lamina.device_put(jnp.arange(8.0), sharding)
    for made in (x.copy(), jnp.copy(x), jnp.array(x)):
        assert made.sharding == sharding
        x_parts, parts = ([s.data for s in a.addressable_shards] for a in (x, made))
        assert all(
            p.unsafe_buffer_pointer() != q.unsafe_buffer_pointer() for p, q in zip(x_parts, parts, strict=True)
        )
    x.delete()
    assert made.tolist() == list(range(8))


_READING_AN_ELEMENT = {
    "scale": lambda m, x: x * x[0],
    "two": lambda m, x: x * x[-1] + x[0],
    "functions": lambda m, x: x / x[5] + m.numpy.exp(x[3]),
    "loop": lambda m, x: m.lax.fori_loop(0, 5, lambda i, x: x * x[0] * 0.5 + x[1], x),
    "updates": lambda m, x: m.lax.fori_loop(0, 5, lambda i, x: x.at[2].set(x[0] + x[1]), x),
    "where": lambda m, x: m.numpy.where(x[0] > 0, x + x[1], x - x[2]),
    "update": lambda m, x: x.at[0].set(x[1] * 2).at[1].add(x[0]),
    "branch": lambda m, x: m.lax.cond(x[0] > 0, lambda x: x * x[1], lambda x: x - x[2], x),
    "scan": lambda m, x: m.lax.scan(lambda c, y: (c * y + x[0], c[1]), x, x[:7])[0],
    "parts": lambda m, x: m.numpy.concatenate([x[:1], x[1:] * x[0]]),
    "sorted": lambda m, x: m.numpy.sort(x)[::-1] * x[0] + x[0],
    "sums": lambda m, x: m.numpy.cumsum(x * x[0])[-1] * x,
}


@pytest.mark.parametrize("size", [8, 1000])
@pytest.mark.parametrize("name", _READING_AN_ELEMENT)
def test_elements_of_an_array_are_read_before_it_is_overwritten(name, size):
    fun = _READING_AN_ELEMENT[name]
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32) / 3
    want = np.asarray(jax.jit(lambda x: fun(jax, x))(x))
    got = lamina.jit(lambda x: fun(lamina, x), donate_argnums=0)(jnp.array(x))
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4 * np.abs(want).max())
