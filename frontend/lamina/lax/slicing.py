"""Parts of arrays at places known when tracing: slice, slice_in_dim, index_in_dim."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import LINEAR, Primitive, ShapedArray
from lamina.core.array_class import Array
from lamina.core.placed import if_divided
from lamina.lax import hlo
from lamina.lax.batching_rules import insert
from lamina.lax.checks import canonical_axis, scalar_like, static_ints


def slice(operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Array:  # fmt: skip
    """The part of operand between static bounds.

    operand        an array.
    start_indices  the first index taken along each axis, from 0.
    limit_indices  where it ends along each axis, at most the axis' size. Nothing is clamped and
                   negative numbers do not count from the end.
    strides        every how manieth element is taken along each axis; None: all.

    Raises TypeError where bounds are out of range or not one for each axis.

    >>> print(lax.slice(jnp.arange(10), (1,), (8,), (3,)))
    [1 4 7]
    """
    return slice_p.bind(
        operand,
        start_indices=static_ints("slice", "start_indices", start_indices),
        limit_indices=static_ints("slice", "limit_indices", limit_indices),
        strides=None if strides is None else static_ints("slice", "strides", strides),
    )


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1,
                 axis: int = 0) -> Array:  # fmt: skip
    """operand[start:limit:stride] along one axis, all of the others.

    operand                   an array.
    start_index, limit_index  Python ints, counted from the end where negative; None: from the
                              first, to the last.
    stride                    a positive int.
    axis                      counted from the end where negative.

    Raises TypeError where the bounds are not in range or the wrong way round; ValueError where
    there is no such axis.

    >>> print(lax.slice_in_dim(jnp.arange(6).reshape(2, 3), 1, None, axis=1))
    [[1 2]
     [4 5]]
    """
    shape = np.shape(operand)
    axis = canonical_axis("slice_in_dim", axis, len(shape))
    size = shape[axis]
    start, limit = (
        default if i is None else i + size if i < 0 else operator.index(i)
        for i, default in ((start_index, 0), (limit_index, size))
    )
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    if limit < start:
        raise TypeError(
            f"slice limit_indices must be greater than or equal to start_indices, got {start_index} "
            f"and {limit_index} along axis {axis} of size {size}"
        )
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The part of operand at one static index along an axis.

    operand   an array.
    index     a Python int, counted from the end where negative.
    axis      counted from the end where negative.
    keepdims  whether the axis stays, with size 1.

    Raises IndexError where there is no such index, ValueError where there is no such axis.

    >>> print(lax.index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False))
    [2 5]
    """
    shape = np.shape(operand)
    axis = canonical_axis("index_in_dim", axis, len(shape))
    size = shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index_in_dim: index {index} is out of bounds for axis {axis} with size {size}")
    index %= size
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else lax.squeeze(out, (axis,))


def _slice_abstract_eval(x: ShapedArray, *, start_indices: tuple[int, ...],
                         limit_indices: tuple[int, ...], strides: Any) -> ShapedArray:  # fmt: skip
    n = len(x.shape)
    steps = strides if strides is not None else (1,) * n
    if not len(start_indices) == len(limit_indices) == len(steps) == n:
        raise TypeError(
            "[slice] start_indices, limit_indices and strides need an entry for each axis of "
            f"{x.str_short()}, got {start_indices}, {limit_indices} and {strides}"
        )
    sizes = []
    for size, start, limit, step in zip(x.shape, start_indices, limit_indices, steps):
        if not 0 <= start <= limit <= size or step <= 0:
            raise TypeError(
                f"[slice] {x.str_short()} has no part from {start_indices} to {limit_indices} with "
                f"strides {strides}: need 0 <= start <= limit <= size and positive strides"
            )
        sizes.append(-(-(limit - start) // step))
    return ShapedArray(tuple(sizes), x.dtype, x.weak_type)


def _slice_lowering(
    ctx: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any
) -> Any:
    steps = strides if strides is not None else [1] * len(start_indices)
    ends = zip(steps, start_indices, limit_indices)
    steps = [min(n, max(1, limit - start)) for n, start, limit in ends]  # beyond, all are the same
    return hlo.slice(x, start_indices, limit_indices, steps)


def _slice_transpose(
    ct: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any
) -> Any:
    config = []
    steps = strides if strides is not None else (1,) * len(start_indices)
    for size, start, n, step in zip(x.aval.shape, start_indices, ct.shape, steps):
        covered = (n - 1) * step + 1 if n else 0
        config.append((start, size - start - covered, step - 1))
    return [lax.pad(ct, scalar_like(ct, 0), config)]


def _slice_batching(args: Any, dims: Any, *, start_indices: Any, limit_indices: Any,
                    strides: Any) -> tuple[Any, int]:  # fmt: skip
    (x,), (d,) = args, dims
    out = slice_p.bind(
        x,
        start_indices=insert(start_indices, d, 0),
        limit_indices=insert(limit_indices, d, x.shape[d]),
        strides=None if strides is None else insert(strides, d, 1),
    )
    return out, d


slice_p: Primitive = Primitive(
    "slice",
    abstract_eval=_slice_abstract_eval,
    placed=if_divided,
    lowering=_slice_lowering,
    jvp=LINEAR,
    transpose=_slice_transpose,
    batching=_slice_batching,
)
