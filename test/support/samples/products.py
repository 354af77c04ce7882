"""Sample applications of primitives: products and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.samples.sample import bf16, c64, f16, f32, i8, i32, row

# fmt: off

# ---- products -----------------------------------------------------------------------------------


def _dot(contracting: Any, batch: Any = ((), ()), **params: Any) -> Callable[..., Any]:
    return lambda lib, x, y: lib.dot_general(x, y, (contracting, batch), **params)


row("dot_general", f32(3, 4), f32(4, 5), call=_dot(((1,), (0,))), numpy=np.matmul, rtol=1e-4)
row("dot_general", f32(4), f32(4), call=_dot(((0,), (0,))), numpy=np.dot, rtol=1e-4)
row("dot_general", f32(3), f32(4), call=_dot(((), ())), numpy=np.multiply.outer)
row("dot_general", f32(2, 3, 4), f32(2, 4, 5), call=_dot(((2,), (1,)), ((0,), (0,))),
    numpy=np.matmul, rtol=1e-4)
row("dot_general", f32(2, 3, 4), f32(5, 4, 3, 2), call=_dot(((0, 2), (3, 1)), ((1,), (2,))),
    rtol=1e-4)
row("dot_general", f32(3, 0), f32(0, 5), call=_dot(((1,), (0,))), numpy=np.matmul)
row("dot_general", i32(3, 4), i32(4, 5), call=_dot(((1,), (0,))), numpy=np.matmul)
row("dot_general", i8(3, 4), i8(4, 5), call=_dot(((1,), (0,)), preferred_element_type=np.int32),
    numpy=lambda x, y: x.astype(np.int32) @ y.astype(np.int32))
row("dot_general", bf16(3, 4), bf16(4, 5),
    call=_dot(((1,), (0,)), preferred_element_type=np.float32), widen=False, smooth=False,
    rtol=1e-2)
row("dot_general", f32(3, 4), f32(4, 5), call=_dot(((1,), (0,)), precision="highest"),
    numpy=np.matmul, rtol=1e-4)
row("dot_general", c64(3, 4), c64(4, 5), call=_dot(((1,), (0,))), numpy=np.matmul, rtol=1e-4)
row("dot_general", f16(3, 4), f16(4, 5), call=_dot(((1,), (0,))), widen=False, smooth=False,
    rtol=2e-2)
row("dot_general", f32(2, 3, 4), f32(2, 4, 5), function="batch_matmul", numpy=np.matmul, rtol=1e-4)
row("dot_general", f32(3, 4), f32(4), function="dot", numpy=np.dot, rtol=1e-4)

# ---- convolutions -------------------------------------------------------------------------------
_NHWC = ("NHWC", "HWIO", "NHWC")
for _note, _lhs, _rhs, _params in (
    ("plain", (2, 3, 6, 5), (4, 3, 3, 2), dict(window_strides=(1, 1), padding="VALID")),
    ("strided", (2, 3, 6, 5), (4, 3, 3, 3), dict(window_strides=(2, 3), padding="SAME")),
    ("same lower", (1, 2, 5), (3, 2, 2), dict(window_strides=(1,), padding="SAME_LOWER")),
    ("nhwc", (2, 6, 5, 3), (3, 2, 3, 4),
     dict(window_strides=(1, 2), padding=((1, 0), (2, -1)), dimension_numbers=_NHWC)),
    ("dilated", (2, 2, 6), (3, 2, 3),
     dict(window_strides=(2,), padding=((2, 1),), lhs_dilation=(3,), rhs_dilation=(2,))),
    ("feature groups", (2, 4, 5), (6, 2, 3),
     dict(window_strides=(2,), padding="SAME", feature_group_count=2)),
    ("depthwise", (2, 3, 5), (3, 1, 3),
     dict(window_strides=(1,), padding="SAME", feature_group_count=3)),
    ("batch groups", (4, 3, 5), (6, 3, 3),
     dict(window_strides=(1,), padding="VALID", batch_group_count=2)),
    ("no space", (2, 3), (4, 3), dict(window_strides=(), padding="VALID")),
):
    row("conv_general_dilated", f32(*_lhs), f32(*_rhs), rtol=1e-4, note=_note, **_params)
row("conv_general_dilated", f32(2, 5, 5, 3), f32(3, 3, 3, 2), function="conv_transpose",
    strides=(2, 2), padding="SAME", rtol=1e-4, note="transpose")
row("conv_general_dilated", f32(2, 5, 3), f32(3, 2, 3), function="conv_transpose", strides=(2,),
    padding="VALID", transpose_kernel=True, rtol=1e-4, note="transpose kernel")
row("conv_general_dilated", i32(2, 3, 5), i32(4, 3, 3), window_strides=(1,), padding="SAME",
    value_only=True)
row("conv_general_dilated", bf16(2, 3, 5), bf16(4, 3, 3), window_strides=(1,), padding="SAME",
    preferred_element_type=np.float32, rtol=2e-2, value_only=True)
