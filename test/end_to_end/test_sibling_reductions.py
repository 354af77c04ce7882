"""Reductions of the same arrays side by side: along rows, down columns, over all, of what is made of them."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(0)
DTYPES = (np.float32, np.float64, ml_dtypes.bfloat16, np.float16, np.int8, np.uint16, np.int32, np.bool_)
SHAPES = ((3, 5, 7), (24, 1, 130), (0, 3, 4))
NAMES = ("sum", "max", "min", "prod", "any", "all")
AXES = (
    ((0,), (0, 1, 2)),
    ((2,), (1, 2), (0, 1, 2)),
    ((0, 2), (0,), None),
    (None, (1,), (0, 1), (2,)),
    ((0, 1), (2,)),
)


def some(shape, dtype):
    if dtype == np.bool_:
        return RNG.integers(0, 2, shape).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        return RNG.integers(0, 100, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


def wide(x):
    x = np.asarray(x)
    return x.astype(np.float64 if "float" in x.dtype.name else np.int64)


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_over_more_and_more(dtype, axes):
    for shape in SHAPES:
        x = some(shape, dtype)
        tolerance = {8: 1e-12, 4: 1e-5}.get(np.dtype(dtype).itemsize, 2e-2) if x.size else 0
        names = NAMES if x.size else ("sum", "prod", "any", "all")
        if np.dtype(dtype).itemsize == 2 and np.dtype(dtype).kind not in "iu":
            names = [name for name in names if name != "prod"]  # rounds in an order of its own
        with lamina.enable_x64(np.dtype(dtype).itemsize == 8):
            got = lamina.jit(lambda x, f=tuple(names): [[getattr(jnp, n)(x, axis=a) for a in axes] for n in f])(x)
        for name, of_axes in zip(names, got, strict=True):
            for axis, one in zip(axes, of_axes, strict=True):
                expected = getattr(np, name)(x if name in ("any", "all") else wide(x), axis=axis)
                if name == "prod" and np.asarray(one).dtype.kind in "iu":
                    expected = expected.astype(np.asarray(one).dtype)
                np.testing.assert_allclose(wide(one), wide(expected), rtol=tolerance, atol=tolerance * 100)


@pytest.mark.parametrize("axis", [0, 1])
def test_no_number_and_infinities_reach_all(axis):
    x = RNG.standard_normal((70, 300)).astype(np.float32)
    x[3, 5], x[9, 7] = np.inf, -np.inf
    both = lamina.jit(lambda x: (x.max(axis), x.max(), x.min(axis), x.min(), x.sum(axis), x.sum()))
    for one, expected in zip(both(x), [g(x, a) for g in (np.max, np.min) for a in (axis, None)], strict=False):
        np.testing.assert_array_equal(one, expected)
    assert np.isnan(both(x)[5])
    x[11, 11] = np.nan
    assert all(np.isnan(np.asarray(one)).any() for one in both(x))


def test_minus_zero_is_the_greatest_of_itself():
    x = np.full((40, 200), -0.0, np.float32)
    rows, greatest, total = lamina.jit(lambda x: (x.max(1), x.max(), x.sum()))(x)
    assert np.signbit(rows).all() and np.signbit(greatest) and total == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_the_array_is_read_once(axis):
    compiled = lamina.jit(lambda x: (x.sum(axis), x.sum())).lower(np.ones((1000, 1000), np.float32)).compile()
    readers = re.findall(r"func private @\w+\(memref<1000x1000xf32>", compiled.as_text("planned"))
    assert len(readers) == 1


DOWN = {
    "sums": lambda xp, x, y: (x.sum(0), (x * x).sum(0), (x * y).sum(0)),
    "extremes": lambda xp, x, y: (abs(x).max(0), x.min(0), y.sum(0), (x + y).sum(0)),
    "costly": lambda xp, x, y: (xp.exp(x).sum(0),),
    "made": lambda xp, x, y: (xp.exp(x).sum(0), (xp.exp(x) * y).sum(0), (xp.exp(x) * y).max(0)),
    "scaled": lambda xp, x, y: ((x * y[:1]).sum(0), (x * y[:, :1]).sum(0), (x * y[2, 3]).max(0)),
    "turned": lambda xp, x, y: (x.T.sum(1), (x * x).sum(0), xp.maximum(y, x).sum(0)),
    "all ways": lambda xp, x, y: (x.sum(0), x.sum(1), x.sum(), (x * y).sum(0), (x * y).sum(1)),
    "then": lambda xp, x, y: (x - x.sum(0), (x * x).sum(0) / x.max(0)),
}
PLACES = ((40, 32), (100, 100), (333, 129), (65, 600), (31, 64), (70, 5))


@pytest.mark.parametrize("dtype", (np.float32, np.float64, np.float16, np.int32), ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", DOWN)
def test_down_columns(name, dtype):
    for shape in PLACES:
        x, y = ((RNG.standard_normal(shape) * 2).astype(dtype) for _ in range(2))
        with lamina.enable_x64(np.dtype(dtype).itemsize == 8):
            got = lamina.jit(lambda x, y: DOWN[name](jnp, x, y))(x, y)
        with np.errstate(all="ignore"):
            want = DOWN[name](np, wide(x), wide(y))
        tolerance = {8: 1e-12, 4: 1e-5}.get(np.dtype(dtype).itemsize, 2e-2)
        for mine, theirs in zip(got, want, strict=True):
            np.testing.assert_allclose(
                np.asarray(mine).astype(np.float64), theirs, rtol=tolerance, atol=tolerance * 100
            )


def test_columns_without_numbers():
    x = RNG.standard_normal((64, 40)).astype(np.float32)
    x[3, 5], x[9, 7], x[11, 11] = np.inf, -np.inf, np.nan
    function = lambda xp, x: (x.max(0), x.min(0), x.sum(0), xp.exp(x).sum(0))  # noqa: E731
    for mine, theirs in zip(lamina.jit(lambda x: function(jnp, x))(x), function(np, x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_any_number_of_threads_gives_the_same_bits():
    x = RNG.standard_normal((1000, 300)).astype(np.float32)
    function = lamina.jit(lambda x: (x.sum(0), (x * x).sum(0), jnp.exp(x).sum(0)))
    before = lamina.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            lamina.set_num_threads(threads)
            results.append([np.asarray(one).tobytes() for one in function(x)])
    finally:
        lamina.set_num_threads(before)
    assert results[0] == results[1]
