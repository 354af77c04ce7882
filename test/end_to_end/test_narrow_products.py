"""Products of bytes and of bf16 by every instruction that does them, on odd shapes and layouts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lamina
from lamina import lax
from lamina.backends import target as targets

_HOST = targets.Target.host()


def _without(vector_bits: int, *names: str) -> targets.Target:
    """This machine as one that lacks some features."""
    features = _HOST.features
    for name in names:
        features = features.replace(f"+{name}", f"-{name}")
    return replace(_HOST, features=features, vector_bits=min(vector_bits, _HOST.vector_bits))


_TARGETS = {
    "host": _HOST,
    "vnni": _without(512, "amx-int8", "amx-bf16"),
    "avx2": _without(256, "amx-int8", "amx-bf16", "avx512vnni"),
}
_NN, _NT, _TN = ((((1,), (0,)), ((), ())), (((1,), (1,)), ((), ())), (((0,), (0,)), ((), ())))
_BATCHED = (((2,), (1,)), ((0,), (0,)))
_TWO_SUMS = (((1, 2), (0, 1)), ((), ()))
_S, _U, _BF16 = np.int8, np.uint8, ml_dtypes.bfloat16

_CASES: dict[str, tuple[tuple[int, ...], Any, tuple[int, ...], Any, Any, Any]] = {
    "ss": ((37, 75), _S, (75, 41), _S, _NN, np.int32),
    "ss turned": ((37, 75), _S, (41, 75), _S, _NT, np.int32),
    "uu turned": ((33, 64), _U, (40, 64), _U, _NT, np.int32),
    "us": ((48, 64), _U, (64, 32), _S, _NN, np.int32),
    "su": ((70, 37), _S, (70, 35), _U, _TN, np.int32),
    "batched": ((3, 20, 66), _S, (3, 66, 33), _S, _BATCHED, np.int32),
    "two sums": ((24, 6, 9), _S, (6, 9, 50), _S, _TWO_SUMS, np.int32),
    "wrapping": ((40, 64), _S, (64, 32), _S, _NN, np.int8),
    # Tasks that pack their own columns, the last of which has fewer.
    "wide": ((70, 130), _S, (130, 500), _S, _NN, np.int32),
    "wide, turned": ((50, 67), _S, (500, 67), _U, _NT, np.int32),
    "wide, batched": ((4, 40, 66), _U, (4, 66, 100), _S, _BATCHED, np.int32),
    # All columns of a task, less than two vectors.
    "batched, few columns": ((9, 20, 70), _S, (9, 70, 24), _S, _BATCHED, np.int32),
    "bf16, batched": ((9, 20, 70), _BF16, (9, 70, 24), _BF16, _BATCHED, np.float32),
    # So many terms that a task packs parts of them, the last of which is smaller, and of fewer columns.
    "parts": ((10, 1500), _S, (1500, 1040), _S, _NN, np.int32),
    "parts, uu": ((13, 1100), _U, (1100, 1100), _U, _NN, np.int32),
    "parts, batched": ((3, 9, 1100), _S, (3, 1100, 400), _S, _BATCHED, np.int32),
    "bf16, parts": ((33, 1100), _BF16, (1100, 1100), _BF16, _NN, np.float32),
    # Few rows by a factor whose terms lie next to each other: they are the columns of tiles.
    "few rows, us": ((20, 128), _U, (100, 128), _S, _NT, np.int32),
    "few rows, su": ((3, 64), _S, (70, 64), _U, _NT, np.int32),
    "few rows, wrapping": ((17, 192), _S, (513, 192), _S, _NT, np.int8),
    "few rows, batched": ((3, 9, 64), _S, (3, 130, 64), _S, (((2,), (2,)), ((0,), (0,))), np.int32),
    "few rows, two sums": ((24, 4, 32), _S, (90, 4, 32), _U, (((1, 2), (1, 2)), ((), ())), np.int32),
    "bf16, few rows": ((33, 96), _BF16, (130, 96), _BF16, _NT, np.float32),
    "bf16": ((37, 75), _BF16, (75, 41), _BF16, _NN, np.float32),
}


def _operand(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


_INPUTS = {
    name: (_operand(a, a_type, 1), _operand(b, b_type, 2))
    for name, (a, a_type, b, b_type, _, _) in _CASES.items()
}


def _expected(name: str) -> np.ndarray:
    dimensions, dtype = _CASES[name][4:]
    wide = np.int64 if np.dtype(dtype).kind == "i" else np.float64
    a, b = (x.astype(wide) for x in _INPUTS[name])
    ((sums_a, sums_b), (batch, _)) = dimensions
    if batch:
        return (a @ (b if sums_b == (1,) else b.swapaxes(1, 2))).astype(dtype)
    return np.tensordot(a, b, (sums_a, sums_b)).astype(dtype)


@pytest.mark.parametrize("target", _TARGETS)
def test_products(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_host", lambda: _TARGETS[target])

    def products(inputs: Any) -> dict[str, Any]:
        found = {
            name: lax.dot_general(a, b, _CASES[name][4], preferred_element_type=_CASES[name][5])
            for name, (a, b) in inputs.items()
        }
        scale = np.linspace(0.5, 2, 32, dtype=np.float32)
        us = lax.dot_general(*inputs["us"], _NN, preferred_element_type=np.int32)
        deep = lax.dot_general(*inputs["parts"], _NN, preferred_element_type=np.int32)
        return found | {
            "scaled": lamina.nn.relu(us.astype(np.float32) * scale),
            "deep, scaled": lamina.nn.relu(deep.astype(np.float32) * 0.25),
        }

    found = lamina.jit(products)(_INPUTS)
    for name in _CASES:
        if name.startswith("bf16"):
            np.testing.assert_allclose(found[name], _expected(name), rtol=1e-5, atol=2e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], _expected(name), err_msg=name)
    scale = np.linspace(0.5, 2, 32, dtype=np.float32)
    scaled = np.maximum(_expected("us").astype(np.float32) * scale, 0)
    np.testing.assert_array_equal(found["scaled"], scaled)
    deep = np.maximum(_expected("parts").astype(np.float32) * 0.25, 0)
    np.testing.assert_array_equal(found["deep, scaled"], deep)
