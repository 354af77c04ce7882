"""Keys of all generators but the default one: JAX's numbers, in programs and under vmap."""

import jax
import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA, assert_same

import lamina

NOT_A_NUMBER = np.array([0, 0x7FF00001, 1, 0xFFF80000], np.uint32)  # as two halves of 64 bits


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_numbers_are_jax_s(impl):
    def program(m):
        r, np_ = m.module.random, m.np

        def drawn(key):
            keys = r.split(key, 3)
            swapped = np_.where(np_.array([True, False, True]), keys, keys[::-1])
            return {
                "split": r.key_data(swapped),
                "fold_in": r.key_data(r.fold_in(key, 7)),
                "bits": [r.bits(key, (5,), f"uint{n}") for n in (8, 16, 32)],
                "normal": r.normal(keys[1], (5,)),
                "permutation": r.permutation(key, 7),
                "gamma": r.gamma(key, 2.0, (2,)),
                "equal": (keys == keys[::-1], keys != keys[1]),
                "vmap": m.vmap(lambda k: (r.bits(k, (3,)), r.key_data(r.split(k))))(keys),
                "set": r.key_data(keys.at[0].set(keys[2])),
                "moved": r.key_data(r.wrap_key_data(NOT_A_NUMBER, impl=impl)[None][0]),
            }

        key = r.key(42, impl=impl)
        out = m.jit(drawn)(key)
        out["eager"] = r.key_data(r.split(key)[0]), r.uniform(key)
        return out

    assert_same(program(LAMINA), program(JAX))


def test_counter_based_generators_are_jax_s():
    impls = ("threefry4x32", "philox2x32", "philox4x32")

    def program(m):
        r = m.module.random

        def drawn(keys, seed):
            out = {}
            for impl, key in keys.items():
                new = r.split(key, (2, 2))
                out[impl] = {
                    "made": r.key_data(r.key(seed, impl=impl)),
                    "split": r.key_data(new.T),
                    "fold_in": r.key_data(r.fold_in(key, 7)),
                    "bits": [r.bits(key, (5,), f"uint{n}") for n in (8, 32)],
                    "uniform": r.uniform(key, (3,)),
                    "vmap": m.vmap(lambda k: r.bits(k, (3,)))(new[0]),
                }
            return out

        keys = {impl: r.key(-42, impl=impl) for impl in impls}
        return [str(k.dtype) for k in keys.values()], m.jit(drawn)(keys, 2**31 - 5)

    (names, got), (wanted, want) = program(LAMINA), program(JAX)
    assert names == wanted
    assert_same(got, want)


def test_the_default_generator_says_what_raw_keys_are():
    def program(m):
        r = m.module.random
        with m.module.default_prng_impl("unsafe_rbg"):
            key = r.PRNGKey(2**33 + 5)
            return r.split(key), r.uniform(key, (2,)), r.key_data(r.key(5))

    assert_same(program(LAMINA), program(JAX))


def test_keys_tell_their_generator():
    key = lamina.random.key(0, impl="rbg")
    assert lamina.random.key_impl(key) == "rbg" and str(key.dtype) == "key<rbg>"
    assert key.itemsize == 16 and key.dtype != lamina.random.key(0).dtype
    assert key.dtype == lamina.random.key_dtype("rbg")
    assert "key<urbg>" in str(lamina.make_jaxpr(lambda: lamina.random.key(0, impl="unsafe_rbg"))())
    with pytest.raises(NotImplementedError, match="poisson"):
        lamina.random.poisson(key, 2.0)
    with pytest.raises(ValueError, match="Did you mean one of"):
        lamina.random.key(0, impl="mt19937")
    with pytest.raises(TypeError, match="end with"):
        lamina.random.split(np.zeros(4, np.uint32))
    with pytest.raises(TypeError):
        assert key == lamina.random.key(0)
    assert isinstance(key, lamina.Array) and not isinstance(key, jax.Array)
