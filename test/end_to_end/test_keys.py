"""Typed random keys: arrays of a dtype of their own, as in JAX, which is the oracle."""

import copy
import pickle

import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA

import lamina
import lamina.numpy as jnp
from lamina import random
from lamina.jaxpr_io import parse_jaxpr


def _plain(m, x):
    """Keys as their words, everything as NumPy's."""
    is_key = m.np.issubdtype(x.dtype, m.module.dtypes.prng_key)
    return np.asarray(m.module.random.key_data(x) if is_key else x)


def same(program):
    """program(m, key, keys) in both libraries: equal types and bits."""
    found = []
    for m in (LAMINA, JAX):
        key = m.module.random.key(7)
        found.append(program(m, key, m.module.random.split(key, 3)))
    got, want = map(lamina.tree.leaves, found)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, str(g.dtype)) == (w.shape, str(w.dtype))
        np.testing.assert_array_equal(_plain(LAMINA, g), _plain(JAX, w))


def _moves(m, key, keys):
    which = np.array([True, False, True])
    return [
        keys[0], keys[-1], keys[1:], keys[None], keys[..., 0], keys[np.array([2, 0])],
        keys.at[np.array([1, 5])].get(mode="fill"),
        keys.reshape(3, 1).T, keys.ravel(), keys.reshape(1, 3).squeeze(), keys.copy(),
        m.np.stack([key, keys[1]]), m.np.concatenate([keys, keys]), m.np.array([key, key]),
        m.np.where(which, keys, key), m.np.broadcast_to(key, (2, 2)), m.np.flip(keys),
        m.np.roll(keys, 1), m.np.take(keys, 1), m.np.expand_dims(key, 0), m.np.repeat(keys, 2),
        m.np.zeros_like(keys), m.np.ones_like(keys), m.np.zeros((2,), key.dtype),
        m.np.empty((2,), key.dtype), m.np.full_like(keys, key), m.np.full((2,), key),
        keys.at[0].set(key), key == key, keys == key, keys != keys[0],
    ]  # fmt: skip


def test_keys_are_moved_as_arrays():
    def program(m, key, keys):
        return m.module.jit(lambda a, b: _moves(m, a, b))(key, keys)

    same(program)
    keys = random.split(random.key(7), 3)  # outside of any transformation, too
    for i, kept in ((0, 0), (slice(1, None), slice(1, None)), (np.array([2, 0]), [2, 0])):
        words = np.asarray(random.key_data(keys))[kept]
        np.testing.assert_array_equal(random.key_data(keys[i]), words)
    assert bool((jnp.stack([keys[0], keys[1]]) == keys[:2]).all())


def test_keys_in_control_flow():
    def program(m, key, keys):
        r, lax = m.module.random, m.lax

        def all_of_it(key, keys, n):
            step = lambda c, x: (r.split(c)[0], (r.bits(x), c))  # noqa: E731
            count = lambda k, n: lax.while_loop(  # noqa: E731
                lambda s: s[0] < n, lambda s: (s[0] + 1, r.fold_in(s[1], s[0])), (0, k)
            )
            return [
                lax.scan(step, key, keys), count(key, 3), m.vmap(count)(keys, m.np.arange(3)),
                lax.cond(n > 1, lambda k: k, lambda k: r.fold_in(k, 1), key),
                lax.switch(n, [lambda k: k, lambda k: k[::-1]], keys), lax.map(r.bits, keys),
                m.vmap(lambda k, i: lax.cond(i > 1, lambda k: k, r.clone, k))(keys, m.np.arange(3)),
                lax.fori_loop(0, 3, lambda i, k: k.at[i].set(key), keys),
                m.vmap(lambda a, b: (a, r.split(b)), (-1, None), -1)(keys.reshape(1, 3), key),
            ]  # fmt: skip

        return m.module.jit(all_of_it)(key, keys, 1)

    same(program)


def test_keys_are_leaves():
    key = random.key(7)
    keys = random.split(key, 3)
    tree = {"a": keys, "b": (key, None)}
    assert lamina.tree.leaves(tree)[0] is keys and lamina.tree.structure(tree).num_leaves == 2
    assert lamina.tree.map(lambda k: k.shape, tree) == {"a": (3,), "b": ((), None)}
    for kind in (lamina.Array, jnp.ndarray):
        assert isinstance(key, kind) and isinstance(jnp.zeros(2), kind)
        assert lamina.jit(lambda k, kind=kind: isinstance(k, kind) and k)(key) == key
        assert not isinstance(np.zeros(2), kind)
    assert (keys.ndim, keys.size, keys.nbytes, keys.itemsize, len(keys)) == (1, 3, 24, 8, 3)
    assert [random.key_data(k).tolist() for k in keys] == random.key_data(keys).tolist()
    for made in (pickle.loads(pickle.dumps(keys)), copy.deepcopy(keys), lamina.device_put(keys),
                 lamina.device_put(keys, lamina.devices()[0]), lamina.block_until_ready(keys)):  # fmt: skip
        assert bool((made == keys).all())
    assert key.devices() == {lamina.devices()[0]} and key.block_until_ready() is key


