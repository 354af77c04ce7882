"""Bytes divided by constants are the quotients of IEEE 754, however they are computed."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(0)
DIVISORS = [255.0, 127.5, -128.0, -3.0, 1e-30, 0.1, 0.0, np.inf, np.nan, *RNG.uniform(0.01, 300, 30)]


@pytest.mark.parametrize("dtype", (np.uint8, np.int8))
@pytest.mark.parametrize("by", DIVISORS)
def test_bits(dtype, by):
    info, by = np.iinfo(dtype), np.float32(by)
    x = np.arange(info.min, info.max + 1).astype(dtype)
    got = np.asarray(lamina.jit(lambda x: x.astype(jnp.float32) / by)(x))
    with np.errstate(all="ignore"):
        want = x.astype(np.float32) / by
    is_nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), is_nan)
    np.testing.assert_array_equal(got[~is_nan].view(np.int32), want[~is_nan].view(np.int32))


def test_an_image_is_divided_once():
    x = np.zeros((8, 8, 3), np.uint8)
    text = lamina.jit(lambda x: (x.astype(jnp.float32) / 255 - 0.5) / jnp.array([0.2, 0.3, 0.4])).lower(x)
    assert text.compile().as_text("optimized").count("stablehlo.divide") == 1
