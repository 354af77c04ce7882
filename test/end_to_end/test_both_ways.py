"""Sums of rows and of columns of one array, in one walk, against NumPy."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(0)

PROGRAMS = {
    "sums": lambda xp, x: (x.sum(0), x.sum(1)),
    "extremes": lambda xp, x: (x.max(1), x.min(0)),
    "squares": lambda xp, x: ((x * x).sum(1), (x * x).sum(0)),
    "scaled": lambda xp, x: ((x * x[:1]).sum(0), (x * x[:1]).sum(1)),
    "counted": lambda xp, x: ((x > 3).sum(0), (x > 3).sum(1)),
    "stored": lambda xp, x: (abs(x).sum(0), abs(x).sum(1), abs(x)),
}
SHAPES = ((512, 512), (35, 131), (333, 129), (1000, 160), (3, 5))
DTYPES = ("float32", "float16", ml_dtypes.bfloat16, "int8", "int32", "uint8")


def drawn(dtype, shape):
    return (RNG.normal(size=shape) * 3 + 3).clip(0).astype(dtype)


def kernels(function, *args) -> list[str]:
    manifest = lamina.jit(function).lower(*args).compile().as_text("manifest")
    return [kernel["kind"] for kernel in json.loads(manifest)["kernels"]]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype):
    program = PROGRAMS[name]
    is_small = np.dtype(dtype).itemsize == 2
    for shape in SHAPES:
        x = drawn(dtype, shape)
        got = lamina.jit(lambda x: program(jnp, x))(x)
        want = program(np, x.astype(np.float64) if is_small else x)
        for mine, theirs in zip(got, want, strict=True):
            if np.dtype(dtype).kind in "iu":  # NumPy adds up in 64 bits
                np.testing.assert_array_equal(mine, np.asarray(theirs).astype(np.asarray(mine).dtype))
            else:
                mine = np.asarray(mine).astype(np.float64)
                np.testing.assert_allclose(mine, theirs, rtol=2e-2 if is_small else 1e-5)


def test_one_kernel_and_what_makes_the_elements_once():
    x = jnp.ones((256, 512))
    assert kernels(lambda x: (x.mean(0), x.mean(1)), x) == ["input"]
    assert kernels(lambda x: (jnp.exp(x).sum(0), jnp.exp(x).sum(1)), x) == ["input"]
    memory = lamina.jit(lambda x: (jnp.exp(x).sum(0), jnp.exp(x).sum(1))).lower(x).compile()
    assert memory.memory_analysis().temp_size_in_bytes < x.nbytes // 16


def test_rows_that_something_follows_along_stay_with_it():
    x = jnp.ones((256, 512))
    program = lamina.jit(lambda x: (x.sum(0), x / x.sum(1, keepdims=True)))
    assert "rows" in kernels(program, x)


def test_the_same_on_any_number_of_threads():
    x = drawn("float32", (1000, 700))
    program = lamina.jit(lambda x: (jnp.exp(-x).sum(0), jnp.exp(-x).sum(1)))
    many = [np.asarray(one) for one in program(x)]
    before = lamina.get_num_threads()
    lamina.set_num_threads(1)
    try:
        for mine, theirs in zip(program(x), many, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    finally:
        lamina.set_num_threads(before)


def test_infinities_and_no_numbers():
    x = np.ones((64, 256), np.float32)
    x[3, 5], x[7, 9], x[7, 11] = np.nan, np.inf, -np.inf
    columns, rows = lamina.jit(lambda x: (x.sum(0), x.max(1)))(x)
    np.testing.assert_array_equal(columns, x.sum(0))
    np.testing.assert_array_equal(rows, x.max(1))
    zeros = np.full((64, 256), -0.0, np.float32)
    for sums in lamina.jit(lambda x: (x.sum(0), x.sum(1)))(zeros):
        np.testing.assert_array_equal(sums, 0)
