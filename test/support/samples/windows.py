"""Sample applications of primitives: windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from support.samples.sample import f32, i32, row

# fmt: off

# ---- windows ------------------------------------------------------------------------------------
def _pool(name: str, init: float, **params: Any) -> Callable[..., Any]:
    return lambda lib, x: lib.reduce_window(x, x.dtype.type(init), getattr(lib, name), **params)


_WINDOWS = (
    dict(window_dimensions=(2, 3), window_strides=(1, 1), padding="VALID"),
    dict(window_dimensions=(2, 2), window_strides=(2, 2), padding="SAME"),
    dict(window_dimensions=(3, 2), window_strides=(2, 1), padding=((1, 2), (0, 1))),
    dict(window_dimensions=(2, 2), window_strides=(1, 2), padding=((1, 1), (1, 1)),
         base_dilation=(2, 1), window_dilation=(1, 2)),
)
for _i, _params in enumerate(_WINDOWS):
    row("reduce_window_sum", f32(5, 6), call=_pool("add", 0, **_params), note=f"windows {_i}",
        rtol=1e-4)
    row("reduce_window_max", f32(5, 6), call=_pool("max", -np.inf, **_params), note=f"windows {_i}")
    row("reduce_window_min", f32(5, 6), call=_pool("min", np.inf, **_params), note=f"windows {_i}")
row("reduce_window_sum", i32(5, 6), call=_pool("add", 3, **_WINDOWS[1]), note="init",
    value_only=True)
row("reduce_window_max", i32(5, 6), call=_pool("max", 0, **_WINDOWS[1]), note="init",
    value_only=True)


def _chosen(name: str) -> Callable[..., Any]:
    def call(lib: Any, x: Any) -> Any:
        if lib is lax:
            return getattr(lax, f"window_arg{name}_p").bind(
                x, window_dimensions=(2,), window_strides=(2,), padding=((0, 0),),
                base_dilation=(1,), window_dilation=(1,),
            )
        pairs = x.reshape(-1, 2)
        return (getattr(np, "arg" + name)(pairs, 1) + 2 * np.arange(len(pairs))).astype(np.int32)

    return call


row("window_argmax", f32(8), call=_chosen("max"))
row("window_argmin", f32(8), call=_chosen("min"))
