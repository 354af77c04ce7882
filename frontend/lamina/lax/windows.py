"""Reductions over sliding windows by lax.add, lax.max and lax.min."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import (
    LINEAR,
    NOT_DIFFERENTIABLE,
    NOT_LINEAR,
    Primitive,
    ShapedArray,
    Tracer,
    Zero,
    dtypes,
    get_aval,
)
from lamina.core.placed import if_divided
from lamina.lax import hlo
from lamina.lax.batching_rules import insert, move_axis
from lamina.lax.checks import NUMBER, REAL, Accepted, check_accepted, scalar_like, static_ints
from lamina.lax.reduce import scalar_body
from lamina.lax.window_padding import Pads, dilated, padtype_to_pads
from lamina.lax.window_shapes import reduce_window_shape_tuple

_INT32 = np.dtype(np.int32)


# ---- what lamina.control_flow's reduce and reduce_window find here -------------------------------
def window_parameters(
    shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Pads,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> dict[str, Any]:
    """The parameters of a reduction over windows of an operand of this shape."""
    n = len(shape)
    window = static_ints("reduce_window", "window_dimensions", window_dimensions)
    strides = (1,) * len(window)
    if window_strides is not None:
        strides = static_ints("reduce_window", "window_strides", window_strides)
    base = (1,) * n if base_dilation is None else tuple(base_dilation)
    wide = (1,) * n if window_dilation is None else tuple(window_dilation)
    if isinstance(padding, str):
        sizes = [dilated(s, b) for s, b in zip(shape, base)]
        padding = padtype_to_pads(sizes, [dilated(s, d) for s, d in zip(window, wide)], strides,
                                  padding)  # fmt: skip
    params = {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": tuple((int(low), int(high)) for low, high in padding),
        "base_dilation": base,
        "window_dilation": wide,
    }
    _check_windows("reduce_window", ShapedArray(tuple(shape), np.dtype(np.float32)), params)
    return params


def reduce_window_by(
    computation: Callable[[Any, Any], Any], operand: Any, init: Any, params: dict[str, Any]
) -> Any:
    """The reduction where there is a primitive for it; None where there is none."""
    by_computation: dict[Any, Primitive] = {
        lax.add: reduce_window_sum_p,
        lax.max: reduce_window_max_p,
        lax.min: reduce_window_min_p,
    }
    found = by_computation.get(computation)
    dtype = get_aval(operand).dtype
    if found is None or dtype not in (NUMBER if computation is lax.add else REAL).dtypes:
        return None
    return _with_init(found.bind(operand, **params), init, computation)


def reduce_by(
    computation: Callable[[Any, Any], Any], operand: Any, init: Any, dimensions: Sequence[int]
) -> Any:
    """The reduction where there is a primitive for it; None where there is none."""
    by_computation: dict[Any, Callable[..., Any]] = {
        lax.add: lax.reduce_sum,
        lax.mul: lax.reduce_prod,
        lax.max: lax.reduce_max,
        lax.min: lax.reduce_min,
        lax.bitwise_and: lax.reduce_and,
        lax.bitwise_or: lax.reduce_or,
        lax.bitwise_xor: lax.reduce_xor,
    }
    try:
        found = by_computation.get(computation)
    except TypeError:  # not hashable
        return None
    if found is None:
        return None
    return _with_init(found(operand, dimensions), init, computation)


def _with_init(out: Any, init: Any, computation: Callable[[Any, Any], Any]) -> Any:
    dtype = get_aval(out).dtype
    if _is_neutral(init, computation, dtype):
        return out
    return computation(out, lax.convert_element_type(init, dtype))


def _is_neutral(init: Any, computation: Callable[[Any, Any], Any], dtype: np.dtype) -> bool:
    """Whether an initial value is known to change nothing."""
    neutral: dict[Any, Any] = {
        lax.add: 0,
        lax.mul: 1,
        lax.max: dtypes.least(dtype),
        lax.min: dtypes.greatest(dtype),
        lax.bitwise_or: 0,
        lax.bitwise_xor: 0,
    }
    if isinstance(init, Tracer) or computation not in neutral:
        return False
    return bool(np.asarray(init) == neutral[computation])


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(name: str, accept: Accepted, result: np.dtype | None = None
                   ) -> Callable[..., ShapedArray]:  # fmt: skip
    def rule(x: ShapedArray, *, window_dimensions: tuple[int, ...], window_strides: tuple[int, ...],
             padding: tuple[tuple[int, int], ...], base_dilation: tuple[int, ...],
             window_dilation: tuple[int, ...]) -> ShapedArray:  # fmt: skip
        check_accepted(name, accept, x)
        params = {"window_dimensions": window_dimensions, "window_strides": window_strides,
                  "padding": padding, "base_dilation": base_dilation,
                  "window_dilation": window_dilation}  # fmt: skip
        _check_windows(name, x, params)
        sizes = reduce_window_shape_tuple(x.shape, *params.values())  # type: ignore[arg-type]
        return ShapedArray(sizes, result or x.dtype, x.weak_type and result is None)

    return rule


def _check_windows(name: str, x: ShapedArray, params: dict[str, Any]) -> None:
    window, strides, padding, base, wide = params.values()
    if any(len(values) != len(x.shape) for values in params.values()):
        raise TypeError(
            f"[{name}] window_dimensions={window}, window_strides={strides}, padding={padding} and "
            f"dilations need an entry for each axis of shape {x.shape}"
        )
    if any(v < 1 for values in (window, strides, base, wide) for v in values):
        raise TypeError(
            f"[{name}] windows, strides and dilations must be positive, got {window}, {strides}, "
            f"{base} and {wide}"
        )


def _builder_names(params: dict[str, Any]) -> dict[str, Any]:
    names = {"base_dilation": "base_dilations", "window_dilation": "window_dilations"}
    return {names.get(k, k): v for k, v in params.items()}


def _lowering(combine: Callable[[], Primitive], identity: Callable[[np.dtype], Any]
              ) -> Callable[..., Any]:  # fmt: skip
    def rule(ctx: Any, x: Any, **params: Any) -> Any:
        dtype = ctx.avals_in[0].dtype
        init = hlo.full(identity(dtype), (), dtype)
        body = scalar_body(ctx, combine(), dtype)
        return hlo.reduce_window([x], [init], body=body, **_builder_names(params))[0]

    return rule


def _batching(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        (d,) = dims
        batched = {k: insert(v, d, (0, 0) if k == "padding" else 1) for k, v in params.items()}
        return primitive().bind(*args, **batched), d

    return rule


def _chosen_batching(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        x = move_axis(args[0], dims[0], 0)
        out, _ = _batching(primitive)((x,), (0,), **params)
        # Places are counted within an example.
        size = math.prod(x.shape[1:])
        first = lax.mul(lax.broadcasted_iota(_INT32, out.shape, 0), _INT32.type(size))
        return lax.select(lax.lt(out, _INT32.type(0)), out, lax.sub(out, first)), 0

    return rule


def _sum_transpose(ct: Any, x: Any, *, window_dimensions: Any, window_strides: Any, padding: Any,
                   base_dilation: Any, window_dilation: Any) -> list[Any]:  # fmt: skip
    """Each element of ct goes to its whole window: sums over the mirrored windows of ct."""
    plain = (1,) * len(ct.shape)
    if window_strides == window_dimensions and base_dilation == window_dilation == plain and not any(
        map(any, padding)
    ):
        return [_repeated(ct, window_dimensions, x.aval.shape)]
    config = []
    for size, n, window, stride, (low, _), base, wide in zip(
        x.aval.shape, ct.shape, window_dimensions, window_strides, padding, base_dilation,
        window_dilation,
    ):  # fmt: skip
        spread, reach = dilated(n, stride), dilated(window, wide)
        before = reach - low - 1
        after = dilated(size, base) + reach - 1 - spread - before
        config.append((before, after, stride - 1))
    out = reduce_window_sum_p.bind(
        lax.pad(ct, scalar_like(ct, 0), config),
        window_dimensions=window_dimensions,
        window_strides=base_dilation,
        padding=((0, 0),) * len(config),
        base_dilation=plain,
        window_dilation=window_dilation,
    )
    return [out]


def _repeated(ct: Any, window: Sequence[int], shape: Sequence[int]) -> Any:
    """Each element as often as its window is large, and zeros for what was in no window."""
    pairs = [size for pair in zip(ct.shape, window, strict=True) for size in pair]
    whole = [n * size for n, size in zip(ct.shape, window, strict=True)]
    out = lax.reshape(lax.broadcast_in_dim(ct, pairs, range(0, len(pairs), 2)), whole)
    if whole == list(shape):
        return out
    rest = [(0, size - n, 0) for size, n in zip(shape, whole, strict=True)]
    return lax.pad(out, scalar_like(ct, 0), rest)


def _extremum_jvp(primitive: Callable[[], Primitive], chosen: Callable[[], Primitive]
                  ) -> Callable[..., Any]:  # fmt: skip
    """The tangent of each window is that of the element it chose."""

    def rule(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        (x,), (g,) = primals, tangents
        if not get_aval(x).size:  # windows of nothing but padding chose none
            out = primitive().bind(x, **params)
            return out, Zero(get_aval(out).to_tangent_aval())
        index = lax.expand_dims(chosen().bind(x, **params), (len(x.shape),))
        numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        flat = lax.reshape(g, (get_aval(g).size,))
        tangent = lax.gather(flat, index, numbers, (1,), mode="fill", fill_value=0)
        return primitive().bind(x, **params), tangent

    return rule


def _chosen_lowering(direction: str, start: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    """Pairs of a value and its place are reduced; padding is at -1."""

    def rule(ctx: Any, x: Any, **params: Any) -> Any:
        aval = ctx.avals_in[0]
        places = hlo.reshape(hlo.iota((aval.size,), _INT32, 0), aval.shape)

        def better(value: Any, place: Any, other: Any, other_place: Any) -> list[Any]:
            wins = hlo.compare(value, other, direction)
            if dtypes.is_float(aval.dtype):
                wins = hlo.or_(wins, hlo.compare(value, value, "NE"))
            tied = hlo.compare(value, other, "EQ")
            # Of equal elements the first; padding never.
            first = hlo.and_(
                hlo.compare(place, hlo.full(0, (), _INT32), "GE"),
                hlo.or_(
                    hlo.compare(place, other_place, "LT"),
                    hlo.compare(other_place, hlo.full(0, (), _INT32), "LT"),
                ),
            )
            takes = hlo.or_(wins, hlo.and_(tied, first))
            return [hlo.select(takes, value, other), hlo.select(takes, place, other_place)]

        inits = [hlo.full(start(aval.dtype), (), aval.dtype), hlo.full(-1, (), _INT32)]
        return hlo.reduce_window([x, places], inits, body=better, **_builder_names(params))[1]

    return rule


# ---- primitives --------------------------------------------------------------------------------
def _window_primitive(
    name: str, accept: Accepted, lowering: Any, jvp: Any, transpose: Any = NOT_LINEAR
) -> Primitive:
    primitive = Primitive(
        name,
        abstract_eval=_abstract_eval(name, accept),
        placed=if_divided,
        lowering=lowering,
        jvp=jvp,
        transpose=transpose,
        batching=_batching(lambda: primitive),
    )
    return primitive


reduce_window_sum_p: Primitive = _window_primitive(
    "reduce_window_sum", NUMBER, _lowering(lambda: lax.add_p, lambda _: 0), LINEAR, _sum_transpose
)
reduce_window_max_p: Primitive = _window_primitive(
    "reduce_window_max", REAL, _lowering(lambda: lax.max_p, dtypes.least),
    _extremum_jvp(lambda: reduce_window_max_p, lambda: window_argmax_p),
)  # fmt: skip
reduce_window_min_p: Primitive = _window_primitive(
    "reduce_window_min", REAL, _lowering(lambda: lax.min_p, dtypes.greatest),
    _extremum_jvp(lambda: reduce_window_min_p, lambda: window_argmin_p),
)  # fmt: skip


def _chosen(name: str, direction: str, start: Callable[[np.dtype], Any]) -> Primitive:
    """Where in the flat operand the element lies that each window's extremum is, for derivatives;
    -1 where a window holds padding only."""
    primitive = Primitive(
        name,
        abstract_eval=_abstract_eval(name, REAL, _INT32),
        lowering=_chosen_lowering(direction, start),
        jvp=NOT_DIFFERENTIABLE,
        transpose=NOT_LINEAR,
        batching=_chosen_batching(lambda: primitive),
    )
    return primitive


window_argmax_p: Primitive = _chosen("window_argmax", "GT", dtypes.least)
window_argmin_p: Primitive = _chosen("window_argmin", "LT", dtypes.greatest)
