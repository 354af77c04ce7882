"""Parts of arrays at places that a program computes: dynamic_slice, dynamic_update_slice and their
*_in_dim forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import (
    Primitive,
    ShapedArray,
    Zero,
    dtypes,
    get_aval,
    is_undefined_primal,
)  # fmt: skip
from lamina.core.array_class import Array
from lamina.core.placed import Dims, Operands, ShardingTypeError, if_divided, linear_in, spec
from lamina.lax import hlo
from lamina.lax.batching_rules import all_at_front, all_spread, at_front, batch_size, insert
from lamina.lax.checks import (
    canonical_axis,
    canonical_shape,
    check_same_dtypes,
    position_dtype,
    scalar_like,
)  # fmt: skip

Negatives = bool | Sequence[bool]


# ---- user functions ----------------------------------------------------------------------------
def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: Negatives = True,
) -> Array:
    """A part of operand of static sizes, from where the program says.

    operand                 an array.
    start_indices           an integer scalar for each axis, or a vector of them. Starts are clamped
                            so that the part lies within operand.
    slice_sizes             of the part, Python ints.
    allow_negative_indices  whether negative starts count from the end, of all axes or of each; if
                            not, they are clamped to 0.

    Raises TypeError where sizes exceed operand's or starts are not integers, ValueError where there
    is not one for each axis.

    >>> x = jnp.arange(5)
    >>> print(lax.dynamic_slice(x, (1,), (3,)), lax.dynamic_slice(x, (4,), (3,)))
    [1 2 3] [2 3 4]
    """
    starts = _starts("dynamic_slice", operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=canonical_shape(slice_sizes))


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """dynamic_slice along one axis, all of the others.

    operand                 an array.
    start_index             an integer scalar, which may be traced; clamped so that the part lies
                            within operand.
    slice_size              of the part, a Python int.
    axis                    counted from the end where negative.
    allow_negative_indices  whether a negative start counts from the end.

    Raises TypeError where slice_size exceeds operand's size; ValueError where there is no such
    axis.

    >>> print(lax.dynamic_slice_in_dim(jnp.arange(6).reshape(2, 3), 1, 2, axis=1))
    [[1 2]
     [4 5]]
    """
    starts, sizes, axis = _one_start("dynamic_slice_in_dim", operand, start_index, axis)
    sizes[axis] = int(slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The part of operand at one index along an axis, where the program says.

    operand                 an array.
    index                   an integer scalar, which may be traced; clamped to the axis.
    axis                    counted from the end where negative.
    keepdims                whether the axis stays, with size 1.
    allow_negative_indices  whether a negative index counts from the end.

    Raises TypeError where the index is no integer; ValueError where there is no such axis.

    >>> print(lax.dynamic_index_in_dim(jnp.arange(6).reshape(2, 3), 1, keepdims=False))
    [3 4 5]
    """
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else lax.squeeze(out, (axis,))


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: Negatives = True
) -> Array:
    """operand with `update` written over a part of it.

    operand                 an array.
    update                  an array of operand's dtype and rank, no larger along any axis.
    start_indices           where the part begins: an integer scalar for each axis, or a vector of
                            them. Starts are clamped so that all of update is written.
    allow_negative_indices  whether negative starts count from the end, of all axes or of each.

    Raises TypeError where dtypes differ or update does not fit.

    >>> print(lax.dynamic_update_slice(jnp.zeros(5, int), jnp.array([1, 2]), (3,)))
    [0 0 0 1 2]
    """
    starts = _starts("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """dynamic_update_slice that starts at 0 along all axes but one.

    operand                 an array.
    update                  an array of operand's dtype and rank, no larger along any axis.
    start_index             an integer scalar, which may be traced; clamped so that all of update is
                            written.
    axis                    counted from the end where negative.
    allow_negative_indices  whether a negative start counts from the end.

    Raises TypeError where dtypes differ or update does not fit.

    >>> print(lax.dynamic_update_slice_in_dim(jnp.zeros((2, 3)), jnp.ones((2, 1)), 1, axis=1))
    [[0. 1. 0.]
     [0. 1. 0.]]
    """
    starts, _, _ = _one_start("dynamic_update_slice_in_dim", operand, start_index, axis)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """operand with `update` written at one index along an axis.

    operand                 an array.
    update                  what is written: of operand's dtype and its shape without that axis, or
                            with size 1 there.
    index                   an integer scalar, which may be traced; clamped to the axis.
    axis                    counted from the end where negative.
    allow_negative_indices  whether a negative index counts from the end.

    Raises TypeError where dtypes differ or update does not fit.

    >>> print(lax.dynamic_update_index_in_dim(jnp.zeros((2, 3)), jnp.ones(3), 1, axis=0))
    [[0. 0. 0.]
     [1. 1. 1.]]
    """
    axis = canonical_axis("dynamic_update_index_in_dim", axis, len(np.shape(operand)))
    if len(np.shape(update)) != len(np.shape(operand)):
        update = lax.expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


def _one_start(name: str, operand: Any, start: Any, axis: int) -> tuple[list[Any], list[int], int]:
    shape = np.shape(operand)
    axis = canonical_axis(name, axis, len(shape))
    starts: list[Any] = [scalar_like(start, 0)] * len(shape)
    starts[axis] = start
    return starts, list(shape), axis


def _starts(name: str, operand: Any, indices: Any, negatives: Negatives = True) -> list[Any]:
    """The starts as scalars, negative ones counted from the end along the axes that allow it."""
    shape = np.shape(operand)
    if not isinstance(indices, tuple | list):
        if len(np.shape(indices)) != 1:
            raise ValueError(
                f"[{name}] start_indices must be a sequence of scalars or an array of rank 1, got "
                f"shape {np.shape(indices)}"
            )
        indices = [
            lax.squeeze(lax.slice(indices, (i,), (i + 1,)), (0,)) for i in range(indices.shape[0])
        ]
    if len(indices) != len(shape):
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({len(shape)}), got "
            f"{len(indices)}"
        )
    allowed = [negatives] * len(shape) if isinstance(negatives, bool) else list(negatives)
    if len(allowed) != len(shape):
        raise ValueError(
            f"[{name}] allow_negative_indices must be a bool or one for each of the {len(shape)} axes, "
            f"got {negatives!r}"
        )
    found = [_from_end(name, i, n, a) for i, n, a in zip(indices, shape, allowed)]
    if len({get_aval(i).dtype for i in indices}) > 1 or len({i.dtype for i in found}) < 2:
        return found
    # A long axis needed a wider type than was given for all.
    widest = max((i.dtype for i in found), key=lambda d: d.itemsize)
    return [lax.convert_element_type(i, widest) for i in found]


def _from_end(name: str, start: Any, size: int, negative_allowed: bool) -> Any:
    aval = get_aval(start)
    if aval.shape:
        raise TypeError(f"[{name}] start_indices must be scalars, got {aval.str_short()}")
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"[{name}] start_indices must be integers, got dtype {aval.dtype.name}")
    if isinstance(start, int | np.integer) or type(start) is np.ndarray:
        start = int(start)
        if start < 0 and not negative_allowed:
            raise ValueError(
                f"[{name}] index {start} is negative, and allow_negative_indices is False"
            )
        start = start + size if start < 0 else start
        fits = start <= dtypes.iinfo(aval.dtype).max
        return np.array(start, aval.dtype if fits else position_dtype(size))
    if dtypes.is_unsigned(aval.dtype) or not negative_allowed:
        return start
    # A size beyond the index type (an int8 index into a long axis) can't be added.
    if size > dtypes.iinfo(aval.dtype).max:
        start = lax.convert_element_type(start, position_dtype(size))
    negative = lax.lt(start, scalar_like(start, 0))
    return lax.select(negative, lax.add(start, scalar_like(start, size)), start)


# ---- dynamic_slice -----------------------------------------------------------------------------
def _check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    if len(starts) != len(x.shape) or any(
        s.shape or not dtypes.is_integer(s.dtype) or s.dtype != starts[0].dtype for s in starts
    ):
        raise TypeError(
            f"[{name}] {x.str_short()} needs a scalar start of one integer dtype for each axis, "
            f"got {', '.join(s.str_short() for s in starts)}"
        )


def _dynamic_slice_abstract_eval(x: ShapedArray, *starts: ShapedArray,
                                 slice_sizes: tuple[int, ...]) -> ShapedArray:  # fmt: skip
    _check_starts("dynamic_slice", x, starts)
    if len(slice_sizes) != len(x.shape) or any(a > b for a, b in zip(slice_sizes, x.shape)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{slice_sizes} for operand shape {x.shape}."
        )
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


def _dynamic_slice_lowering(ctx: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    return hlo.dynamic_slice(x, starts, slice_sizes)


def _dynamic_slice_jvp(primals: Any, tangents: Any, *, slice_sizes: Any) -> tuple[Any, Any]:
    (x, *starts), (g, *_) = primals, tangents
    out = dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes)
    if type(g) is Zero:
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, dynamic_slice_p.bind(g, *starts, slice_sizes=slice_sizes)


def _dynamic_slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: Any) -> list[Any]:
    zeros = lax.as_typed(lax.full(x.aval.shape, 0, x.aval.dtype), x.aval.to_cotangent_aval())  # of terms, too
    return [dynamic_update_slice_p.bind(zeros, ct, *starts), *[None] * len(starts)]


def _window_starts(starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """The starts of every example as rows of one array, in the order of the axes."""
    rows = all_spread(starts, dims)
    return lax.concatenate([lax.expand_dims(r, (1,)) for r in rows], 1)


def _dynamic_slice_batching(args: Any, dims: Any, *, slice_sizes: Any) -> tuple[Any, int]:
    (x, *starts), (d, *start_dims) = args, dims
    n = len(slice_sizes)
    if all(s is None for s in start_dims):
        zero = scalar_like(starts[0], 0) if starts else np.int32(0)
        sizes = insert(slice_sizes, d, x.shape[d])
        return dynamic_slice_p.bind(x, *insert(starts, d, zero), slice_sizes=sizes), d
    # One start per example: gather one window for each.
    size = batch_size(args, dims)
    indices = _window_starts(starts, start_dims)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, n + 1)),
        collapsed_slice_dims=(),
        start_index_map=tuple(range(n)) if d is None else tuple(range(1, n + 1)),
        operand_batching_dims=() if d is None else (0,),
        start_indices_batching_dims=() if d is None else (0,),
    )
    if d is not None:
        # Windows of an empty batch are empty.
        x, slice_sizes = at_front(x, d, size), (min(1, size), *slice_sizes)
    out = lax.gather(x, indices, numbers, slice_sizes, mode=lax.GatherScatterMode.CLIP)
    return out, 0


dynamic_slice_p: Primitive = Primitive(
    "dynamic_slice",
    abstract_eval=_dynamic_slice_abstract_eval,
    placed=if_divided,
    lowering=_dynamic_slice_lowering,
    jvp=_dynamic_slice_jvp,
    sums=linear_in(0),
    transpose=_dynamic_slice_transpose,
    batching=_dynamic_slice_batching,
)


# ---- dynamic_update_slice ----------------------------------------------------------------------
def _update_abstract_eval(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    _check_starts("dynamic_update_slice", x, starts)
    check_same_dtypes("dynamic_update_slice", (x, update))
    if len(update.shape) != len(x.shape):
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {x.shape}."
        )
    if any(a > b for a, b in zip(update.shape, x.shape)):
        raise TypeError(
            "dynamic_update_slice update shape must be no larger than operand shape, got update "
            f"shape {update.shape} for operand shape {x.shape}."
        )
    return ShapedArray(x.shape, x.dtype)


def _update_lowering(ctx: Any, x: Any, update: Any, *starts: Any) -> Any:
    return hlo.dynamic_update_slice(x, update, starts)


def _filled(t: Any) -> Any:
    return lax.full(t.aval.shape, 0, t.aval.dtype) if type(t) is Zero else t


def _update_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    x, update, *starts = primals
    out = dynamic_update_slice_p.bind(x, update, *starts)
    g, g_update = tangents[:2]
    if type(g) is Zero and type(g_update) is Zero:
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, dynamic_update_slice_p.bind(_filled(g), _filled(g_update), *starts)


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> list[Any]:
    shape = update.aval.shape if is_undefined_primal(update) else np.shape(update)
    ct_x = ct_update = None
    if is_undefined_primal(x):
        ct_x = dynamic_update_slice_p.bind(ct, lax.full(shape, 0, ct.dtype), *starts)
    if is_undefined_primal(update):
        ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=shape)
    return [ct_x, ct_update, *[None] * len(starts)]


def _update_batching(args: Any, dims: Any) -> tuple[Any, int]:
    (x, update, *starts), (d, update_dim, *start_dims) = args, dims
    size, n = batch_size(args, dims), len(starts)
    if all(s is None for s in start_dims):
        x, update = all_at_front((x, update), (d, update_dim))
        zero = scalar_like(starts[0], 0) if starts else np.int32(0)
        return dynamic_update_slice_p.bind(x, update, zero, *starts), 0
    # One start per example: scatter one window into each.
    x, update = at_front(x, d, size), at_front(update, update_dim, size)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, n + 1)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=tuple(range(1, n + 1)),
        operand_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
    )
    indices = _window_starts(starts, start_dims)
    out = lax.scatter(
        x, indices, update, numbers,
        indices_are_sorted=True, unique_indices=True, mode=lax.GatherScatterMode.CLIP,
    )  # fmt: skip
    return out, 0


def _update_placed(of: Operands, out: ShapedArray) -> Dims:
    if any(of.dims[1]) and of.dims[0] != of.dims[1]:
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding. Got operand sharding "
            f"{spec(of.dims[0])} and update sharding {spec(of.dims[1])}"
        )
    return of.dims[0]


dynamic_update_slice_p: Primitive = Primitive(
    "dynamic_update_slice",
    abstract_eval=_update_abstract_eval,
    placed=_update_placed,
    lowering=_update_lowering,
    jvp=_update_jvp,
    sums=linear_in(0, 1),
    transpose=_update_transpose,
    batching=_update_batching,
)
