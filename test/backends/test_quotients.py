"""Quotients by one number have the bits of divisions, whatever the numbers."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from support.kernel_runner import kernel

from lamina.backends.target import Target

LENGTH = 1000  # whole vectors, several at a time, and some lanes that remain


def quotients(dtype: str):
    of = f"tensor<{LENGTH}x{dtype}>"
    return kernel(f"""
func.func @f(%x: {of}, %b: tensor<{dtype}>) -> {of} attributes {{lamina.kind = "loop"}} {{
  %s = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<{dtype}>) -> {of}
  %r = stablehlo.divide %x, %s : {of}
  return %r : {of}
}}""")


KERNELS = {np.float32: quotients("f32"), np.float64: quotients("f64")}
UNSIGNED = {np.float32: np.uint32, np.float64: np.uint64}


def check(dtype, x, b):
    x, b = np.asarray(x, dtype), np.asarray(b, dtype)
    x = np.resize(x, LENGTH)
    (got,) = KERNELS[dtype](x, b)
    with np.errstate(all="ignore"):
        want = x / b
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    bits = UNSIGNED[dtype]
    np.testing.assert_array_equal(got[~nan].view(bits), want[~nan].view(bits))


def test_divisions_are_rare():
    made = KERNELS[np.float32].texts["llvm"]
    if Target.host().vector_bits == 512:
        assert "llvm.fma.v16f32" in made and "llvm.vector.reduce.or.v16i1" in made


@pytest.mark.parametrize("dtype", KERNELS)
def test_near_one(dtype):
    """Where products are corrected: numbers with random fractions, 20,000 for each divisor."""
    rng = np.random.default_rng(3)
    for power in (-19, -3, 0, 1, 7, 19):
        b = rng.uniform(1, 2) * 2.0**power
        for _ in range(20):
            x = rng.uniform(1, 2, LENGTH) * 2.0 ** rng.integers(-99, 99, LENGTH)
            check(dtype, x * rng.choice([-1, 1], LENGTH), b * rng.choice([-1, 1]))


@pytest.mark.parametrize("dtype", KERNELS)
def test_fractions_at_their_ends(dtype):
    """Fractions that are nearly 1 or 2, where a quotient is farthest off."""
    step = np.finfo(dtype).eps
    ends = np.concatenate([1 + step * np.arange(20), 2 - step * np.arange(1, 20)]).astype(dtype)
    for b in ends:
        check(dtype, ends, b)


@pytest.mark.parametrize("dtype", KERNELS)
def test_far_from_one(dtype):
    info = np.finfo(dtype)
    numbers = [0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan, info.tiny, info.max, -info.max,
               info.smallest_subnormal, info.tiny / 3, 2.0**-100, 2.0**-101, 2.0**101, 1e-30]  # fmt: skip
    for b in numbers:
        check(dtype, numbers, b)
        check(dtype, [0.0, 1.5], b)
        check(dtype, [-0.0, 1.5], b)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bits(data):
    dtype = data.draw(st.sampled_from(list(KERNELS)))
    width = 32 if dtype is np.float32 else 64
    whole = st.integers(0, 2**width - 1)
    x = np.array(data.draw(st.lists(whole, min_size=1, max_size=20)), UNSIGNED[dtype]).view(dtype)
    b = np.array([data.draw(whole)], UNSIGNED[dtype]).view(dtype)[0]
    check(dtype, x, b)
