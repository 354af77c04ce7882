"""Arrays larger than a vector, a tile and a block, of every element type, against NumPy.

Kernels turn tiles, shuffle vectors and cut rows only from some size on; what they do there depends
on how wide an element is.
"""

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

SHAPE = (130, 70)
TYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16,
         ml_dtypes.bfloat16, np.float32, np.complex64, ml_dtypes.float8_e4m3fn, ml_dtypes.int4,
         ml_dtypes.uint2]  # fmt: skip


def _numbers(dtype: type) -> np.ndarray:
    numbers = np.random.default_rng(7).integers(-9, 10, SHAPE)
    if np.issubdtype(dtype, np.complexfloating):
        return (numbers + 1j * numbers[::-1]).astype(dtype)
    return numbers.astype(dtype)


def _moved(m, x):
    return {
        "turned": m.transpose(x),
        "turned and compared": m.transpose(x) == m.transpose(x[:1, :1]),
        "turned within": m.swapaxes(x.reshape(10, 13, 70), 1, 2),
        "from behind": x[::-1, ::-1],
        "rolled": m.roll(x, (5, -7), (0, 1)),
        "every other": x[1::2, ::3],
        "side by side": m.concatenate([x[:, :33], x, x[:, 3:]], 1),
        "padded": m.pad(x, ((3, 5), (7, 2))),
        "below": m.tril(x, 3),
        "picked": m.where(x != 0, x, m.roll(x, 1)),
    }


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_moved(dtype):
    x = _numbers(dtype)
    ours = lamina.jit(lambda x: _moved(jnp, x))(x)
    for name, expected in _moved(np, x).items():
        np.testing.assert_array_equal(np.asarray(ours[name]), expected, name)


@pytest.mark.parametrize(
    "dtype", [t for t in TYPES if t not in (np.bool_, np.complex64)], ids=lambda t: np.dtype(t).name
)  # fmt: skip
def test_ordered(dtype):
    x = _numbers(dtype)
    ours = lamina.jit(
        lambda x: {
            "sort": [jnp.sort(x, axis) for axis in (0, 1)],
            "largest": [x.max(axis) for axis in (0, 1)],
            "where": [x.argmin(axis) for axis in (0, 1)],
            "among": [x.max(0, where=x > 1, initial=0), x.min(1, where=x > 1, initial=1)],
            "so far": [lax.cummax(x, 0), lax.cummin(x, 1)],
        }
    )(x)
    wide = x.astype(np.float32)
    expected = {
        "sort": [np.sort(wide, axis) for axis in (0, 1)],
        "largest": [wide.max(axis) for axis in (0, 1)],
        "where": [wide.argmin(axis) for axis in (0, 1)],
        "among": [
            wide.max(0, where=wide > 1, initial=0), wide.min(1, where=wide > 1, initial=1),
        ],
        "so far": [np.maximum.accumulate(wide, 0), np.minimum.accumulate(wide, 1)],
    }
    for name, pair in expected.items():
        for one, other in zip(ours[name], pair, strict=True):
            np.testing.assert_array_equal(np.asarray(one).astype(np.float32), other, name)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=lambda t: np.dtype(t).name)
def test_reductions_round_once(dtype):
    """Sums that round at each step stay at 256 (bf16) or 2048 (f16) ones; so did gradients of biases."""
    ones = jnp.ones((5000, 3), dtype)
    sums = lamina.jit(lambda x: lax.reduce(x, x.dtype.type(0), lax.add, (0,)))(ones)
    np.testing.assert_array_equal(np.asarray(sums, np.float32), np.float32(dtype(5000)))
    windows = lamina.jit(
        lambda x: lax.reduce_window(x, x.dtype.type(0), lax.add, (5000, 1), (1, 1), "VALID")
    )(ones)
    np.testing.assert_array_equal(np.asarray(windows, np.float32), np.float32(dtype(5000)))
    of_bias = lamina.grad(lambda b: jnp.sum((ones + b).astype(np.float32)))(jnp.ones(3, dtype))
    np.testing.assert_array_equal(np.asarray(of_bias, np.float32), np.float32(dtype(5000)))
    product = lamina.jit(lambda x: lax.reduce(x, x.dtype.type(1), lax.mul, (0,)))(ones[:, :1] * 1.125)
    assert np.isinf(np.asarray(product, np.float32)).all()
    with_nan = ones.at[7, 1].set(np.nan)
    largest = np.asarray(lamina.jit(lambda x: x.max(0))(with_nan), np.float32)
    np.testing.assert_array_equal(largest, [1, np.nan, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint32],
                         ids=lambda t: np.dtype(t).name)  # fmt: skip
@pytest.mark.parametrize("size", [1, 7, 16, 1000])
def test_first_extremes_of_rows(dtype, size):
    x = np.random.default_rng(size).integers(-3, 4, (9, size)).astype(dtype)
    least, most = (-np.inf, np.inf) if x.dtype.kind != "i" and x.dtype.kind != "u" else (
        np.iinfo(dtype).min, np.iinfo(dtype).max)  # fmt: skip
    x[0], x[1] = least, most
    if x.dtype.kind not in "iu":
        x[2, size // 2 :] = np.nan
        x[3, -1] = np.nan
        x[4] = -0.0
        x[4, size // 3] = 0.0
    if dtype is np.int8:
        truths = x > 2
        where = lamina.jit(lambda x: [x.argmax(1), x.argmin(1)])(truths)
        np.testing.assert_array_equal(where[0], truths.argmax(1))
        np.testing.assert_array_equal(where[1], truths.argmin(1))
    wide = x.astype(np.float64)
    found = lamina.jit(lambda x: [x.argmax(1), x.argmin(1), x.max(1), x[5].argmax()])(x)
    for got, expected in zip(
        found, (wide.argmax(1), wide.argmin(1), wide.max(1), wide[5].argmax()), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(got, np.float64), expected)
