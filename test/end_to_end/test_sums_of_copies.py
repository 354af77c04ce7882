"""Reductions over dimensions that an array is repeated along, and what is computed of repeated elements."""

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
SPECIAL = np.array([1.5, -0.0, 0.0, np.inf, -np.inf, np.nan, 3.25, -7.0])


@pytest.fixture(autouse=True)
def x64():
    with lamina.enable_x64():
        yield


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 3, 256, 257, 2049])
def test_sums_of_copies(dtype, count):
    x = SPECIAL.astype(dtype)

    @lamina.jit
    def sums(x):
        copies = jnp.broadcast_to(x[:, None], (x.size, count))
        return jnp.sum(copies, 1), jnp.sum(jnp.repeat(x[:3], count)), jnp.max(copies, 1)

    each, every, greatest = (np.asarray(a, np.float64) for a in sums(x))
    wide = x.astype(np.float64) * count
    np.testing.assert_array_equal(each, (wide + 0.0).astype(dtype).astype(np.float64))
    if count > 1:  # a sum begins with 0, so that of -0 is 0
        assert not np.signbit(each[[1, 2]]).any()
    np.testing.assert_allclose(every, 1.5 * count, rtol=float(ml_dtypes.finfo(dtype).eps))
    np.testing.assert_array_equal(greatest, x.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.bool_])
def test_integers_wrap_as_their_sum(dtype):
    x = np.array([0, 1, 5, 100, 127]).astype(dtype)

    @lamina.jit
    def reduced(x):
        copies = jnp.broadcast_to(x, (300, 2, x.size))
        return (
            jnp.sum(copies, (0, 1), dtype=dtype), jnp.min(copies, (0, 1)), jnp.any(copies, 0),
            jnp.all(copies, 1), jnp.max(copies), jnp.prod(copies, 0, dtype=dtype),
        )  # fmt: skip

    copies = np.broadcast_to(x, (300, 2, x.size))
    expected = (
        copies.sum((0, 1), dtype=dtype), copies.min((0, 1)), copies.any(0), copies.all(1), copies.max(),
        copies.prod(0, dtype=dtype),
    )  # fmt: skip
    for got, want in zip(reduced(x), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)


def test_empty_and_scalar_arrays():
    none = np.zeros((0,), np.float32)
    many = lamina.jit(lambda x: jnp.sum(jnp.broadcast_to(x[:, None], (x.size, 4)), 0))(none)
    np.testing.assert_array_equal(np.asarray(many), np.zeros(4, np.float32))
    no_copies = lamina.jit(lambda x: jnp.sum(jnp.broadcast_to(x, (0, 3)), 0))(np.full(3, np.inf, np.float32))
    np.testing.assert_array_equal(np.asarray(no_copies), np.zeros(3, np.float32))
    one = lamina.jit(lambda x: jnp.sum(jnp.sin(jnp.full((5, 7), x))))(np.float32(0.5))
    np.testing.assert_allclose(np.asarray(one), 35 * np.sin(np.float32(0.5)), rtol=1e-6)


@pytest.mark.parametrize(
    "spread",
    [
        lambda x: jnp.repeat(x, 3), lambda x: jnp.tile(x, 4), lambda x: jnp.repeat(x, 2, axis=0),
        lambda x: jnp.tile(x, (2, 3)), lambda x: jnp.repeat(jnp.repeat(x, 2, axis=0), 2, axis=1),
    ],
)  # fmt: skip
def test_gradients_need_no_repeated_array(spread):
    x = np.linspace(-1, 2, 63 * 65, dtype=np.float32).reshape(63, 65)

    def loss(x):
        return jnp.sum(jnp.sin(spread(x)) * 2.0)

    compiled = lamina.jit(lamina.value_and_grad(loss)).lower(x).compile()
    value, gradient = compiled(x)
    count = np.asarray(spread(x)).size // x.size
    np.testing.assert_allclose(np.asarray(gradient), 2.0 * count * np.cos(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(float(value), 2.0 * count * np.sin(x, dtype=np.float64).sum(), rtol=1e-5)
    assert compiled.memory_analysis().temp_size_in_bytes < x.nbytes


def test_operands_that_are_spread_otherwise():
    x, y = np.arange(5, dtype=np.float32), np.linspace(1, 2, 5, dtype=np.float32)

    @lamina.jit
    def outer(x, y):
        a, b = jnp.broadcast_to(x[:, None], (5, 5)), jnp.broadcast_to(y, (5, 5))
        return jnp.sum(a * b, 1), jnp.sum(jnp.where(a > 2, a, 0.0)), jnp.sum(a * b)

    row, positive, total = map(np.asarray, outer(x, y))
    np.testing.assert_allclose(row, x * y.sum(), rtol=1e-6)
    np.testing.assert_allclose(positive, 35.0)
    np.testing.assert_allclose(total, x.sum() * y.sum(), rtol=1e-6)
