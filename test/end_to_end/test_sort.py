"""Sorting in the runtime: every key type, direction and layout, ties, zeros and NaN."""

import jax
import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(3)
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def drawn(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype in FLOATS:
        x = RNG.standard_normal(shape).astype(dtype)
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], dtype)
        return np.where(RNG.random(shape) < 0.3, RNG.choice(special, shape), x)
    if dtype.kind == "b":
        return RNG.random(shape) < 0.5
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(RNG.random(shape) < 0.2, dtype.type(info.max), x)


def library_of(function, *args):
    return "lamina.sort" in lamina.jit(function).lower(*args).compile().as_text("fused")


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_order_of_every_type(dtype):
    with lamina.enable_x64(True), jax.enable_x64(True):
        x = drawn(dtype, (3, 300))

        def program(x):
            return jnp.sort(x), jnp.argsort(x), jnp.argsort(x, descending=True), jnp.sort(x.T, 0)

        def judge(x):
            np_ = jax.numpy
            return np_.sort(x), np_.argsort(x), np_.argsort(x, descending=True), np_.sort(x.T, 0)

        assert library_of(program, x)
        for got, want in zip(lamina.jit(program)(x), jax.jit(judge)(x), strict=True):
            got, want = np.asarray(got), np.asarray(want)
            floats = np.dtype(dtype) in FLOATS and got.dtype == x.dtype
            if floats:
                got, want = got.astype(np.float64), want.astype(np.float64)
            np.testing.assert_array_equal(got, want)
            if floats:
                numbers = ~np.isnan(want)
                np.testing.assert_array_equal(
                    np.signbit(got[numbers]), np.signbit(want[numbers]), "signs of zeros"
                )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [31, 32, 255, 256, 70_001])
def test_lengths_and_threads(n, threads):
    x = RNG.integers(0, max(2, n // 3), n).astype(np.float32)
    try:
        lamina.runtime.set_num_threads(threads)
        value, order = lamina.jit(lambda x: (jnp.sort(x), jnp.argsort(x)))(x)
    finally:
        lamina.runtime.set_num_threads(0)
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(value, np.sort(x))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("shape", [(301, 7), (7, 300), (45, 4, 6), (61, 33), (20, 512), (17, 100)], ids=str)
def test_many_short_rows_together(dtype, shape):
    """Rows beside each other, the last of them fewer than fit, along every axis."""
    with lamina.enable_x64(True), jax.enable_x64(True):
        x = drawn(dtype, shape)

        def program(m):
            def sorts(x):
                orders = [(m.sort(x, a), m.argsort(x, a)) for a in range(len(shape))]
                return *orders, m.argsort(x, -1, descending=True), m.sort(x, 0, descending=True)

            return sorts

        got = lamina.jit(program(jnp))(x)
        want = jax.jit(program(jax.numpy))(x)
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            g, w = np.asarray(g), np.asarray(w)
            assert g.dtype == w.dtype
            bits = np.dtype(f"u{g.itemsize}")
            is_nan = g != g
            np.testing.assert_array_equal(is_nan, w != w)
            np.testing.assert_array_equal(g.view(bits)[~is_nan], w.view(bits)[~is_nan])


def test_many_short_rows_with_operands_of_all_widths():
    a = RNG.integers(0, 4, (500, 9)).astype(np.int16)
    carried = [
        np.broadcast_to(np.arange(9), a.shape).astype(t) for t in (np.int8, np.float16, np.int32, np.complex64)
    ]
    got = lamina.jit(lambda *xs: lamina.lax.sort(xs, num_keys=1))(a, *carried)
    order = np.argsort(a, 1, kind="stable")
    for g, x in zip(got, (a, *carried), strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.take_along_axis(x, order, 1))


def test_several_keys_and_operands_of_all_widths():
    n = 500
    a = RNG.integers(0, 4, n).astype(np.int32)
    b = drawn(np.float32, n)
    carried = [np.arange(n).astype(t) for t in (np.int8, np.int16, np.int32, np.complex64)]

    def program(lax):
        return lambda *operands: lax.sort(operands, num_keys=2)

    assert library_of(program(lamina.lax), a, b, *carried)
    got = lamina.jit(program(lamina.lax))(a, b, *carried)
    want = jax.jit(program(jax.lax))(a, b, *carried)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_what_jax_emits_is_known():
    x = drawn(np.float32, 400)
    for function in (jax.numpy.sort, jax.numpy.argsort):
        text = jax.jit(function).lower(x).as_text()
        compiled = lamina.compile_stablehlo(text)
        np.testing.assert_array_equal(np.asarray(compiled(x)[0]), np.asarray(jax.jit(function)(x)))


def test_other_orders_are_sorted_by_their_comparator():
    """By distance from a number: no radix sort does that, and none may be chosen."""
    text = """
func.func @main(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %a = stablehlo.abs %l : tensor<f32>
    %b = stablehlo.abs %r : tensor<f32>
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<100xf32>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}"""
    x = RNG.standard_normal(100).astype(np.float32)
    got = np.asarray(lamina.compile_stablehlo(text)(x)[0])
    np.testing.assert_array_equal(got, x[np.argsort(np.abs(x), kind="stable")])
