"""Convolutions of images with fewer places than the kernel has features: products with patches."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lamina import jit, lax

_CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((1, 256, 5, 5), (256, 256, 3, 3), {"padding": "SAME"}),
    "3x3, unpadded, 2 images": ((2, 128, 5, 5), (256, 128, 3, 3), {"padding": "VALID"}),
    "in steps": ((1, 128, 7, 7), (256, 128, 3, 3), {"padding": [(1, 1), (0, 2)], "window_strides": (2, 3)}),
    "dilated": ((1, 128, 7, 7), (256, 128, 3, 2), {"padding": [(2, 2), (0, 1)], "rhs_dilation": (2, 3)}),
    "cropped": ((1, 128, 7, 7), (256, 128, 3, 3), {"padding": [(-1, 0), (1, 1)]}),
    "1x1": ((1, 64, 12, 12), (128, 64, 1, 1), {"padding": "VALID"}),
    "1x1, 3 images": ((3, 64, 7, 7), (256, 64, 1, 1), {"padding": "VALID"}),
    "1x1, in steps": ((1, 64, 15, 15), (128, 64, 1, 1), {"padding": [(1, 0), (0, 1)], "window_strides": (2, 2)}),
    "one dimension": ((1, 256, 9), (256, 256, 3), {"padding": "SAME"}),
    "three dimensions": ((1, 32, 3, 4, 3), (256, 32, 2, 2, 2), {"padding": "SAME"}),
}  # fmt: skip


def _taps(x: np.ndarray, k: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """The sums, element of the kernel by element, in f64."""
    rank = x.ndim - 2
    strides, dilation = options.get("window_strides", (1,) * rank), options.get("rhs_dilation", (1,) * rank)
    padding = options["padding"]
    spans = [(n - 1) * d + 1 for n, d in zip(k.shape[2:], dilation, strict=True)]
    if padding == "VALID":
        padding = [(0, 0)] * rank
    elif padding == "SAME":
        padding = [((n - 1) // 2, n - 1 - (n - 1) // 2) for n in spans]
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in padding)])
    crop = [slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(padding, x.shape[2:], strict=True)]
    x = x[(slice(None), slice(None), *crop)]
    counts = [(n - span) // s + 1 for n, span, s in zip(x.shape[2:], spans, strides, strict=True)]
    result: Any = 0
    for at in np.ndindex(*k.shape[2:]):
        place = [
            slice(i * d, i * d + (count - 1) * s + 1, s)
            for i, d, count, s in zip(at, dilation, counts, strides, strict=True)
        ]
        seen = x[(slice(None), slice(None), *place)]
        result = result + np.einsum("bi...,oi->bo...", seen, k[(slice(None), slice(None), *at)].astype(np.float64))
    return result


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_small_images(name: str, dtype: Any) -> None:
    shape, kernel, options = _CASES[name]
    rng = np.random.default_rng(0)
    x, k = (rng.integers(-4, 5, of).astype(dtype) for of in (shape, kernel))
    options = {"window_strides": (1,) * (len(shape) - 2)} | options

    def convolution(x: Any, k: Any, bias: Any) -> Any:
        sums = lax.conv_general_dilated(x, k, **options)
        return lax.max(sums + bias.reshape(1, -1, *[1] * (len(shape) - 2)), lax.full_like(sums, 0))

    bias = rng.integers(-9, 9, kernel[0]).astype(dtype)
    sums = _taps(x, k, options).astype(dtype).astype(np.float64)
    wanted = np.maximum((sums + bias.astype(np.float64).reshape(1, -1, *[1] * (len(shape) - 2))), 0)
    found = np.asarray(jit(convolution)(x, k, bias))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted.astype(dtype))


def test_images_that_are_nan_or_infinite_stay_so() -> None:
    x = np.ones((1, 64, 8, 8), np.float32)
    x[0, 3, 2, 5], x[0, 0, 7, 7] = np.nan, np.inf
    k = np.ones((256, 64, 1, 1), np.float32)
    found = np.asarray(jit(lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID"))(x, k))
    assert np.isnan(found[0, :, 2, 5]).all() and np.isinf(found[0, :, 7, 7]).all()
    assert (np.delete(found.reshape(256, 64), [21, 63], 1) == 64).all()
