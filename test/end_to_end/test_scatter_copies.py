"""Scatters of many updates into few elements, which tasks have copies of, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(13)
COUNT = 70_001  # no multiple of the tasks
COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _expected(name, x, indices, updates):
    places = [np.where(i < 0, i + size, i) for i, size in zip(indices, x.shape, strict=True)]
    inside = np.logical_and.reduce([(p >= 0) & (p < s) for p, s in zip(places, x.shape, strict=True)])
    result = x.copy()
    with np.errstate(over="ignore"):
        COMBINE[name].at(result, tuple(p[inside] for p in places), updates[inside])
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.int16], ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("shape", [(1,), (50,), (7, 9), (1100,)], ids=str)
def test_in_any_order(dtype, shape):
    x = RNG.integers(1, 9, shape).astype(dtype)
    updates = RNG.integers(1, 4, COUNT).astype(dtype)
    ones = np.ones(COUNT, dtype)
    ones[::9999] = 2
    indices = [RNG.integers(-size - 1, size + 2, COUNT).astype(np.int32) for size in shape]
    ours = lamina.jit(
        lambda x, u, v, *at: {n: getattr(x.at[at], n)(v if n == "mul" else u) for n in COMBINE}
    )(x, updates, ones, *indices)
    for name, got in ours.items():
        expected = _expected(name, x, indices, ones if name == "mul" else updates)
        np.testing.assert_array_equal(np.asarray(got), expected, name)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16], ids=lambda t: np.dtype(t).name)
def test_narrow_floats(dtype):
    x, at = np.zeros(40, dtype), RNG.integers(0, 40, COUNT).astype(np.int32)
    updates = RNG.integers(-99, 99, COUNT).astype(dtype)
    most, ones = lamina.jit(lambda x, i, u: (x.at[i].max(u), x.at[i[:32768]].add(0.125)))(x, at, updates)
    np.testing.assert_array_equal(np.asarray(most), _expected("max", x, [at], updates))
    count = np.bincount(at[:32768], minlength=40) / 8
    np.testing.assert_allclose(np.asarray(ones).astype(np.float64), count, rtol=0.02)


def test_nan_infinity_and_the_sign_of_zero():
    x = np.array([-0.0, 1.0, -np.inf, 5.0, -0.0], np.float32)
    at = np.repeat(np.arange(4, dtype=np.int32), 10_000)
    updates = np.zeros(at.size, np.float32) * -1
    updates[12_345], updates[22_222] = np.nan, np.inf
    ours = lamina.jit(
        lambda x, i, u: (x.at[i].max(u), x.at[i].min(u), x.at[i].add(u))
    )(x, at, updates)
    np.testing.assert_array_equal(np.asarray(ours[0]), np.float32([0, np.nan, np.inf, 5, 0]))
    np.testing.assert_array_equal(np.asarray(ours[1]), np.float32([0, np.nan, -np.inf, 0, 0]))
    np.testing.assert_array_equal(np.asarray(ours[2]), np.float32([0, np.nan, np.nan, 5, 0]))
    assert np.signbit(np.asarray(ours[2])[[0, 4]]).all()  # nothing but -0 was added


def test_results_depend_on_no_thread():
    at = RNG.integers(0, 1000, COUNT).astype(np.int32)
    updates = RNG.standard_normal(COUNT).astype(np.float32)
    total = lamina.jit(lambda u, i: lamina.ops.segment_sum(u, i, 1000))
    several = np.asarray(total(updates, at))
    with lamina.num_threads(1):
        np.testing.assert_array_equal(np.asarray(total(updates, at)), several)
    expected = np.bincount(at, updates.astype(np.float64), 1000)
    np.testing.assert_allclose(several, expected, rtol=1e-5, atol=1e-4)


def test_histogram_of_an_image():
    image = RNG.integers(0, 256, (300, 301)).astype(np.uint8)
    count = lamina.jit(lambda i: jnp.zeros(256, "int32").at[i].add(1))(image)
    np.testing.assert_array_equal(np.asarray(count), np.bincount(image.ravel(), minlength=256))
