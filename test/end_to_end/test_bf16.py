"""Element-wise programs of bf16: each result is that of f32, rounded once to the nearest even."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lamina.numpy as jnp
from lamina import jit

BF16 = ml_dtypes.bfloat16
CODES = np.arange(1 << 16, dtype=np.uint16)
ALL = CODES.view(BF16)
IS_NORMAL = ~((CODES & 0x7F80 == 0) & (CODES & 0x7F != 0))
"""Which are no denormals: what arithmetic does to those is left to the processor."""
IS_NAN = CODES & 0x7FFF > 0x7F80


def rounded(numbers: np.ndarray) -> np.ndarray:
    """Codes of f32 as bf16, denormals as zero, NaN as one code."""
    small = np.abs(numbers) < 2.0**-126
    codes = np.where(small, np.copysign(np.float32(0), numbers), numbers).astype(BF16).view(np.uint16)
    return np.where(np.isnan(numbers), 0x7FC0, codes)


def codes_of(result: Any) -> np.ndarray:
    """Codes of a result, NaN as one."""
    numbers = np.asarray(result)
    assert numbers.dtype == BF16
    return np.where(np.isnan(numbers.astype(np.float32)), 0x7FC0, numbers.view(np.uint16))


ARITHMETIC: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda x, y: x + y, lambda x, y: x + y),
    "difference": (lambda x, y: x - y, lambda x, y: x - y),
    "product": (lambda x, y: x * y, lambda x, y: x * y),
    "quotient": (lambda x, y: x / y, lambda x, y: x / y),
    "chosen": (lambda x, y: jnp.where(x > y, x * y, y), lambda x, y: np.where(x > y, x * y, y)),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("size", [None, 1003, 16, 1])
def test_arithmetic_rounds_once(name: str, size: int | None) -> None:
    ours, theirs = ARITHMETIC[name]
    x = ALL[IS_NORMAL][:size]
    y = np.random.default_rng(0).permutation(ALL[IS_NORMAL])[: len(x)]
    with np.errstate(all="ignore"):
        expected = rounded(theirs(x.astype(np.float32), y.astype(np.float32)))
    np.testing.assert_array_equal(codes_of(jit(ours)(x, y)), expected)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(lambda x: -x, np.negative), (abs, np.abs), (lambda x: x * 1, np.positive),
     (lambda x: jnp.maximum(x, 0), lambda x: np.maximum(x, np.float32(0)))],
    ids=["negative", "absolute", "same", "positive part"],
)  # fmt: skip
def test_every_number_but_denormals(ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    x = ALL[IS_NORMAL]
    found = codes_of(jit(ours)(x))
    with np.errstate(invalid="ignore"):
        expected = rounded(theirs(x.astype(np.float32)))
    zero = (found & 0x7FFF == 0) & (expected & 0x7FFF == 0)  # which zero a maximum gives is open
    np.testing.assert_array_equal(found[~zero], expected[~zero])


@pytest.mark.parametrize("size", [4096, 77, 1])
def test_conversions_keep_denormals(size: int) -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 32, size, np.uint32)
    bits[: size // 2] &= 0x807FFFFF  # denormals
    x = bits.view(np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.where(np.isnan(x), 0x7FC0, x.astype(BF16).view(np.uint16))
    np.testing.assert_array_equal(codes_of(jit(lambda x: x.astype(BF16))(x)), expected)
    x = ALL
    np.testing.assert_array_equal(np.asarray(jit(lambda x: -x)(x)).view(np.uint16)[~IS_NAN], (CODES ^ 0x8000)[~IS_NAN])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_])
def test_bytes_as_bf16_are_exact(dtype: type) -> None:
    x = np.arange(256).astype(dtype)
    np.testing.assert_array_equal(np.asarray(jit(lambda x: x.astype(BF16))(x)), x.astype(BF16))
    scaled = jit(lambda x, s: (x.astype(BF16) * s).astype(np.float32) + 1)
    expected = (x.astype(BF16) * BF16(0.3)).astype(np.float32) + 1
    np.testing.assert_array_equal(np.asarray(scaled(x, BF16(0.3))), expected)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.uint32])
def test_integers_round_once(dtype: type) -> None:
    x = np.random.default_rng(2).integers(0, 1 << 15, 1000).astype(dtype) << np.array(3).astype(dtype)
    x = x.astype(dtype)
    np.testing.assert_array_equal(np.asarray(jit(lambda x: x.astype(BF16))(x)), x.astype(np.float64).astype(BF16))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5, 7), (2, 3, 33)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(BF16)
    found = np.asarray(jit(lambda x: x * x + x)(x))
    once = (x.astype(np.float32) ** 2).astype(BF16).astype(np.float32)
    np.testing.assert_array_equal(found, (once + x.astype(np.float32)).astype(BF16))


def test_strided_arguments() -> None:
    x = np.random.default_rng(4).standard_normal((64, 66)).astype(BF16)
    found = np.asarray(jit(lambda x: x[::2, ::-1].T * 2)(x))
    np.testing.assert_array_equal(found, x[::2, ::-1].T * BF16(2))
