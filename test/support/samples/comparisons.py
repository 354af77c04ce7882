"""Sample applications of primitives: comparisons, bits, choices and types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.samples.sample import b1, bf16, c64, f32, i8, i16, i32, row, u8, u32

# fmt: off

# ---- comparisons, bits --------------------------------------------------------------------------
_COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal}
_NANS = (f32(values=[1, np.nan, 3, 0, np.inf]), f32(values=[1, 1, np.nan, -0.0, np.inf]))
for _name, _ref in _COMPARE.items():
    row(_name, f32(3, 4), f32(3, 4), numpy=_ref)
    row(_name, f32(3, 4), f32(), numpy=_ref)
    row(_name, *_NANS, numpy=_ref, note="nan", value_only=True)
    row(_name, i8(9, low=-2, high=2), i8(9, low=-2, high=2), numpy=_ref, value_only=True)
    row(_name, u8(values=[0, 200, 255]), u8(values=[1, 100, 255]), numpy=_ref, value_only=True)
    row(_name, b1(9), b1(9), numpy=_ref, value_only=True)
    row(_name, bf16(5), bf16(5), value_only=True)
row("eq", c64(values=[1 + 1j, 2, 3j]), c64(values=[1 + 1j, 2 + 1j, 3j]), numpy=np.equal)
row("ne", c64(values=[1 + 1j, 2, 3j]), c64(values=[1 + 1j, 2 + 1j, 3j]), numpy=np.not_equal)
for _name, _ref in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    for _specs in ((i32(3, 4), i32(3, 4)), (u8(5), u8(5)), (b1(7), b1(7)), (i32(5), i32())):
        row(_name, *_specs, function="bitwise_" + _name, numpy=_ref)
for _spec in (i32(5), u8(5), b1(5), i8()):
    row("not", _spec, function="bitwise_not", numpy=np.bitwise_not)
_AMOUNTS = [0, 1, 5, 31, 32, 40, -1]
for _name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    row(_name, i32(values=[1, -1, -8, 7, -1, 3, -5]), i32(values=_AMOUNTS), value_only=True)
    row(_name, u8(values=[1, 255, 128, 7]), u8(values=[1, 7, 8, 200]), value_only=True)
    row(_name, i32(3, 4), i32(low=0, high=31))
for _spec in (i32(5), u8(5), i8(values=[-128, 0, 1, 127]), u32(3)):
    row("population_count", _spec)
    row("clz", _spec)

# ---- choice and types ---------------------------------------------------------------------------
row("select_n", b1(3, 4), f32(3, 4), f32(3, 4), numpy=lambda w, x, y: np.where(w, y, x))
row("select_n", b1(), f32(3, 4), f32(3, 4), numpy=lambda w, x, y: np.where(w, y, x))
row("select_n", i32(6, low=0, high=3), f32(6), f32(6), f32(6),
    numpy=lambda w, *xs: np.choose(w, xs))
row("select_n", i32(6, low=0, high=5), *[i8(6)] * 5, numpy=lambda w, *xs: np.choose(w, xs))
row("select_n", i32(low=0, high=1), f32(6), note="one case")
row("select_n", b1(5), c64(5), c64(5), function="select", numpy=np.where)
row("clamp", f32(values=-1.0), f32(3, 4), f32(values=1.0), jax_jvp=False,
    numpy=lambda lo, x, hi: np.clip(x, lo, hi))
row("clamp", f32(5, low=-1, high=-0.5), f32(5), f32(5, low=0.5, high=1),
    numpy=lambda lo, x, hi: np.clip(x, lo, hi))
row("clamp", i32(values=-10), i32(9), i32(values=10), numpy=lambda lo, x, hi: np.clip(x, lo, hi))
row("clamp", f32(values=[2.0, 0.0]), f32(values=[1.5, np.nan]), f32(values=[1.0, 1.0]),
    smooth=False, widen=False, note="low above high, nan")


def _to(dtype: str, function: str = "convert_element_type") -> Callable[..., Any]:
    return lambda lib, x: getattr(lib, function)(x, np.dtype(dtype))


_FLOATS = f32(values=[0.0, -1.7, 1.7, 300.0, -300.0, 3e9, np.nan, np.inf, -np.inf])
for _spec, _names in (
    (_FLOATS, "int8 uint8 int32 uint32 bool float16 bfloat16 complex64"),
    (i32(values=[-1, 0, 300, -2**31]), "int8 uint8 float32 bool bfloat16 complex64"),
    (u8(values=[0, 255, 128]), "int8 int32 float32 bool bfloat16"),
    (b1(4), "int8 uint8 float32 bfloat16 complex64"),
    (bf16(4), "int8 int32 float32 bool complex64"),
):
    for _name in _names.split():
        row("convert_element_type", _spec, call=_to(_name), note=f"to {_name}", value_only=True)
for _name in ("float16", "bfloat16", "complex64"):
    row("convert_element_type", f32(3), call=_to(_name), note=f"to {_name}", widen=False,
        smooth=False)
row("convert_element_type", c64(3), call=_to("float32"), widen=False, smooth=False)
for _spec, _name in ((f32(3, 4), "int32"), (f32(3), "uint8"), (u8(3, 4), "float32"),
                     (i16(3), "bfloat16"), (i16(3, 2), "uint32"), (f32(), "uint32")):
    row("bitcast_convert_type", _spec, call=_to(_name, "bitcast_convert_type"), note=f"to {_name}")
row("reduce_precision", f32(3, 4), smooth=False, exponent_bits=5, mantissa_bits=4)
