"""Convolutions in their variants against JAX: values and both gradients, many to a program."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401  (names bfloat16 to NumPy)
import numpy as np
import pytest
from support.oracle.judge import check_all

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
RNG = np.random.default_rng(5)
# name: shapes, strides, padding, layout, the rest
VARIANTS: dict[str, tuple[Any, ...]] = {
    "nhwc": ((2, 5, 6, 3), (3, 3, 3, 5), (1, 1), "SAME", NHWC, {}),
    "nchw": ((2, 3, 5, 6), (5, 3, 3, 3), (2, 1), "SAME", NCHW, {}),
    "mixed": ((6, 5, 4, 2), (5, 3, 3, 4), (1, 1), "SAME", ("HWCN", "OHWI", "CWNH"), {}),
    "groups": ((2, 5, 6, 6), (3, 3, 2, 9), (1, 1), "VALID", NHWC, {"feature_group_count": 3}),
    "by channel": ((2, 5, 6, 4), (3, 3, 1, 8), (1, 2), "SAME", NHWC, {"feature_group_count": 4}),
    "batch groups": ((6, 5, 6, 3), (3, 3, 3, 4), (1, 1), "SAME", NHWC, {"batch_group_count": 2}),
    "dilated": ((2, 7, 6, 3), (2, 3, 3, 4), (2, 1), ((1, 2), (3, 0)), NHWC,
        {"lhs_dilation": (2, 3), "rhs_dilation": (1, 2)}),
    "cut": ((2, 7, 6, 3), (2, 3, 3, 4), (2, 1), ((-1, -2), (-1, 0)), NHWC, {}),
    "line": ((2, 9, 3), (2, 3, 4), (2,), "SAME", ("NHC", "HIO", "NHC"), {}),
    "volume": ((1, 3, 4, 3, 2), (2, 2, 3, 2, 3), (1, 2, 1), "SAME", ("NDHWC", "DHWIO", "NDHWC"), {}),
    "no space": ((2, 3), (4, 3), (), (), None, {}),
    "empty batch": ((0, 5, 6, 3), (3, 3, 3, 5), (1, 1), "SAME", NHWC, {}),
    "no features": ((2, 5, 6, 0), (3, 3, 0, 5), (1, 1), "SAME", NHWC, {}),
    "ones": ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), "SAME", NHWC, {}),
    "no window fits": ((1, 2, 2, 1), (3, 3, 1, 1), (1, 1), "VALID", NHWC, {}),
    "spread": ((2, 5, 4, 8), (4, 3, 8, 6), (1, 1), ((2, 2), (1, 3)), NHWC, {"lhs_dilation": (2, 2)}),
    "far spread": ((2, 3, 4, 3), (2, 1, 3, 5), (1, 1), ((1, 0), (-1, 4)), NHWC,
        {"lhs_dilation": (3, 4)}),
    "spread groups": ((2, 4, 6, 4), (3, 3, 2, 6), (1, 1), ((0, 0), (1, 0)), NHWC,
        {"lhs_dilation": (1, 3), "feature_group_count": 2}),
    "far steps": ((2, 17, 16, 3), (3, 4, 3, 16), (4, 3), "SAME", NHWC, {}),
    "points in steps": ((2, 7, 8, 4), (1, 1, 4, 5), (2, 3), "VALID", NHWC, {}),
    "channels first": ((2, 16, 9, 10), (24, 16, 3, 3), (1, 1), "SAME", NCHW, {}),
    "channels first, steps": ((2, 16, 18, 17), (24, 16, 3, 3), (2, 2), "SAME", NCHW, {}),
    "odd": ((1, 6, 5, 7), (3, 1, 7, 37), (1, 1), "SAME", ("NHWC", "HWIO", "NCHW"), {}),
}  # fmt: skip
FEW = ["groups", "by channel", "dilated", "no space"]


def _data(dtype: str, names: list[str]) -> dict[str, tuple[Any, Any]]:
    def draw(shape: tuple[int, ...]) -> Any:
        if np.dtype(dtype).kind in "iu":
            return RNG.integers(0, 9, shape).astype(dtype)
        x = RNG.standard_normal(shape)
        return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)

    return {name: (draw(VARIANTS[name][0]), draw(VARIANTS[name][1])) for name in names}


def _apply(m: Any, name: str, result: Any) -> Any:
    _, _, strides, padding, layout, rest = VARIANTS[name]
    return lambda x, w: m.lax.conv_general_dilated(
        x, w, strides, padding, dimension_numbers=layout, preferred_element_type=result, **rest
    )


@pytest.mark.parametrize(
    ("dtype", "result", "names", "tolerance"),
    [
        ("float32", None, [*VARIANTS], 2e-5),
        ("complex64", None, FEW, 2e-5),
        ("bfloat16", None, ["by channel", "no space", "channels first", "far steps"], 0.05),
        ("float16", None, ["channels first", "spread"], 0.01),
        ("bfloat16", "float32", ["groups", "no space"], 0.05),
        ("float16", "float32", ["dilated"], 5e-3),
    ],
)
def test_values_and_gradients(dtype, result, names, tolerance):
    def program(m: Any, data: dict[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, (x, w) in data.items():
            y, pull = m.vjp(_apply(m, name, result), x, w)
            spread = m.np.cos(m.np.arange(y.size)).reshape(y.shape)
            out[name], out[f"{name}: gradients"] = y, pull(spread.astype(y.dtype))
        return out

    check_all(program, _data(dtype, names), jit=True, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize(("dtype", "result"), [("int32", None), ("int8", "int32"), ("uint8", None),
    ("uint8", "uint32"), ("bool", None), ("bool", "int32"), ("bool", "float16")])  # fmt: skip
def test_integers(dtype, result):
    names = ["by channel", "dilated", "no space", "no window fits", "batch groups"]
    check_all(
        lambda m, data: {k: _apply(m, k, result)(*v) for k, v in data.items()},
        _data(dtype, names), jit=True,
    )  # fmt: skip
