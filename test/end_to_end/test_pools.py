"""Pooling, by windows side by side and others, against NumPy and JAX."""

from __future__ import annotations

import json

import jax
import ml_dtypes
import numpy as np
import pytest

import lamina
from lamina import lax

RNG = np.random.default_rng(0)
WINDOWS = {
    "images": ((2, 8, 6, 20), (1, 2, 3, 1)),
    "channels first": ((2, 3, 16, 34), (1, 1, 2, 2)),
    "left over": ((3, 17, 50), (1, 4, 7)),
    "all": ((9, 33), (9, 33)),
    "more than there is": ((4, 5), (1, 6)),
}
COMBINERS = {
    "add": (0, np.sum), "max": (None, np.max), "min": (None, np.min), "mul": (1, np.prod),
}  # fmt: skip


def in_windows(x, window, reduce):
    counts = [n // size for n, size in zip(x.shape, window)]
    whole = x[tuple(slice(n * size) for n, size in zip(counts, window))]
    pairs = [size for pair in zip(counts, window) for size in pair]
    return reduce(whole.reshape(pairs), axis=tuple(range(1, 2 * x.ndim, 2)))


@pytest.mark.parametrize("dtype", ("float32", "float16", "int8", "uint32", ml_dtypes.bfloat16))
@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_side_by_side(name, combiner, dtype):
    shape, window = WINDOWS[name]
    x = RNG.integers(1, 3, shape).astype(dtype)
    start, reduce = COMBINERS[combiner]
    if start is None:
        large = np.inf if np.dtype(dtype).kind not in "iu" else np.iinfo(dtype).max
        small = -np.inf if np.dtype(dtype).kind not in "iu" else np.iinfo(dtype).min
        start = small if combiner == "max" else large
    if name == "all" and combiner == "mul":
        x = x // 2
    got = lax.reduce_window(x, np.asarray(start, dtype), getattr(lax, combiner), window, window, "VALID")
    if 0 in got.shape:
        assert name == "more than there is"
        return
    want = in_windows(x.astype(np.float64), window, reduce)
    kept = np.asarray(got).astype(np.float64)
    rough = 1e-2 if np.dtype(dtype).itemsize == 2 else 0
    with np.errstate(over="ignore"):
        want = (want.astype(np.int64) if np.dtype(dtype).kind in "iu" else want).astype(dtype).astype(np.float64)
    np.testing.assert_allclose(kept, want, rtol=rough)


@pytest.mark.parametrize("name", [name for name in WINDOWS if name != "more than there is"])
@pytest.mark.parametrize("combiner", ("add", "max"))
def test_gradients(name, combiner):
    shape, window = WINDOWS[name]
    x = RNG.normal(size=shape).astype(np.float32)

    def gradient(m):
        pool = lambda x: m.lax.reduce_window(  # noqa: E731
            x, 0.0 if combiner == "add" else -np.inf, getattr(m.lax, combiner), window, window, "VALID"
        )
        loss = lambda x: m.numpy.sum(m.numpy.sin(pool(x)))  # noqa: E731
        return m.jit(m.grad(loss))(x), m.jvp(m.grad(loss), (x,), (x,))[1]

    for got, want in zip(gradient(lamina), gradient(jax), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_other_windows():
    x = RNG.normal(size=(2, 15, 13, 3)).astype(np.float32)
    for window, strides, padding, base, wide in (
        ((1, 3, 3, 1), (1, 2, 2, 1), "SAME", None, None),
        ((1, 2, 2, 1), (1, 2, 2, 1), "SAME", None, None),
        ((1, 2, 2, 1), (1, 2, 2, 1), "VALID", (1, 2, 1, 1), None),
        ((1, 2, 2, 1), (1, 2, 2, 1), "VALID", None, (1, 2, 3, 1)),
        ((1, 1, 2, 1), (1, 3, 2, 1), "VALID", None, None),
    ):
        args = (0.0, window, strides, padding, base, wide)
        pool = lambda m, x, a=args: m.lax.reduce_window(x, a[0], m.lax.add, *a[1:])  # noqa: E731
        np.testing.assert_allclose(pool(lamina, x), pool(jax, x), rtol=1e-4, atol=1e-5)
        got, want = (m.grad(lambda x: (pool(m, x) ** 2).sum())(x) for m in (lamina, jax))  # noqa: B023
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_pool_is_one_kernel_with_what_is_around_it():
    pool = lambda x: lax.reduce_window(  # noqa: E731
        lamina.nn.relu(x), 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
    ) / 4.0
    manifest = lamina.jit(pool).lower(np.zeros((4, 8, 32, 32), np.float32)).compile().as_text("manifest")
    assert len(json.loads(manifest)["kernels"]) == 1
