"""Derivatives of scatters: of those that set, add, multiply and take the least or greatest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, Zero, get_aval, is_undefined_primal
from lamina.lax.checks import scalar_like
from lamina.lax.indexing import GatherDimensionNumbers, ScatterDimensionNumbers


def window_sizes(operand: Sequence[int], updates: Sequence[int],
                 numbers: ScatterDimensionNumbers) -> tuple[int, ...]:  # fmt: skip
    """The size of a window along each axis of the operand."""
    absent = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter([updates[d] for d in numbers.update_window_dims])
    return tuple(1 if d in absent else next(sizes) for d in range(len(operand)))


def _gather_windows(x: Any, indices: Any, updates: Any, fill_value: Any,
                    params: dict[str, Any]) -> Any:  # fmt: skip
    """The elements of x that a scatter of `updates` with these parameters would meet."""
    numbers = params["dimension_numbers"]
    shape = updates.aval.shape if is_undefined_primal(updates) else np.shape(updates)
    return lax.gather(
        x, indices, GatherDimensionNumbers(*numbers), window_sizes(x.shape, shape, numbers),
        indices_are_sorted=params["indices_are_sorted"], unique_indices=params["unique_indices"],
        mode=params["mode"], fill_value=fill_value,
    )  # fmt: skip


def _zeros(t: Any) -> Any:
    return lax.full(t.aval.shape, 0, t.aval.dtype) if type(t) is Zero else t


def add_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    x, indices, updates = primals
    g, _, g_updates = tangents
    out = lax.scatter_add_p.bind(x, indices, updates, **params)
    if type(g) is Zero and type(g_updates) is Zero:
        return out, Zero(get_aval(out).to_tangent_aval())
    if type(g_updates) is Zero:
        return out, g
    return out, lax.scatter_add_p.bind(_zeros(g), indices, g_updates, **params)


def add_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    return [
        ct if is_undefined_primal(x) else None,
        None,
        _gather_windows(ct, indices, updates, 0, params) if is_undefined_primal(updates) else None,
    ]


def set_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    x, indices, updates = primals
    g, _, g_updates = tangents
    if type(g) is Zero and type(g_updates) is Zero:
        out = lax.scatter_p.bind(x, indices, updates, **params)
        return out, Zero(get_aval(out).to_tangent_aval())
    g, g_updates = _zeros(g), _zeros(g_updates)
    if params["unique_indices"]:
        return tuple(  # type: ignore[return-value]
            lax.scatter_p.bind(a, indices, b, **params) for a, b in ((x, updates), (g, g_updates))
        )
    # Which of several equal indices wins is not said: number the updates, scatter the numbers, and
    # let only the winners' tangents pass.
    windows = params["dimension_numbers"].update_window_dims
    shape = tuple(1 if d in windows else n for d, n in enumerate(updates.shape))
    numbers = lax.reshape(lax.iota(np.uint32, int(np.prod(shape, dtype=np.int64))), shape)
    numbers = lax.add(numbers, np.uint32(1))
    numbers = lax.broadcast_in_dim(numbers, updates.shape, range(len(shape)))
    winners = lax.scatter_p.bind(lax.full_like(x, 0, np.uint32), indices, numbers, **params)
    mine = lax.eq(_gather_windows(winners, indices, updates, 0, params), numbers)
    x_mask = lax.convert_element_type(lax.eq(winners, np.uint32(0)), g.dtype)
    out = lax.scatter_p.bind(x, indices, updates, **params)
    g_updates = lax.select(mine, g_updates, lax.full_like(g_updates, 0))
    return out, lax.scatter_add_p.bind(lax.mul(g, x_mask), indices, g_updates, **params)


def set_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    assert params["unique_indices"], "differentiation binds scatter for unique indices only"
    ct_x = ct_updates = None
    if is_undefined_primal(x):
        shape = updates.aval.shape if is_undefined_primal(updates) else np.shape(updates)
        ct_x = lax.scatter_p.bind(ct, indices, lax.full(shape, 0, ct.dtype), **params)
    if is_undefined_primal(updates):
        ct_updates = _gather_windows(ct, indices, updates, 0, params)
    return [ct_x, None, ct_updates]


def mul_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    x, indices, updates = primals
    g, _, g_updates = tangents
    out = lax.scatter_mul_p.bind(x, indices, updates, **params)
    total: Any = Zero(get_aval(out).to_tangent_aval())
    if type(g) is not Zero:
        total = lax.scatter_mul_p.bind(g, indices, updates, **params)
    if type(g_updates) is not Zero:
        if not params["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul is differentiable with respect to its updates only if "
                "unique_indices=True is promised"
            )
        factor = lax.mul(g_updates, _gather_windows(x, indices, updates, 0, params))
        term = lax.scatter_add_p.bind(lax.full_like(out, 0), indices, factor, **params)
        total = term if type(total) is Zero else lax.add_any(total, term)
    return out, total


def mul_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    return [lax.scatter_mul_p.bind(ct, indices, updates, **params), None, None]


def extremum_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Operand and updates that attain the result share the tangent."""

    def rule(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        x, indices, updates = primals
        out = primitive().bind(x, indices, updates, **params)
        g, g_updates = _zeros(tangents[0]), _zeros(tangents[2])
        reached = _gather_windows(out, indices, updates, 0, params)
        x_mask = lax.convert_element_type(lax.eq(x, out), g.dtype)
        mask = lax.convert_element_type(lax.eq(updates, reached), g.dtype)
        count = lax.scatter_add_p.bind(x_mask, indices, mask, **params)
        # A NaN is attained by nobody.
        count = lax.max(count, scalar_like(count, 1))
        total = lax.scatter_add_p.bind(lax.mul(g, x_mask), indices, lax.mul(g_updates, mask), **params)
        return out, lax.div(total, count)

    return rule
