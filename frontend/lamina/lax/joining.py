"""What puts arrays together, apart, and into larger ones: concatenate split pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import LINEAR, Primitive, ShapedArray, Zero, is_undefined_primal
from lamina.core.array_class import Array
from lamina.core.placed import Dims, Operands, ShardingTypeError, if_divided, spec
from lamina.lax import hlo
from lamina.lax.batching_rules import all_spread, at_front, batch_size, insert
from lamina.lax.checks import (
    canonical_axis,
    check_reach,
    check_same_dtypes,
    is_array,
    scalar_like,
    static_ints,
)

PaddingConfig = Sequence[tuple[int, int, int]]


# ---- user functions ----------------------------------------------------------------------------
def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Arrays one after another along an axis.

    operands   arrays of one dtype and one rank, whose sizes along other axes are equal.
    dimension  the axis, from 0.

    Raises TypeError where dtypes or shapes do not agree; ValueError where there are no operands.

    >>> print(lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0))
    [1 2 3]
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and is_array(operands[0]):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=int(dimension))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """operand cut along an axis: a list of its parts.

    operand  an array.
    sizes    of the parts along the axis; they add up to its size.
    axis     counted from the end where negative.

    Raises ValueError where they do not add up.

    >>> [part.tolist() for part in lax.split(jnp.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    axis = canonical_axis("split", axis, len(np.shape(operand)))
    return split_p.bind(operand, sizes=static_ints("split", "sizes", sizes), axis=axis)


def pad(operand: Any, padding_value: Any, padding_config: PaddingConfig) -> Array:
    """operand with a value put around and between its elements.

    operand         an array.
    padding_value   a scalar of its dtype.
    padding_config  (low, high, interior) for each axis: how many go before, after, and between each
                    two elements. Negative low and high cut elements away.

    Raises TypeError where dtypes differ or there is not one triple for each axis; ValueError where
    interior is negative or more is cut away than there is.

    >>> print(lax.pad(jnp.array([1, 2, 3]), 0, [(2, -1, 1)]))
    [0 0 1 0 2 0]
    """
    config = tuple(static_ints("pad", "padding_config", c) for c in padding_config)
    return pad_p.bind(operand, padding_value, padding_config=config)


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
    return concatenate(all_spread(args, dims), dimension + 1), 0


def _concatenate_placed(of: Operands, out: ShapedArray, *, dimension: int) -> Dims:
    if len(set(of.dims)) > 1:
        raise ShardingTypeError(
            "All operands should have the same sharding. Got shardings "
            f"{', '.join(map(spec, of.dims))}"
        )
    return of.dims[0]


concatenate_p: Primitive = Primitive(
    "concatenate",
    abstract_eval=_concatenate_abstract_eval,
    placed=_concatenate_placed,
    lowering=_concatenate_lowering,
    jvp=LINEAR,
    transpose=_concatenate_transpose,
    batching=_concatenate_batching,
)


def _split_abstract_eval(x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> list[ShapedArray]:
    if any(n < 0 for n in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
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


def _split_placed(of: Operands, *out: ShapedArray, sizes: tuple[int, ...], axis: int) -> list[Dims]:
    parts = of.avals[0].placed.parts(axis)
    for size in sizes:
        if size % parts:
            raise ShardingTypeError(
                f"split on sharded dims: sizes {sizes} of a sharded dimension are to be divisible by its {parts} "
                f"parts, in {of.avals[0].str_short()}"
            )
    return [of.dims[0]] * len(sizes)


split_p: Primitive = Primitive(
    "split",
    abstract_eval=_split_abstract_eval,
    placed=_split_placed,
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
        raise ValueError(f"[pad] padding_value must be a scalar, got {value.str_short()}")
    if len(padding_config) != len(x.shape) or any(len(c) != 3 for c in padding_config):
        raise ValueError(
            "[pad] padding_config needs a (low, high, interior) triple for each axis of "
            f"{x.str_short()}, got {padding_config}"
        )
    sizes = []
    for n, (low, high, interior) in zip(x.shape, padding_config):
        if interior < 0:
            raise ValueError(f"[pad] interior padding can't be negative, got {padding_config}")
        spread = n + interior * (n - 1 if n else 0)
        check_reach("pad", low, high, interior, spread)
        sizes.append(low + high + spread)
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
    return lax.select(inside, padded, lax.broadcast_in_dim(value, padded.shape, (0,))), 0


pad_p: Primitive = Primitive(
    "pad",
    abstract_eval=_pad_abstract_eval,
    placed=if_divided,
    lowering=_pad_lowering,
    jvp=LINEAR,
    transpose=_pad_transpose,
    batching=_pad_batching,
)
