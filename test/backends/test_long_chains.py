"""Chains of many element-wise ops are one kernel, whose loops go over what the first cache holds."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

LENGTH = 700


def interwoven(x, b, alive, where):
    """`alive` values of which each waits for its neighbour; small integers, so that all is exact."""
    values = [x + i for i in range(alive)]
    for step in range((LENGTH - 2 * alive) // 3):
        i = step % alive
        other = values[(i + 1) % alive]
        match step % 4:
            case 0:
                values[i] = where(values[i] > other, other - 1, values[i] + b)
            case 1:
                values[i] = abs(values[i] - other)
            case 2:
                values[i] = where(abs(values[i]) > 50, x, values[i] + step % 5)
            case 3:
                values[i] = values[i] * 2 - other - b
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def kernels(compiled) -> int:
    return compiled.as_text("fused").count("func.func private")


@pytest.mark.parametrize("alive", (1, 16))
@pytest.mark.parametrize("shape", ((), (0,), (1,), (37,), (4096,), (33, 1000), (1003, 3), (300001,)))
def test_any_shape(shape: tuple[int, ...], alive: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype("float32")
    b = np.asarray(x[0] if len(shape) > 1 else np.float32(3))  # a row, or one number
    compiled = lamina.jit(lambda x, b: interwoven(x, b, alive, jnp.where)).lower(x, b).compile()
    assert kernels(compiled) <= 1 or shape == ()  # scalars are kernels of some 256 ops
    np.testing.assert_array_equal(np.asarray(compiled(x, b)), interwoven(x, b, alive, np.where))


@pytest.mark.parametrize("dtype", ("float64", "int32", "int8", "uint8", "int64", "float16", ml_dtypes.bfloat16))
def test_any_type(dtype: Any) -> None:
    x = np.random.default_rng(1).integers(0, 9, 10_007).astype(dtype)
    b = np.asarray(3, dtype)
    with lamina.enable_x64(dtype in ("float64", "int64")), np.errstate(over="ignore"):
        compiled = lamina.jit(lambda x, b: interwoven(x, b, 6, jnp.where)).lower(x, b).compile()
        assert kernels(compiled) == 1
        found = compiled(x, b)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), interwoven(x, b, 6, np.where))


def test_truths_and_numbers_on_the_way() -> None:
    def chain(x, np_):
        truth, n, y = x > 0, np_.where(x > 1, np_.int32(3), np_.int32(4)), x
        for step in range(150):
            y = np_.where(truth, y - x, y + np_.float32(step % 3))
            truth = (y > x) ^ truth
            n = n + np_.where(truth, np_.int32(1), np_.int32(-2))
        return y, truth, n

    x = np.random.default_rng(2).integers(-5, 5, 20_011).astype("float32")
    compiled = lamina.jit(lambda x: chain(x, jnp)).lower(x).compile()
    assert kernels(compiled) == 1
    for found, expected in zip(compiled(x), chain(x, np), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)


def _in_halves(np_, x):
    y, z = x, x.astype("int8")
    for _ in range(100):
        half = (y * np_.float32(0.5)).astype("float16")
        z = np_.where(half > 1, z + np_.int8(1), z - np_.int8(2))
        y = np_.where(half.astype("float32") > y, y - np_.float32(1), y + z.astype("float32") % np_.float32(3))
    return y + z.astype("float32")


def _divided(np_, x):
    n = x.astype("int32")
    for step in range(120):
        n = (n * np_.int32(5) ^ x.astype("int32")) // np_.int32(3 + step % 4)
    return n.astype("float32")


def _shifted(np_, x):
    first, last = x[:-1], x[1:]
    for step in range(150):
        first = np_.where(first > last, first - last, first + np_.float32(step % 5))
    return first


ON_THE_WAY = {"halves": _in_halves, "quotients": _divided, "slices": _shifted}


@pytest.mark.parametrize("name", ON_THE_WAY)
def test_one_kernel_whatever_is_on_the_way(name: str) -> None:
    chain = ON_THE_WAY[name]
    x = np.random.default_rng(2).integers(-9, 9, 20_011).astype("float32")
    compiled = lamina.jit(lambda x: chain(jnp, x)).lower(x).compile()
    assert kernels(compiled) == 1
    assert compiled.memory_analysis().temp_size_in_bytes == 0
    np.testing.assert_array_equal(np.asarray(compiled(x)), chain(np, x))


@pytest.mark.parametrize("steps", (40, 250))
def test_what_is_found_by_index(steps: int) -> None:
    """Negative indices count from the end, which is computed before the elements are looked up."""

    def chain(x, table, at, where):
        found = table[at]
        for step in range(steps):
            x = where(x > found, x - found, x + step % 5)
        return x

    rng = np.random.default_rng(4)
    x, table = rng.integers(-9, 9, 5003).astype("float32"), rng.integers(-9, 9, 64).astype("float32")
    at = rng.integers(-64, 64, 5003).astype("int32")
    compiled = lamina.jit(lambda *args: chain(*args, jnp.where)).lower(x, table, at).compile()
    assert kernels(compiled) == 1
    assert compiled.memory_analysis().temp_size_in_bytes == 0
    np.testing.assert_array_equal(np.asarray(compiled(x, table, at)), chain(x, table, at, np.where))


@pytest.mark.parametrize("shape", ((300, 70), (5000, 4), (7, 5)))
def test_what_is_read_turned_is_laid_out_first(shape: tuple[int, int]) -> None:
    def chain(x, y, where):
        for step in range(200):
            x = where(x > y.T, x - y.T, x + step % 5)
        return x

    rng = np.random.default_rng(5)
    x, y = rng.integers(-9, 9, shape).astype("float16"), rng.integers(-9, 9, shape[::-1]).astype("float16")
    compiled = lamina.jit(lambda *args: chain(*args, jnp.where)).lower(x, y).compile()
    assert kernels(compiled) == 2
    np.testing.assert_array_equal(np.asarray(compiled(x, y)), chain(x, y, np.where))


@pytest.mark.parametrize("shape", ((4, 100_003), (2, 2, 50_001), (600, 37), (5000, 3)))
def test_few_long_rows_and_many_short_ones(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(6).integers(-5, 5, shape).astype("float32")
    b = x[0, :1] if len(shape) == 3 else x[0]
    few = lamina.jit(lambda x, b: jnp.abs(x * b - 1) + b)(x, b)
    np.testing.assert_array_equal(np.asarray(few), np.abs(x * b - 1) + b)
    many = lamina.jit(lambda x, b: interwoven(x, b, 1, jnp.where))(x, b)
    np.testing.assert_array_equal(np.asarray(many), interwoven(x, b, 1, np.where))


def test_results_in_the_place_of_arguments() -> None:
    """Nothing is read once its place may have been written."""

    def chain(x, y):
        a, b = x, y
        for step in range(200):
            a, b = b - x + step % 7, a - y
        return a + x, b + y

    x = np.arange(50_000, dtype="float32") % 13
    y = np.arange(50_000, dtype="float32") % 11
    expected = chain(x, y)
    found = lamina.jit(chain, donate_argnums=(0, 1))(jnp.array(x), jnp.array(y))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


def test_positions_and_rows_and_columns() -> None:
    def chain(x, row, column, np_):
        y = x
        for step in range(130):
            y = np_.where(y > 30, y - row * np_.float32(step % 3), y + column)
            y = y - np_.arange(x.shape[1], dtype="float32") % np_.float32(5)
        return y

    rng = np.random.default_rng(3)
    x, row, column = (rng.integers(-5, 5, s).astype("float32") for s in ((70, 300), (300,), (70, 1)))
    found = lamina.jit(lambda *args: chain(*args, jnp))(x, row, column)
    np.testing.assert_array_equal(np.asarray(found), chain(x, row, column, np))


def test_a_gradient_of_a_long_chain() -> None:
    def chain(x):
        y = x
        for _ in range(150):
            y = jnp.sin(y) + x * 0.5
        return y

    x = np.linspace(-1, 1, 5003, dtype="float32")
    slope = lamina.jit(lamina.grad(lambda x: chain(x).sum()))(x)
    y, expected = x.astype("float64"), np.ones(5003)
    for _ in range(150):
        expected = np.cos(y) * expected + 0.5
        y = np.sin(y) + 0.5 * x
    np.testing.assert_allclose(np.asarray(slope), expected, rtol=2e-4)


def test_a_search_is_several_kernels() -> None:
    """Each step looks up where the one before found something: in one loop they wait for each other."""
    rng = np.random.default_rng(2)
    among, sought = np.sort(rng.random(1 << 16).astype("float32")), rng.random(5000).astype("float32")
    compiled = lamina.jit(jnp.searchsorted).lower(among, sought).compile()
    assert kernels(compiled) > 1
    np.testing.assert_array_equal(compiled(among, sought), np.searchsorted(among, sought))


@pytest.mark.parametrize("size", (4, 100, 3000))
def test_functions_that_are_called_often_are_called(size: int) -> None:
    """Where they were inlined, LLVM had a hundred instructions at each place."""

    def chain(x, steps):
        for step in range(steps):
            x = jnp.sin(x) + step
        return x

    x = np.linspace(-3, 3, size, dtype="float32")
    lines = {}
    for steps in (60, 120):
        compiled = lamina.jit(chain, static_argnums=1).lower(x, steps).compile()
        lines[steps] = compiled.as_text("llvm").count("\n")
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(chain(jnp.asarray(x), steps)))
    assert (lines[120] - lines[60]) / 60 < 60
