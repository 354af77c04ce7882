"""Changes of shape: broadcast_in_dim reshape transpose squeeze rev concatenate split pad copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import (
    LINEAR,
    Primitive,
    ShapedArray,
    Tracer,
    Zero,
    is_undefined_primal,
)  # fmt: skip
from lamina.lax import hlo
from lamina.lax.batching_rules import all_at_front, at_front, batch_size, insert, move_axis, past
from lamina.lax.checks import (
    canonical_axes,
    canonical_axis,
    canonical_shape,
    check_same_dtypes,
    scalar_like,
    static_ints,
)  # fmt: skip

PaddingConfig = Sequence[tuple[int, int, int]]


def _is_array(x: Any) -> bool:
    """Whether x is an array of lamina's, which an operation that changes nothing may give back."""
    return isinstance(x, Tracer) or not isinstance(
        x, np.ndarray | np.generic | bool | int | float | complex
    )


# ---- user functions ----------------------------------------------------------------------------
def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Any:
    """operand repeated to fill `shape`: its axis i becomes axis broadcast_dimensions[i].

    Axes of size 1 are spread; others keep their size. broadcast_dimensions must ascend.
    """
    shape = canonical_shape(shape)
    dims = static_ints("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if _is_array(operand) and operand.shape == shape and dims == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims)


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """operand repeated along new leading axes of these sizes."""
    sizes, shape = canonical_shape(sizes), np.shape(operand)
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), dims)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to, as NumPy counts; ValueError if none."""
    known = [canonical_shape((s,) if isinstance(s, int | np.integer) else s) for s in shapes]
    try:
        return np.broadcast_shapes(*known)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={known}") from None


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """x with leading axes of size 1, so that it has this rank."""
    return broadcast(x, (1,) * (rank - len(np.shape(x))))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """array with axes of size 1 put in; dimensions count the result's axes."""
    shape = np.shape(array)
    rank = len(shape) + len(dimensions)
    new = set(canonical_axes("expand_dims", dimensions, rank))
    kept = tuple(i for i in range(rank) if i not in new)
    sizes = iter(shape)
    return broadcast_in_dim(array, [1 if i in new else next(sizes) for i in range(rank)], kept)


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Any:
    """The elements of operand in row-major order in another shape; `dimensions` names the order in
    which its axes are read, if it is not the usual one. No size may be -1."""
    sizes = canonical_shape(new_sizes)
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if _is_array(operand) and operand.shape == sizes:
        return operand
    return reshape_p.bind(operand, new_sizes=sizes)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """operand with the axes from start_dimension up to stop_dimension merged into one."""
    shape = np.shape(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if start > stop:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:{stop_dimension}]"
        )
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """operand with its axes in another order: axis i of the result is axis permutation[i]."""
    order = static_ints("transpose", "permutation", permutation)
    if _is_array(operand) and order == tuple(range(len(operand.shape))):
        return operand
    return transpose_p.bind(operand, permutation=order)


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """array without the named axes, which must have size 1."""
    dims = canonical_axes("squeeze", dimensions, len(np.shape(array)))
    if not dims and _is_array(array):
        return array
    return squeeze_p.bind(array, dimensions=tuple(sorted(dims)))


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """operand read backwards along the named axes."""
    dims = canonical_axes("rev", dimensions, len(np.shape(operand)))
    return rev_p.bind(operand, dimensions=dims) if dims or not _is_array(operand) else operand


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """The operands one after another along an axis; other axes and dtypes must agree."""
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and _is_array(operands[0]):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=int(dimension))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """operand cut along an axis into parts of these sizes, which add up to the axis's size."""
    axis = canonical_axis("split", axis, len(np.shape(operand)))
    return split_p.bind(operand, sizes=static_ints("split", "sizes", sizes), axis=axis)


def pad(operand: Any, padding_value: Any, padding_config: PaddingConfig) -> Any:
    """operand with padding_value put around and between its elements.

    padding_config holds (low, high, interior) for each axis; negative low and high cut away.
    """
    config = tuple(static_ints("pad", "padding_config", c) for c in padding_config)
    return pad_p.bind(operand, padding_value, padding_config=config)


