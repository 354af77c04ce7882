"""Sample applications of primitives: reductions, by named operations and by any function."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.samples.sample import b1, bf16, c64, f16, f32, i8, i32, row, u8, u32

# fmt: off

# ---- reductions ---------------------------------------------------------------------------------
for _name, _ref in {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max,
    "reduce_min": np.min}.items():
    row(_name, f32(2, 3, 4), numpy=lambda x, f=_ref: f(x, (0, 2)), rtol=2e-5, axes=(0, 2))
    row(_name, f32(2, 3), numpy=lambda x, f=_ref: f(x, 1), rtol=2e-5, axes=(1,))
    row(_name, f32(2, 3), numpy=lambda x: x, axes=())
    row(_name, f32(0, 3), smooth=False, axes=(0,), value_only=True)
    row(_name, i8(9), note="i8", axes=(0,), value_only=True)
    row(_name, u8(9), note="u8", axes=(0,), value_only=True)
    row(_name, bf16(9), smooth=False, rtol=5e-2, axes=(0,), value_only=True)
    row(_name, f16(9), smooth=False, rtol=1e-2, axes=(0,), value_only=True)
    row(_name, f32(values=[1, np.nan, 3]), widen=False, smooth=False, note="nan", axes=(0,))
for _name in ("reduce_sum", "reduce_prod"):
    row(_name, c64(4, 2), rtol=1e-4, axes=(0,))
row("reduce_prod", f32(values=[[0, 0, 1], [2, 0, 3], [3, 1, 2]]), note="zeros", axes=(0,))
row("reduce_max", f32(values=[1, 3, 3, 2]), smooth=False, note="ties", axes=(0,))
row("reduce_max", b1(4), axes=(0,))
for _name, _ref in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    for _spec in (b1(3, 4), i32(3, 4), u8(3, 4)):
        row("reduce_" + _name, _spec, numpy=lambda x, f=_ref: f.reduce(x, 1),
            axes=(1,))
for _name, _ref in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for _spec in (f32(3, 7), i32(3, 7, low=-3, high=3), u8(3, 7, low=0, high=4), b1(3, 7),
        f32(values=[[1, np.nan, np.nan, 2], [np.inf, 1, np.inf, 0], [-np.inf, -np.inf, 1, 1]])):
        row(_name, _spec, numpy=lambda x, f=_ref: f(x, 1).astype(np.int32), axis=1,
            index_dtype=np.int32)
    row(_name, bf16(9), axis=0, index_dtype=np.int32, value_only=True)
for _name in ("cumsum", "cumprod", "cummax", "cummin"):
    for _n in (1, 2, 3, 8, 13):
        row(_name, f32(_n, 2), rtol=1e-4, axis=0)
    row(_name, f32(2, 7), rtol=1e-4, axis=1, reverse=True)
    row(_name, f32(2, 100, 3, low=0.8, high=1.2), rtol=1e-4, axis=1, value_only=True)
    row(_name, i32(2100, low=-3, high=3), axis=0, reverse=True, value_only=True)
    row(_name, f32(0, 2), axis=0)
    row(_name, i8(9), axis=0, value_only=True)
    row(_name, bf16(9), smooth=False, rtol=5e-2, axis=0, value_only=True)
for _n in (1, 3, 13, 40):  # long ones are a recurrence
    row("cumlogsumexp", f32(_n, 2), rtol=1e-5, numpy=np.logaddexp.accumulate, axis=0)
row("cumlogsumexp", f32(2, 3, 37), rtol=1e-5, axis=2, reverse=True)
row("cumlogsumexp", f32(0, 2), axis=0)
for _spec in (bf16(40), f16(40)):
    row("cumlogsumexp", _spec, smooth=False, rtol=1e-1, axis=0, value_only=True)

# ---- reductions by any function ----------------------------------------------------------------
def _join(x: Any, y: Any) -> Any:
    return x + y + x * y * 0.25


row("reduce", f32(3, 4), call=lambda lib, x: lib.reduce(x, x.dtype.type(0), _join, (0,)), rtol=1e-5)
row("reduce", i32(3, 4), call=lambda lib, x: lib.reduce(
    x, np.int32(0), lambda a, b: lib.bitwise_xor(a, b) + np.int32(0), (0, 1)))  # fmt: skip
row("reduce_window", f32(4, 5), rtol=1e-5, call=lambda lib, x: lib.reduce_window(
    x, x.dtype.type(0), _join, (2, 2), (1, 2), "SAME"))  # fmt: skip
row("rng_bit_generator", u32(values=[1, 2, 3, 4]), value_only=True,
    call=lambda lib, key: tuple(lib.rng_bit_generator(key, (5,))))  # fmt: skip
# A batch is drawn under the first key: its bits are none of the examples' (test_rbg_keys has them).
row("rng_bit_generator", u32(values=[1, 2, 3, 4]), value_only=True, vmap=True,
    call=lambda lib, key: lib.ge(lib.rng_bit_generator(key, (5,))[1], np.uint32(0)))  # fmt: skip
row("rng_uniform", f32(), f32(low=3, high=4), value_only=True, vmap=True,
    call=lambda lib, a, b: lib.ge(lib.rng_uniform(a, b, (5,)), lib.broadcast(a, (5,))))  # fmt: skip
