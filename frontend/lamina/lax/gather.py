"""gather: slices of an array at indices given by another array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, ShapedArray, Zero, dtypes, get_aval
from lamina.core.array_class import Array
from lamina.core.placed import Dims, Operands, ShardingTypeError, linear_in, spec, without
from lamina.lax import hlo
from lamina.lax.batching_rules import at_front, batch_size, move_axis
from lamina.lax.checks import canonical_shape
from lamina.lax.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    batch_both,
    batch_indices,
    batch_operand,
    canonical_numbers,
    check_numbers,
    index_limits,
    spread_limits,
)  # fmt: skip


# ---- user functions ----------------------------------------------------------------------------
def gather(operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[int], *, unique_indices: bool = False,
           indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
           fill_value: Any = None) -> Array:  # fmt: skip
    """Slices of operand at indices that an array gives: StableHLO's gather, which x[indices]
    becomes.

    operand             an array.
    start_indices       integers; the last axis holds an index's components, the others count
                        slices.
    dimension_numbers   a lax.GatherDimensionNumbers, which says what axes mean: offset_dims, those
                        of the result that come from slices; collapsed_slice_dims, those of operand
                        that slices lack; start_index_map, the axis of operand for each component.
    slice_sizes         of a slice, an int for each axis of operand.
    unique_indices      whether the indices are known to differ, which helps derivatives.
    indices_are_sorted  whether they are known to rise.
    mode                what out-of-bounds slices hold: "fill" (the default) fill_value, "clip" the
                        nearest slice, "one_hot" zeros; "promise_in_bounds" says that there are
                        none.
    fill_value          by itself NaN for floats, the least integer for signed and the greatest for
                        unsigned ones, True for booleans.

    Raises TypeError where indices are no integers or sizes do not fit; ValueError for another mode.

    >>> numbers = lax.GatherDimensionNumbers((), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> print(lax.gather(jnp.array([10, 20, 30]), jnp.array([[2], [0]]), numbers, (1,)))
    [30 10]
    """
    parsed = GatherScatterMode.from_any(mode)
    if parsed is GatherScatterMode.ONE_HOT:
        parsed, fill_value = GatherScatterMode.FILL_OR_DROP, 0
    if parsed is GatherScatterMode.FILL_OR_DROP:
        if fill_value is None:
            fill_value = _fill_of(get_aval(operand).physical().dtype)
        elif isinstance(fill_value, np.ndarray | np.generic):
            fill_value = fill_value.item()
    else:
        fill_value = None
    return gather_p.bind(
        operand, start_indices,
        dimension_numbers=canonical_numbers(dimension_numbers),
        slice_sizes=canonical_shape(slice_sizes),
        indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
        mode=parsed, fill_value=fill_value,
    )  # fmt: skip


def take_along_axis(operand: Any, indices: Any, axis: int, *, mode: Any = None) -> Array:
    """The elements operand[..., indices[..., i, ...], ...] along one axis, as argsort's result
    names them.

    operand  an array.
    indices  integers: an array of operand's rank and, but for that axis, its sizes, from 0 on.
    axis     from 0 to the rank - 1.
    mode     what out-of-bounds elements are, as for gather.

    Raises TypeError where indices are no integers.

    >>> x = jnp.array([[3, 1, 2], [6, 5, 4]])
    >>> print(lax.take_along_axis(x, jnp.array([[1], [2]]), 1))
    [[1]
     [4]]
    """
    if 0 in indices.shape:  # the axis may be empty, and have no slice of one element
        return lax.full(indices.shape, 0, operand.dtype)
    others = tuple(i for i in range(len(operand.shape)) if i != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    indices = lax.expand_dims(indices, (len(operand.shape),))
    return gather(operand, indices, numbers, single_elements(operand.shape, axis), mode=mode)


def single_elements(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    """The slice sizes that take one element along `axis`; none along empty batching axes."""
    return tuple(1 if i == axis else min(1, n) for i, n in enumerate(shape))


def _fill_of(dtype: np.dtype) -> Any:
    if dtype.kind == "b":
        return True
    if dtypes.is_inexact(dtype):
        return float("nan")
    info = dtypes.iinfo(dtype)
    return int(info.min if dtypes.is_signed(dtype) else info.max)


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, indices: ShapedArray, *,
                   dimension_numbers: GatherDimensionNumbers, slice_sizes: tuple[int, ...],
                   **_: Any) -> ShapedArray:  # fmt: skip
    numbers = dimension_numbers
    check_numbers("gather", numbers, x, indices)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    if len(slice_sizes) != len(x.shape) or any(n > m for n, m in zip(slice_sizes, x.shape)):
        raise TypeError(
            f"[gather] slice_sizes must be at most the sizes of the operand, got {slice_sizes} for "
            f"{x.str_short()}"
        )
    if any(slice_sizes[d] != 1 for d in numbers.collapsed_slice_dims) or any(
        slice_sizes[d] > 1 for d in numbers.operand_batching_dims
    ):
        raise TypeError(
            f"[gather] slices have size 1 along collapsed and batching axes, got {slice_sizes} "
            f"with {numbers}"
        )
    window = [n for d, n in enumerate(slice_sizes) if d not in dropped]
    rank = len(window) + len(indices.shape) - 1
    offsets = numbers.offset_dims
    if (
        len(offsets) != len(window)
        or list(offsets) != sorted(set(offsets))
        or any(not 0 <= d < rank for d in offsets)
    ):
        raise TypeError(
            f"[gather] offset_dims={offsets} must be {len(window)} ascending axes of a result of "
            f"rank {rank}: one for each axis of the slices {slice_sizes} that is not dropped"
        )
    within, batch = iter(window), iter(indices.shape[:-1])
    shape = tuple(next(within) if d in offsets else next(batch) for d in range(rank))
    return ShapedArray(shape, x.dtype, x.weak_type)


def _lowering(ctx: Any, x: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
              slice_sizes: tuple[int, ...], indices_are_sorted: bool, unique_indices: bool,
              mode: GatherScatterMode, fill_value: Any) -> Any:  # fmt: skip
    numbers, out = dimension_numbers, ctx.avals_out[0]
    # StableHLO's gather clamps by itself, which is CLIP.
    slices = hlo.gather(
        x, indices,
        offset_dims=numbers.offset_dims, collapsed_slice_dims=numbers.collapsed_slice_dims,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=numbers.start_indices_batching_dims,
        start_index_map=numbers.start_index_map,
        index_vector_dim=len(ctx.avals_in[1].shape) - 1,
        slice_sizes=slice_sizes, indices_are_sorted=indices_are_sorted,
    )  # fmt: skip
    if mode is not GatherScatterMode.FILL_OR_DROP or not numbers.start_index_map:
        return slices
    inside = _in_bounds(ctx.avals_in[0], ctx.avals_in[1], indices, numbers, slice_sizes)
    batch = [d for d in range(len(out.shape)) if d not in numbers.offset_dims]
    mask = hlo.broadcast_in_dim(inside, out.shape, batch)
    return hlo.select(mask, slices, hlo.full(fill_value, out.shape, out.dtype))


def _in_bounds(x: ShapedArray, aval: ShapedArray, indices: Any, numbers: GatherDimensionNumbers,
               slice_sizes: tuple[int, ...]) -> Any:  # fmt: skip
    """Whether each index's slice lies within the operand."""
    limits = index_limits(x.shape, slice_sizes, numbers.start_index_map, aval.dtype)
    inside = hlo.compare(indices, spread_limits(limits, aval.shape), "LE")
    if dtypes.is_signed(aval.dtype):
        zero = hlo.full(0, aval.shape, aval.dtype)
        inside = hlo.and_(inside, hlo.compare(indices, zero, "GE"))
    init = hlo.full(True, (), np.dtype(bool))
    return hlo.reduce([inside], [init], [len(aval.shape) - 1], lambda a, b: [hlo.and_(a, b)])[0]


def _of_tangent(x: Any, indices: Any, params: dict[str, Any]) -> Any:
    fill = 0 if params["mode"] is GatherScatterMode.FILL_OR_DROP else None
    return gather_p.bind(x, indices, **{**params, "fill_value": fill})


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    (x, indices), (g, _) = primals, tangents
    out = gather_p.bind(x, indices, **params)
    if type(g) is Zero:
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, _of_tangent(g, indices, params)


def _transpose(ct: Any, x: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
               indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode,
               **_: Any) -> list[Any]:  # fmt: skip
    zeros = lax.as_typed(lax.full(x.aval.shape, 0, x.aval.dtype), x.aval.to_cotangent_aval())  # of terms, too
    out = lax.scatter_add(
        zeros, indices, ct, ScatterDimensionNumbers(*dimension_numbers),
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip
    return [out, None]


def _batching(args: Any, dims: Any, *, dimension_numbers: GatherDimensionNumbers,
              slice_sizes: tuple[int, ...], **params: Any) -> tuple[Any, int]:  # fmt: skip
    (x, indices), (d, index_dim) = args, dims
    numbers = dimension_numbers
    if index_dim is None:
        x = move_axis(x, d, 0)
        numbers, slice_sizes = batch_operand(numbers), (x.shape[0], *slice_sizes)
    elif d is None:
        indices, numbers = move_axis(indices, index_dim, 0), batch_indices(numbers)
        params["indices_are_sorted"] = False
    else:
        size = batch_size(args, dims)
        x, indices = at_front(x, d, size), at_front(indices, index_dim, size)
        # Slices of an empty batch are empty.
        numbers, slice_sizes = batch_both(numbers), (min(1, size), *slice_sizes)
        params["indices_are_sorted"] = False
    out = gather_p.bind(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params)
    return out, 0


def _placed(
    of: Operands, out: ShapedArray, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Any, **_: Any
) -> Dims:
    """Slices lie as the operand does along axes that they have all of, and one by one as the indices do."""
    x, indices = of.dims
    numbers, shape = dimension_numbers, of.avals[0].shape
    for axis, (names, size) in enumerate(zip(x, slice_sizes)):
        if names and size != shape[axis] and axis not in numbers.operand_batching_dims:
            raise ShardingTypeError(
                f"Use `.at[...].get(out_sharding=)` to provide output sharding: a gather of an operand under "
                f"{spec(x)} takes parts of its dimension {axis}, by indices under {spec(indices)}"
            )
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    within, between = iter(without(x, dropped)), iter(indices[:-1])
    return tuple(next(within if d in numbers.offset_dims else between) for d in range(out.ndim))


gather_p: Primitive = Primitive(
    "gather",
    abstract_eval=_abstract_eval,
    placed=_placed,
    lowering=_lowering,
    jvp=_jvp,
    sums=linear_in(0),
    transpose=_transpose,
    batching=_batching,
)
