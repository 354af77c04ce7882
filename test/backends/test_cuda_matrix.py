"""Classes of kernels for GPUs x element types x shapes, empty and 0-d ones too, in the emulator of
PTX against the CPU. A few are tried by default, all with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp
from lamina import lax

_RANDOM = np.random.default_rng(0)
_FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
_F8 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_COMPLEX = (np.complex64, np.complex128)
_ORDERED = (np.bool_, *_INTEGERS, *_FLOATS)
_NUMBERS = (*_INTEGERS, *_FLOATS, *_COMPLEX)
_ALL = (np.bool_, *_NUMBERS, *_F8)

_SHAPES = {0: [()], 1: [(0,), (1,), (33,), (256,), (1100,)],
           2: [(0, 5), (5, 0), (1, 1), (3, 7), (33, 65), (70, 32)]}  # fmt: skip
_ANY, _LINES, _PLANES = (0, 1, 2), (1, 2), (2,)


def _gather(x):
    return x[jnp.arange(11) * 3 % max(x.shape[0], 1)] if x.shape[0] else x


def _scatter(x):
    places = jnp.arange(2 * x.shape[0]) * 5 % max(x.shape[0], 1)
    return jnp.zeros_like(x).at[places].add(jnp.concatenate([x, x]))


# name -> (function, element types, ranks, whether it has a value where there are no elements)
CLASSES: dict[str, tuple[Callable, tuple, tuple, bool]] = {
    "arithmetic": (lambda x: x * x - 3 * x, _NUMBERS, _ANY, True),
    "transcendental": (lambda x: jnp.tanh(x) + jnp.exp(-jnp.abs(x)), _FLOATS, _ANY, True),
    "comparison": (lambda x: jnp.where(x == x[..., ::-1], x, x[..., :1]), _ALL, _LINES, True),
    "conversion": (lambda x: -x.astype(np.float32), (np.bool_, *_INTEGERS, *_FLOATS, *_F8), _ANY, True),
    "narrowing": (lambda x: -x.astype(np.int8), (np.bool_, *_INTEGERS, *_FLOATS), _ANY, True),
    "rows": (lambda x: jnp.sum(x, axis=-1), _NUMBERS, _LINES, True),
    "rows_maximum": (lambda x: jnp.max(x, axis=-1), _ORDERED, _LINES, False),
    "columns": (lambda x: jnp.sum(x, axis=0), _NUMBERS, _PLANES, True),
    "columns_product": (lambda x: jnp.prod(x, axis=0), _NUMBERS, _PLANES, True),
    "everything": (lambda x: -jnp.sum(x), _NUMBERS, _ANY, True),
    "everything_all": (lambda x: jnp.all(x != 1), _ORDERED, _ANY, True),
    "argument": (lambda x: jnp.argmin(x, axis=-1), _ORDERED, _LINES, False),
    "softmax": (lambda x: lamina.nn.softmax(x, axis=-1), _FLOATS, _LINES, False),
    "transpose": (lambda x: jnp.concatenate([x.T, x.T], 1), _ALL, _PLANES, True),
    "padding": (lambda x: jnp.pad(x[..., ::2], 2), _ALL, _LINES, True),
    "gather": (_gather, _ALL, _LINES, False),
    "scatter": (_scatter, _NUMBERS, _LINES, False),
    "scan": (lambda x: lax.cumsum(x, axis=x.ndim - 1), _NUMBERS, _LINES, True),
    "scan_columns": (lambda x: lax.cummax(x, axis=0), _ORDERED[1:], _PLANES, True),
    "sort": (lambda x: jnp.sort(x, axis=-1), _ORDERED, _LINES, True),
    "places_of_sort": (lambda x: jnp.argsort(x, axis=0), _ORDERED, _LINES, True),
    "top": (lambda x: lax.top_k(x, 1), _ORDERED[1:], _LINES, False),
    "product": (lambda x: x @ x.T, _NUMBERS, _PLANES, True),
    "transform": (lambda x: jnp.fft.fft(x), (np.float32, *_COMPLEX), _LINES, False),
}

_CASES = [
    (name, dtype, shape)
    for name, (_, dtypes, ranks, _) in CLASSES.items()
    for dtype, shape in itertools.product(dtypes, [s for r in ranks for s in _SHAPES[r]])
    if CLASSES[name][3] or 0 not in shape
]
_TOGETHER = 12
_STEP = 1 if os.environ.get("LAMINA_TEST_EXAMPLES") else 47  # prime: goes through types and shapes
_TRIED = _CASES[::_STEP]


def _array(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    if dtype is np.bool_:
        return _RANDOM.random(shape) > 0.5
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return np.asarray(_RANDOM.integers(max(info.min, -90), min(info.max, 120), shape)).astype(dtype)
    value = np.asarray(_RANDOM.normal(size=shape))
    if np.issubdtype(dtype, np.complexfloating):
        value = value + 1j * _RANDOM.normal(size=shape)
    return value.astype(dtype)


def _tolerance(dtype: np.dtype) -> float:
    return {1: 0.25, 2: 2e-2, 4: 2e-4}.get(dtype.itemsize, 2e-4 if dtype == np.complex64 else 1e-10)


@pytest.mark.parametrize("start", range(0, len(_TRIED), _TOGETHER))
def test_emulated(start: int) -> None:
    cases = _TRIED[start : start + _TOGETHER]
    with lamina.enable_x64(True):
        arrays = [_array(dtype, shape) for _, dtype, shape in cases]

        def function(*arrays):
            return [CLASSES[name][0](x) for (name, *_), x in zip(cases, arrays, strict=True)]

        wanted = lamina.jit(function)(*arrays)
        found = iter(Program(function, *arrays).run())
    for case, value in zip(cases, wanted, strict=True):
        for want in map(np.asarray, lamina.tree.leaves(value)):
            got = next(found)
            assert got.dtype == want.dtype and got.shape == want.shape, case
            tolerance = _tolerance(want.dtype) if want.dtype.kind not in "biu" else 0
            wide = np.result_type(want, np.float32) if tolerance else want.dtype
            got, want = got.astype(wide), want.astype(wide)
            largest = np.abs(want).max(initial=0) if tolerance else 0
            np.testing.assert_allclose(
                got, want, rtol=tolerance, atol=tolerance * largest, err_msg=str(case)
            )
