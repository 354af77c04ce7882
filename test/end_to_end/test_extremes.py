"""Greatest and least elements of long rows and where they are, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(0)
DTYPES = ("float32", "float16", ml_dtypes.bfloat16, "int8", "uint8", "int32", "uint32", "bool")
SHAPES = ((5, 32), (4, 333), (1000,), (2, 3, 64))


def rows(dtype, shape):
    """Few different values, so that the first of many equal ones is asked for."""
    x = RNG.integers(0, 9, shape).astype(dtype)
    if np.dtype(dtype).kind not in "iub":
        x[..., ::7] *= -1  # zeros of both signs
        x[..., 20:] = np.where(RNG.random(x[..., 20:].shape) < 0.1, np.inf, x[..., 20:])
    return x


def found(name, x, axis):
    return lamina.jit(getattr(jnp, name), static_argnums=1)(x, axis)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_values(dtype, shape):
    x = rows(dtype, shape)
    wide = x if np.dtype(dtype).kind in "iub" else x.astype(np.float32)
    for name in ("argmax", "argmin", "max", "min"):
        for axis in (-1, 0, None):
            got = found(name, x, axis)
            want = getattr(np, name)(wide, axis)
            np.testing.assert_array_equal(np.asarray(got).astype(want.dtype), want, (name, axis))


@pytest.mark.parametrize("dtype", ["float32", ml_dtypes.bfloat16])
def test_the_first_nan_is_found(dtype):
    x = rows(dtype, (6, 100))
    x[1, 50:53] = x[2, 0] = x[3, 99] = x[4] = np.nan
    x[5] = -np.inf
    for name in ("argmax", "argmin"):
        got = found(name, x, 1)
        np.testing.assert_array_equal(got[1:], [50, 0, 99, 0, 0])
    assert np.isnan(np.asarray(jnp.max(x, 1))[1:5].astype(np.float32)).all()


def test_what_is_computed_twice_is_found() -> None:
    """Distances that one loop rounds as another need not: the nearest of few centres, for several sets."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1000, 2)).astype(np.float32)
    sets = rng.normal(size=(6, 8, 2)).astype(np.float32)

    def nearest(centres: Any) -> Any:
        return jnp.argmin(jnp.sum((points[:, None] - centres[None]) ** 2, axis=-1), axis=1)

    got = lamina.jit(lamina.vmap(nearest))(sets)
    distances = ((points[None, :, None] - sets[:, None]) ** 2).sum(-1)
    np.testing.assert_array_equal(got, distances.argmin(2))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(1 << 17,), (400, 400), (2, 70000), (131071,)], ids=str)
def test_rows_in_chunks(dtype, shape):
    x = rows(dtype, shape)
    wide = x if np.dtype(dtype).kind in "iub" else x.astype(np.float32)
    for axis in (None, -1):
        for name in ("argmax", "argmin"):
            want = getattr(np, name)(wide, axis)
            np.testing.assert_array_equal(found(name, x, axis), want, f"{name} {axis}")


@pytest.mark.parametrize("places", [(5,), (70000, 70001, 140001), (262143,)])
def test_no_number_in_chunks(places):
    x = RNG.standard_normal(1 << 18).astype(np.float32)
    x[list(places)] = np.nan
    assert found("argmax", x, None) == found("argmin", x, None) == places[0]
    x[:] = -np.inf
    assert found("argmax", x, None) == found("argmin", x, None) == 0
    x[list(places)] = 1
    assert found("argmax", x, None) == places[0]


def test_computed_elements_in_chunks():
    x = RNG.standard_normal((512, 512)).astype(np.float32)
    for function in (lambda x: x * 3, lambda x: -x, lambda x: jnp.exp(x) * x, lambda x: x.T, lambda x: x[::2]):
        made = np.asarray(lamina.jit(function)(x))
        at = lamina.jit(lambda x, function=function: jnp.argmax(function(x)))(x)
        assert made.ravel()[at] == pytest.approx(made.max(), rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", ml_dtypes.bfloat16])
def test_extremes_of_what_is_computed_on_the_way(dtype, shape):
    """Small integers, so that however it is rounded the values are NumPy's."""
    x = rows(dtype, shape)
    x.flat[::11] = np.nan
    x.flat[shape[-1] // 2 :: 17] = -np.inf
    bias = RNG.integers(0, 4, shape[-1]).astype(dtype)
    computed = (x.astype(np.float64) * 2 + bias.astype(np.float64)).astype(np.float32)
    for name in ("argmax", "argmin"):
        for axis in (-1, 0, None):
            got = lamina.jit(lambda x, bias, name=name, axis=axis: getattr(jnp, name)(x * 2 + bias, axis))(x, bias)
            np.testing.assert_array_equal(got, getattr(np, name)(computed, axis), (name, axis))
    place, value, all_ = lamina.jit(lambda x, bias: ((y := x * 2 + bias).argmax(-1), y.max(-1), y))(x, bias)
    np.testing.assert_array_equal(np.asarray(all_).astype(np.float32), computed)
    np.testing.assert_array_equal(place, computed.argmax(-1))
    np.testing.assert_array_equal(np.asarray(value).astype(np.float32), computed.max(-1))


def test_extremes_of_what_is_computed_in_steps():
    x = RNG.integers(-9, 9, (40, 30)).astype(np.float32)

    def step(i, found):
        return found + jnp.argmin(jnp.abs(x * i - found[:, None]), 1)

    expected = np.zeros(40, np.float32)
    for i in range(6):
        expected += np.argmin(np.abs(x * i - expected[:, None]), 1)
    got = lamina.jit(lambda: lamina.lax.fori_loop(0, 6, step, jnp.zeros(40, jnp.float32)))()
    np.testing.assert_array_equal(got, expected)
