"""Reductions of what is put together by concatenations and pads, done for each part: against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

DTYPES = ("float32", "float16", "int8", "uint16", "int32", "bool", "complex64")


def _some(shape, dtype="float32"):
    return np.random.default_rng(0).integers(0, 3, shape).astype(dtype)


def _same(function, *arrays, **tolerance):
    got = lamina.jit(lambda *a: function(jnp, *a))(*arrays)
    for one, expected in zip(got, function(np, *arrays), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(expected).astype(one.dtype), **tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_of_all_types(axis, dtype):
    x, y, z = _some((131, 93), dtype), _some((131, 105), dtype), _some((77, 198), dtype)

    def sums(np_, x, y, z):
        return (np_.concatenate([np_.concatenate([x, y], 1), z], 0).sum(axis),)

    def extremes(np_, x, y, z):
        return (np_.concatenate([np_.concatenate([x, y], 1), z], 0).max(axis),)

    _same(sums, x, y, z, rtol=1e-3)
    if dtype != "complex64":
        _same(extremes, x, y, z)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("fill", [0.0, 1.5, -np.inf, np.nan])
def test_what_is_around_a_pad_counts(fill, axis):
    x, y = _some((150, 129)), _some((153, 136))

    def largest_and_sum(np_, x, y):
        padded = np_.pad(x, ((1, 2), (3, 4)), constant_values=fill) + y
        return padded.max(axis), padded.sum(axis)

    _same(lambda *a: largest_and_sum(*a)[:1], x, y)
    with np.errstate(invalid="ignore"):
        _same(lambda *a: largest_and_sum(*a)[1:], x, y, rtol=1e-5)


@pytest.mark.parametrize("config", [((-3, 5, 0),), ((2, -7, 0),), ((0, 1, 1),), ((-1, -1, 0),)])
def test_negative_and_inner_pads(config):
    x = _some((20_001,))
    padded = lamina.jit(lambda x: lax.pad(x, jnp.float32(2), config))(x)
    total = lamina.jit(lambda x: (lax.pad(x, jnp.float32(2), config) * 3).sum())(x)
    np.testing.assert_allclose(total, np.asarray(padded, np.float64).sum() * 3, rtol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_with_what_is_repeated_counted_and_read_beside(axis):
    x, y, whole, row = _some((130, 100)), _some((70, 100)), _some((200, 100)), _some((100,))

    def function(np_, x, y, whole, row):
        joined = np_.concatenate([np_.exp(x), np_.sin(y)], 0)
        counts = np_.arange(200, dtype=np.float32)[:, None]
        return ((joined * whole + row - counts * joined).sum(axis),)

    _same(function, x, y, whole, row, rtol=1e-4, atol=1e-2)


def test_what_others_read_is_put_together_once():
    x, y = _some((130, 100)), _some((70, 100))

    def function(np_, x, y):
        joined = np_.exp(np_.concatenate([x, y], 0))
        return joined.sum(0), joined * 2

    _same(function, x, y, rtol=1e-5)


def test_empty_parts_and_little():
    x, y, none = _some((40,)), _some((3,)), _some((0,))
    _same(lambda np_, *a: (np_.concatenate(a).sum(), np_.concatenate(a).max()), x, none, y)


def test_sums_of_rolled_arrays():
    x = _some((130, 150))
    _same(lambda np_, x: ((np_.roll(x, (3, -4), (0, 1)) * x).sum(0),), x, rtol=1e-5)


def test_gradients():
    x, y = _some((130, 100)), _some((70, 100))
    got = lamina.grad(lambda x, y: (jnp.concatenate([x * 2, y], 0).sum(0) ** 2).sum(), (0, 1))(x, y)
    total = 2 * (x.sum(0) * 2 + y.sum(0))
    np.testing.assert_allclose(got[0], np.broadcast_to(total * 2, x.shape), rtol=1e-5)
    np.testing.assert_allclose(got[1], np.broadcast_to(total, y.shape), rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_stores_nothing_on_the_way(axis):
    x, y = _some((512, 256)), _some((512, 256))
    compiled = lamina.jit(lambda x, y: jnp.concatenate([jnp.exp(x), jnp.sin(y)], 1).sum(axis)).lower(x, y).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 100_000
    if axis != 0:
        assert len(json.loads(compiled.as_text("manifest"))["kernels"]) == 1


@pytest.mark.parametrize("name", ["max", "sum", "prod"])
def test_a_stack_of_many_neighbours(name):
    x = np.random.default_rng(4).random((130, 140)) + 0.5
    x[5, 7], x[9] = np.nan, -0.0

    def reduced(np_, x):
        parts = [x[i : i + 128, j : j + 138] for i in range(3) for j in range(3)]
        return getattr(np_, name)(np_.stack(parts), axis=0)

    with lamina.enable_x64(True):
        compiled = lamina.jit(lambda x: reduced(jnp, x)).lower(x).compile()
        np.testing.assert_allclose(compiled(x), reduced(np, x), rtol=1e-13)
    assert "concatenate" not in compiled.as_text("fused")
