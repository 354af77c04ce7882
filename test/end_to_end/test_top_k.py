"""top_k in the runtime: every element type, sizes around its blocks, ties, zeros and NaN, memory."""

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lamina
import lamina.numpy as jnp
from lamina import lax

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def judged(x, k):
    """By NumPy: a stable sort of integers in the opposite order."""
    key = x
    if x.dtype in FLOATS:
        bits = x.view(f"i{x.dtype.itemsize}")
        key = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    order = np.argsort(~key, axis=-1, kind="stable")[..., :k].astype(np.int32)
    return np.take_along_axis(x, order, -1), order


def check(x, k):
    with lamina.enable_x64(True):
        found = lamina.jit(lambda x: lax.top_k(x, k))(x)
    for got, want in zip(map(np.asarray, found), judged(x, k), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert got.tobytes() == want.tobytes()


def any_bits(rng, dtype, shape):
    """Numbers of any bits: NaN of both signs, infinities, subnormals; some of them zeros."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    bits = rng.integers(0, 256, (*shape[:-1], shape[-1] * dtype.itemsize), np.uint8)
    x = bits.view(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, 1.0] if dtype in FLOATS else [0, 1]
    return np.where(rng.random(shape) < 0.2, rng.choice(np.array(special, dtype), shape), x)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_order_of_every_type(dtype):
    rng = np.random.default_rng(3)
    for rows, n, k in [(3, 40, 40), (2, 700, 5), (2, 5000, 70), (1, 3000, 2000)]:
        check(any_bits(rng, dtype, (rows, n)), k)


ORDERS = {
    "of no order": lambda rng, n: rng.standard_normal(n),
    "rising": lambda rng, n: np.arange(n),
    "falling": lambda rng, n: -np.arange(n),
    "with ties": lambda rng, n: rng.integers(0, 3, n),
    "all equal": lambda rng, n: np.zeros(n),
    "unlike what a sample of every eighth shows": lambda rng, n: np.where(
        (np.arange(n) < 256) & ((np.arange(n) % 8 == 0) | (np.arange(n) % 8 > 5)), 0, np.arange(n)
    ),
    "in waves": lambda rng, n: np.arange(n) % 97,
    "the greatest everywhere": lambda rng, n: np.where(np.arange(n) % 3, -1, 0),
}


@given(
    order=st.sampled_from(sorted(ORDERS)), seed=st.integers(0, 99), n=st.integers(1, 3000),
    part=st.floats(0, 1), few=st.integers(1, 9), dtype=st.sampled_from([np.int32, np.int64]),
)  # fmt: skip
def test_any_order_and_size(order, seed, n, part, few, dtype):
    x = ORDERS[order](np.random.default_rng(seed), n)
    scaled = (x * 1000).astype(dtype)[None]
    check(scaled, min(few, n))
    check(scaled, int(part * n))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_the_least_and_the_greatest_key(dtype):
    """No bound lies below the one, or above the other."""
    bits = np.zeros((1, 2000), f"u{np.dtype(dtype).itemsize}")
    check(bits.view(dtype), 70)
    check(~bits.view(dtype) if dtype == np.uint8 else (~bits).view(dtype), 70)
    bits[0, 1::7] = ~bits[0, 0] >> (0 if dtype == np.uint8 else 1)  # for floats, NaN of all ones
    check(bits.view(dtype), 70)
    check(bits.view(dtype), 1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows, n, k", [(1, 70_001, 10), (5, 70_001, 5000), (40, 1000, 9)])
def test_rows_and_parts_of_rows_in_threads(rows, n, k, threads):
    x = np.random.default_rng(rows).integers(0, n // 3, (rows, n)).astype(np.float32)
    try:
        lamina.runtime.set_num_threads(threads)
        check(x, k)
    finally:
        lamina.runtime.set_num_threads(0)


@pytest.mark.parametrize("shape, k", [((0, 4), 2), ((3, 0), 0), ((3, 4), 0), ((0,), 0)])
def test_nothing(shape, k):
    check(np.zeros(shape, np.float32), k)


@pytest.mark.parametrize("dtype", FLOATS)
def test_as_jax_has_it(dtype):
    x = any_bits(np.random.default_rng(1), dtype, (2, 40))
    x = np.where(np.isnan(x), np.copysign(np.array(np.nan, dtype), x), x)
    with lamina.enable_x64(True), jax.enable_x64(True):
        programs = [m.jit(lambda x, m=m: (m.lax.top_k(x, 40), m.lax.top_k(x, 1, axis=0)))
                    for m in (lamina, jax)]  # fmt: skip
        got, want = (jax.tree.leaves([[np.asarray(a) for a in pair] for pair in p(x)])
                     for p in programs)  # fmt: skip
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_text_of_jax():
    x = np.random.default_rng(0).standard_normal((4, 500)).astype(np.float32)
    text = jax.jit(lambda x: jax.lax.top_k(x, 7)).lower(x).as_text()
    assert "chlo.top_k" in text
    values, order = lamina.compile_stablehlo(text)(x)
    np.testing.assert_array_equal(values, judged(x, 7)[0])
    np.testing.assert_array_equal(order, judged(x, 7)[1])


def test_one_result_alone_and_inside_a_loop():
    x = np.random.default_rng(0).standard_normal((4, 50)).astype(np.float32)
    values, order = judged(x, 7)
    np.testing.assert_array_equal(lamina.jit(lambda x: lax.top_k(x, 7)[0])(x), values)
    np.testing.assert_array_equal(lamina.jit(lambda x: lax.top_k(x, 7)[1])(x), order)
    looped = lamina.jit(lambda x: lax.scan(lambda c, row: (c, lax.top_k(row, 7)), 0, x)[1])(x)
    np.testing.assert_array_equal(looped[0], values)
    np.testing.assert_array_equal(looped[1], order)


def test_transformations_are_jax_s():
    x = np.random.default_rng(0).permutation(60).reshape(3, 4, 5).astype(np.float32)
    weights = np.arange(3 * 4 * 2, dtype=np.float32)

    def program(m):
        def weighed(x):
            return (m.lax.top_k(x, 2)[0].reshape(-1) * weights).sum()

        batched = m.vmap(lambda x: m.lax.top_k(x, 2, axis=0), in_axes=2, out_axes=1)
        return (
            m.grad(weighed)(x), m.jvp(weighed, (x,), (x * x,)), batched(x),
            m.jacfwd(lambda x: m.lax.top_k(x, 1, axis=1)[0])(x[0]),
            m.lax.approx_max_k(x, 3), m.lax.approx_min_k(x, 2, reduction_dimension=1),
        )  # fmt: skip

    got, want = jax.tree.leaves(program(lamina)), jax.tree.leaves(program(jax))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_memory_but_the_results():
    lowered = lamina.jit(lambda x: lax.top_k(x, 64)).lower(jnp.zeros((1024, 1024), np.float32))
    compiled = lowered.compile()
    assert "lamina.top_k finds 64 of 1024 in each of 1024 rows" in compiled.as_text("fused")
    assert compiled.memory_analysis().temp_size_in_bytes == 0


@pytest.mark.parametrize("k, axis", [(-1, 0), (6, 0), (2, 3)])
def test_what_there_is_not(k, axis):
    with pytest.raises(ValueError, match="top_k|axis"):
        lax.top_k(np.zeros(5, np.float32), k, axis=axis)


@pytest.mark.parametrize("k", [2.5, "2", None])
def test_k_is_an_integer(k):
    with pytest.raises(TypeError, match="top_k.*integer"):
        lax.top_k(np.zeros(5, np.float32), k)


def test_complex_numbers_have_no_order():
    with pytest.raises(ValueError, match="complex"):
        lax.top_k(np.zeros(5, np.complex64), 1)
