"""Sample applications of primitives: gather and scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.samples.sample import b1, c64, f32, i32, row, u8

# fmt: off

# ---- gather and scatter -------------------------------------------------------------------------
_ROWS, _PUT = ((1,), (0,), (0,)), ((1,), (0,), (0,))  # whole rows at indices of one component


def _gather(numbers: Any, sizes: tuple[int, ...], mode: str, **params: Any) -> Callable[..., Any]:
    return lambda lib, x, i: lib.gather(
        x, i, lib.GatherDimensionNumbers(*numbers), sizes, mode=mode, **params
    )


def _scatter(name: str, numbers: Any, **params: Any) -> Callable[..., Any]:
    return lambda lib, x, i, u: getattr(lib, name)(
        x, i, u, lib.ScatterDimensionNumbers(*numbers), **params
    )


_OUT = i32(4, 1, low=-2, high=8)
for _mode in ("clip", "fill"):
    row("gather", f32(5, 3), _OUT, call=_gather(_ROWS, (1, 3), _mode), note=_mode)
    row("gather", i32(5, 3), _OUT, call=_gather(_ROWS, (1, 3), _mode), note=_mode)
row("gather", u8(5, 3), _OUT, call=_gather(_ROWS, (1, 3), "fill"))
row("gather", b1(5, 3), _OUT, call=_gather(_ROWS, (1, 3), "fill"))
row("gather", f32(5, 3), u8(4, 1, low=0, high=9), note="u8 index",
    call=_gather(_ROWS, (1, 3), "fill", fill_value=-1.5))
row("gather", f32(5, 3), i32(2, 2, 1, low=0, high=5), note="in bounds",
    call=_gather(((2,), (0,), (0,)), (1, 3), "promise_in_bounds"))
row("gather", f32(4, 5), i32(3, 2, low=-1, high=5), note="windows",
    call=_gather(((1, 2), (), (1, 0)), (2, 3), "clip"))
row("gather", f32(3, 5), i32(3, 4, 1, low=-1, high=6), note="batched",
    call=_gather(((), (1,), (1,), (0,), (0,)), (1, 1), "fill"))
row("gather", f32(5, 3), i32(1, low=0, high=5), note="one row",
    call=_gather(((0,), (0,), (0,)), (1, 3), "clip"))

_ONCE, _TWICE = i32(values=[[3], [0], [9], [1]]), i32(values=[[0], [2], [-1], [9]])
for _name in ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
    row(_name, f32(5, 3), _ONCE, f32(4, 3), note="drop", rtol=1e-4,
        call=_scatter(_name, _PUT, unique_indices=True))
    row(_name, f32(4, 5), i32(values=[[0, 0], [2, 1]]), f32(2, 2, 3), note="windows", rtol=1e-4,
        call=_scatter(_name, ((1, 2), (), (0, 1)), mode="clip", unique_indices=True))
    row(_name, f32(2, 5), i32(values=[[[1], [0], [7]], [[3], [2], [1]]]), f32(2, 3), note="batched",
        call=_scatter(_name, ((), (1,), (1,), (0,), (0,)), unique_indices=True), rtol=1e-4)
row("scatter", f32(5, 3), _OUT, f32(4, 3), call=_scatter("scatter", _PUT), note="repeated")
row("scatter", i32(5, 3), _TWICE, i32(values=[[1] * 3, [2] * 3, [1] * 3, [4] * 3]), note="clip",
    call=_scatter("scatter", _PUT, mode="clip"))
for _name in ("scatter_add", "scatter_min", "scatter_max", "scatter_sub"):
    _p = "scatter_add" if _name == "scatter_sub" else _name
    row(_p, f32(5, 3), _OUT, f32(4, 3), call=_scatter(_name, _PUT), rtol=1e-4, note=_name)
    row(_p, f32(5, 3), _ONCE, f32(4, 3), rtol=1e-4, note=_name + " clip",
        call=_scatter(_name, _PUT, mode="clip", unique_indices=True), jax_jvp=_p == "scatter_add")
    row(_p, i32(5, 3), _OUT, i32(4, 3), call=_scatter(_name, _PUT, mode="clip"), note=_name)
row("scatter_mul", f32(5, 3), _OUT, f32(4, 3), rtol=1e-4, note="repeated",
    call=lambda lib, x, i, u: _scatter("scatter_mul", _PUT)(lib, x, i, lib.stop_gradient(u)))
row("scatter_add", c64(5, 3), _OUT, c64(4, 3), call=_scatter("scatter_add", _PUT), rtol=1e-4)