def copy(x: Any) -> Any:
    """x under another name."""
    return copy_p.bind(x)


# ---- broadcast_in_dim --------------------------------------------------------------------------
def _broadcast_in_dim_abstract_eval(
    x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> ShapedArray:
    dims = broadcast_dimensions
    if len(dims) != len(x.shape):
        raise TypeError(
            f"[broadcast_in_dim] broadcast_dimensions needs an entry for each axis of "
            f"{x.str_short()}, got {dims}"
        )
    if (
        any(a >= b for a, b in zip(dims, dims[1:]))
        or dims
        and not (0 <= dims[0] and dims[-1] < len(shape))
    ):
        raise TypeError(
            "[broadcast_in_dim] broadcast_dimensions must be strictly increasing axes of the "
            f"result, got {dims} for shape {shape}"
        )
    for size, d in zip(x.shape, dims):
        if size != 1 and size != shape[d]:
            raise TypeError(
                "[broadcast_in_dim] operand sizes must be 1 or those of the result: "
                f"{x.str_short()} can't spread over {shape} with broadcast_dimensions {dims}"
            )
    return ShapedArray(shape, x.dtype, x.weak_type)


def _broadcast_in_dim_lowering(ctx: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    return ctx.module.spreads.spread(x, shape, broadcast_dimensions)


def _broadcast_in_dim_transpose(ct: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    spread = [d for size, d in zip(x.aval.shape, broadcast_dimensions) if size != shape[d]]
    new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    return [reshape(lax.reduce_sum(ct, (*new, *spread)), x.aval.shape)]


def _broadcast_in_dim_batching(
    args: Any, dims: Any, *, shape: Any, broadcast_dimensions: Any
) -> Any:
    x = move_axis(args[0], dims[0], 0)
    return broadcast_in_dim(x, (x.shape[0], *shape), (0, *past(0, broadcast_dimensions))), 0


broadcast_in_dim_p: Primitive = Primitive(
    "broadcast_in_dim",
    abstract_eval=_broadcast_in_dim_abstract_eval,
    lowering=_broadcast_in_dim_lowering,
    jvp=LINEAR,
    transpose=_broadcast_in_dim_transpose,
    batching=_broadcast_in_dim_batching,
)


# ---- reshape -----------------------------------------------------------------------------------
def _reshape_abstract_eval(x: ShapedArray, *, new_sizes: tuple[int, ...]) -> ShapedArray:
    if math.prod(new_sizes) != x.size:
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (total size "
            f"{math.prod(new_sizes)}) for shape {x.shape} (total size {x.size})."
        )
    return ShapedArray(new_sizes, x.dtype, x.weak_type)


def _reshape_lowering(ctx: Any, x: Any, *, new_sizes: tuple[int, ...]) -> Any:
    return ctx.module.spreads.reshape(x, new_sizes)


def _reshape_transpose(ct: Any, x: Any, *, new_sizes: tuple[int, ...]) -> list[Any]:
    return [reshape(ct, x.aval.shape)]


def _reshape_batching(args: Any, dims: Any, *, new_sizes: tuple[int, ...]) -> tuple[Any, int]:
    x = move_axis(args[0], dims[0], 0)
    return reshape(x, (x.shape[0], *new_sizes)), 0


reshape_p: Primitive = Primitive(
    "reshape",
    abstract_eval=_reshape_abstract_eval,
    lowering=_reshape_lowering,
    jvp=LINEAR,
    transpose=_reshape_transpose,
    batching=_reshape_batching,
)


# ---- transpose ---------------------------------------------------------------------------------
def _transpose_abstract_eval(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(len(x.shape))):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for operand shape {x.shape}."
        )
    return ShapedArray(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)


def _transpose_lowering(ctx: Any, x: Any, *, permutation: tuple[int, ...]) -> Any:
    return hlo.transpose(x, permutation)


def _transpose_transpose(ct: Any, x: Any, *, permutation: tuple[int, ...]) -> list[Any]:
    back = sorted(range(len(permutation)), key=permutation.__getitem__)
    return [transpose(ct, back)]


def _transpose_batching(args: Any, dims: Any, *, permutation: tuple[int, ...]) -> tuple[Any, int]:
    (x,), (d,) = args, dims
    return transpose(x, (d, *past(d, permutation))), 0


transpose_p: Primitive = Primitive(
    "transpose",
    abstract_eval=_transpose_abstract_eval,
    lowering=_transpose_lowering,
    jvp=LINEAR,
    transpose=_transpose_transpose,
    batching=_transpose_batching,
)


# ---- squeeze -----------------------------------------------------------------------------------
def _squeeze_abstract_eval(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={x.shape} and dimensions={dimensions}"
        )
    sizes = tuple(s for i, s in enumerate(x.shape) if i not in dimensions)
    return ShapedArray(sizes, x.dtype, x.weak_type)


def _squeeze_lowering(ctx: Any, x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return ctx.module.spreads.reshape(x, ctx.avals_out[0].shape)


def _squeeze_transpose(ct: Any, x: Any, *, dimensions: tuple[int, ...]) -> list[Any]:
    return [reshape(ct, x.aval.shape)]


def _squeeze_batching(args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> tuple[Any, int]:
    return squeeze(move_axis(args[0], dims[0], 0), past(0, dimensions)), 0


squeeze_p: Primitive = Primitive(
    "squeeze",
    abstract_eval=_squeeze_abstract_eval,
    lowering=_squeeze_lowering,
    jvp=LINEAR,
    transpose=_squeeze_transpose,
    batching=_squeeze_batching,
)


# ---- rev ---------------------------------------------------------------------------------------
def _rev_lowering(ctx: Any, x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return hlo.reverse(x, dimensions)


def _rev_batching(args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> tuple[Any, int]:
    return rev(args[0], past(dims[0], dimensions)), dims[0]


rev_p: Primitive = Primitive(
    "rev",
    abstract_eval=lambda x, *, dimensions: x,
    lowering=_rev_lowering,
    jvp=LINEAR,
    transpose=lambda ct, x, *, dimensions: [rev(ct, dimensions)],
    batching=_rev_batching,
)


# ---- concatenate and split ---------------------------------------------------------------------
def _concatenate_abstract_eval(*operands: ShapedArray, dimension: int) -> ShapedArray:
    first = operands[0]
    shown = ", ".join(str(x.shape) for x in operands)
    if not 0 <= dimension < len(first.shape):
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes {shown}."
        )
    total = 0
    for x in operands:
        if len(x.shape) != len(first.shape):
            raise TypeError(
                f"Cannot concatenate arrays with different numbers of dimensions: got {shown}."
            )
        if x.shape != (*first.shape[:dimension], x.shape[dimension], *first.shape[dimension + 1 :]):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the "
                f"one being concatenated: concatenating along dimension {dimension} for shapes "
                f"{shown}."
            )
        total += x.shape[dimension]
    check_same_dtypes("concatenate", operands)
    shape = (*first.shape[:dimension], total, *first.shape[dimension + 1 :])
    return ShapedArray(shape, first.dtype, all(x.weak_type for x in operands))


def _concatenate_lowering(ctx: Any, *xs: Any, dimension: int) -> Any:
    return hlo.concatenate(xs, dimension)


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    sizes = [(x.aval.shape if is_undefined_primal(x) else np.shape(x))[dimension] for x in operands]
    parts = split(ct, sizes, dimension)
    return [p if is_undefined_primal(x) else None for p, x in zip(parts, operands)]


def _concatenate_batching(args: Any, dims: Any, *, dimension: int) -> tuple[Any, int]:
    return concatenate(all_at_front(args, dims), dimension + 1), 0


concatenate_p: Primitive = Primitive(
    "concatenate",
    abstract_eval=_concatenate_abstract_eval,
    lowering=_concatenate_lowering,
    jvp=LINEAR,
    transpose=_concatenate_transpose,
    batching=_concatenate_batching,
)


def _split_abstract_eval(x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> list[ShapedArray]:
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand "
            f"shape {x.shape}"
        )
    return [
        ShapedArray((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes
    ]


def _split_lowering(ctx: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    shape = ctx.avals_in[0].shape
    start, limit, strides = [0] * len(shape), list(shape), [1] * len(shape)
    parts, at = [], 0
    for n in sizes:
        start[axis], limit[axis] = at, at + n
        parts.append(hlo.slice(x, start, limit, strides))
        at += n
    return parts


def _split_transpose(cts: Sequence[Any], x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    if all(type(ct) is Zero for ct in cts):
        return [Zero(x.aval)]
    filled = [lax.full(ct.aval.shape, 0, ct.aval.dtype) if type(ct) is Zero else ct for ct in cts]
    return [concatenate(filled, axis)]


def _split_batching(args: Any, dims: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    (d,) = dims
    return split_p.bind(*args, sizes=sizes, axis=axis + (axis >= d)), [d] * len(sizes)


split_p: Primitive = Primitive(
    "split",
    abstract_eval=_split_abstract_eval,
    lowering=_split_lowering,
    jvp=LINEAR,
    transpose=_split_transpose,
    batching=_split_batching,
    multiple_results=True,
)


# ---- pad ---------------------------------------------------------------------------------------
def _pad_abstract_eval(x: ShapedArray, value: ShapedArray, *, padding_config: Any) -> ShapedArray:
    check_same_dtypes("pad", (x, value))
    if value.shape != ():
        raise TypeError(f"[pad] padding_value must be a scalar, got {value.str_short()}")
    if len(padding_config) != len(x.shape) or any(len(c) != 3 for c in padding_config):
        raise TypeError(
            "[pad] padding_config needs a (low, high, interior) triple for each axis of "
            f"{x.str_short()}, got {padding_config}"
        )
    sizes = []
    for n, (low, high, interior) in zip(x.shape, padding_config):
        if interior < 0:
            raise ValueError(f"[pad] interior padding can't be negative, got {padding_config}")
        sizes.append(low + high + n + interior * (n - 1 if n else 0))
        if sizes[-1] < 0:
            raise ValueError(
                f"[pad] {padding_config} cuts away more than there is in {x.str_short()}"
            )
    return ShapedArray(tuple(sizes), x.dtype, x.weak_type and value.weak_type)


def _pad_lowering(ctx: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    low, high, interior = ([c[i] for c in padding_config] for i in range(3))
    return hlo.pad(x, value, low, high, interior)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: Any) -> list[Any]:
    negative = [(-low, -high, 0) for low, high, _ in padding_config]
    kept = pad(ct, scalar_like(ct, 0), negative)
    strides = [interior + 1 for *_, interior in padding_config]
    kept = lax.slice(kept, [0] * len(strides), kept.shape, strides)
    axes = tuple(range(len(ct.shape)))
    ct_value = None
    if is_undefined_primal(value):
        inside = lax.reduce_sum(kept, axes)
        ct_value = lax.sub(lax.reduce_sum(ct, axes), inside)
    return [kept if is_undefined_primal(x) else None, ct_value]


def _pad_batching(args: Any, dims: Any, *, padding_config: Any) -> tuple[Any, int]:
    (x, value), (d, value_dim) = args, dims
    if value_dim is None:
        return pad(x, value, insert(padding_config, d, (0, 0, 0))), d
    # One padding value per example: pad with ones where the padding is, then choose.
    size = batch_size(args, dims)
    x = at_front(x, d, size)
    config = ((0, 0, 0), *padding_config)
    padded = pad(x, scalar_like(x, 0), config)
    inside = pad(lax.full_like(x, True, bool), False, config)
    return lax.select(inside, padded, broadcast_in_dim(value, padded.shape, (0,))), 0


pad_p: Primitive = Primitive(
    "pad",
    abstract_eval=_pad_abstract_eval,
    lowering=_pad_lowering,
    jvp=LINEAR,
    transpose=_pad_transpose,
    batching=_pad_batching,
)

# ---- copy --------------------------------------------------------------------------------------
copy_p: Primitive = Primitive(
    "copy",
    abstract_eval=lambda x: x,
    lowering=lambda ctx, x: x,
    jvp=LINEAR,
    transpose=lambda ct, x: [ct],
    batching=lambda args, dims: (copy(args[0]), dims[0]),
)