def test_types_of_keys():
    key = random.key(7)
    assert key.dtype == random.key_dtype() != np.float32 and key.dtype.name == "key<fry>"
    assert lamina.eval_shape(random.split, key) == lamina.ShapeDtypeStruct((2,), key.dtype)
    lowered = lamina.jit(random.bits).lower(lamina.ShapeDtypeStruct((), key.dtype))
    assert lowered.compile()(key) == random.bits(key)
    text = str(lamina.make_jaxpr(lambda k: random.key_data(k[None]))(key))
    assert "a:key<fry>[]" in text and "random_unwrap" in text
    assert str(parse_jaxpr(text)) == text
    closed_over = lamina.jit(lambda i: random.bits(random.split(key, 3)[i]))
    assert closed_over(2) == random.bits(random.split(key, 3)[2])
    assert jnp.result_type(key) == key.dtype and jnp.issubdtype(key.dtype, lamina.dtypes.extended)


def test_dtypes_of_keys_are_below_themselves():
    for lib in (LAMINA, JAX):
        one, other = (lib.module.random.key(0, impl=name).dtype for name in ("threefry2x32", "rbg"))
        assert lib.np.issubdtype(one, one) and not lib.np.issubdtype(one, other)
        assert not lib.np.issubdtype(one, np.float32) and not lib.np.issubdtype(np.float32, one)


def test_keys_are_copied_and_say_where_they_are():
    keys = random.split(random.key(0))
    copied = keys.copy()
    assert (copied == keys).all() and copied.dtype == keys.dtype
    assert copied.unsafe_buffer_pointer() != keys.unsafe_buffer_pointer()
    assert keys.on_device_size_in_bytes() == keys.nbytes == 16
    copied.delete()
    assert copied.is_deleted() and not keys.is_deleted()


def test_keys_beside_derivatives():
    key = random.key(7)

    def loss(x, keys):
        body = lamina.checkpoint(lambda c, k: (c * random.normal(k), None))
        return lamina.lax.scan(body, x, keys)[0]

    keys = random.split(key, 3)
    slope = lamina.jit(lamina.grad(loss))(2.0, keys)
    np.testing.assert_allclose(slope, np.prod(lamina.vmap(random.normal)(keys)), rtol=1e-6)
    cotangent, _ = lamina.vjp(lambda k, x: x * random.normal(k), key, 2.0)[1](1.0)
    assert cotangent.dtype == lamina.dtypes.float0
    assert lamina.jvp(lambda x: random.fold_in(key, 1), (1.0,), (1.0,))[0].dtype == key.dtype


_WRONG = [
    (TypeError, "add does not accept dtypes key<fry>, int32.", lambda m, k: k + 1),
    (TypeError, "add does not accept dtypes int32, key<fry>.", lambda m, k: 1 + k),
    (TypeError, "add does not accept dtype key<fry> at position 0.", lambda m, k: k + k),
    (TypeError, "neg does not accept dtype key<fry>.", lambda m, k: -k),
    (TypeError, "lt does not accept dtype key<fry> at position 0.", lambda m, k: k < k),
    (TypeError, "equal does not accept dtypes key<fry>, int32.", lambda m, k: k == 1),
    (TypeError, "key<fry>", lambda m, k: m.np.sin(k)),
    (ValueError, "is not a valid dtype for", lambda m, k: m.np.where(True, k, 0)),
    (ValueError, "Cannot convert_element_type from key<fry> to uint32",
     lambda m, k: m.np.asarray(k, dtype=np.uint32)),
    (TypeError, "cannot be converted to a NumPy array", lambda m, k: np.asarray(k)),
    (TypeError, "but got key<fry>", lambda m, k: m.module.grad(lambda k: 1.0)(k)),
    (TypeError, "unhashable type", lambda m, k: hash(k)),
    (TypeError, "len() of unsized object", lambda m, k: len(k)),
    (TypeError, "iteration over a 0-d key array", lambda m, k: list(k)),
    (TypeError, "int() argument must be", lambda m, k: int(k)),
    (ValueError, "accepts a single key, but was given a key array of shape (2,) != ()",
     lambda m, k: m.module.random.normal(m.module.random.split(k))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "message", "call"), _WRONG)
def test_keys_are_not_computed_with(kind, message, call):
    for m in (LAMINA, JAX):
        with pytest.raises(kind) as caught:
            call(m, m.module.random.key(0))
        assert message in str(caught.value)
    if "key<fry>" in message and "grad" not in message:
        with pytest.raises(kind):
            lamina.jit(lambda k: call(LAMINA, k))(random.key(0))


def test_calls_with_keys_are_known_to_the_fast_path():
    def draw(key, x):
        return random.split(key), random.normal(key, (3,)) + x

    f, again = lamina.jit(draw), lamina.jit(draw)
    key, x = random.key(0), np.float32(1)
    (keys, drawn) = f(key, x)
    assert f.cache_size() == 1
    assert keys.dtype == key.dtype and keys.shape == (2,)
    np.testing.assert_array_equal(drawn, again(key, x)[1])
    np.testing.assert_array_equal(drawn, f(random.clone(key), x)[1])
    assert f.cache_size() == 1
    other = f(random.key(0, impl="rbg"), x)  # of as many dimensions, but another dtype
    assert f.cache_size() == 2 and other[0].dtype != key.dtype
    f(random.split(key)[1], x)
    assert f.cache_size() == 2
    with pytest.raises(ValueError, match="single key"):
        f(keys, x)  # split takes one key
