"""Reading elements by index: x[...] in all its forms, take, take_along_axis.

Static integers and slices are slices of the array, traced integers dynamic slices, index arrays
one gather. Integers out of bounds are clamped in x[...]; take fills by default.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval, is_evaluating
from lamina.lax.checks import position_dtype
from lamina.lax.gather import single_elements
from lamina.lax.indexing import GatherDimensionNumbers, GatherScatterMode
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.index_plans import (
    ARGUMENTS,
    INDEXED,
    Entry,
    OutOfBounds,
    Plan,
    make_plan,
    with_arrays,
)  # fmt: skip
from lamina.numpy.index_runs import as_slices
from lamina.numpy.negative_indices import without_negative, wrapped
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    canonical_axis,
    check_arraylike,
    literal,
    refuse_out,
    shape_of,
)  # fmt: skip

_CLAMPING = (None, "clip", "promise_in_bounds", GatherScatterMode.CLIP,
             GatherScatterMode.PROMISE_IN_BOUNDS)  # fmt: skip


def getitem(x: Array, index: Any, *, mode: Any = None, fill_value: Any = None,
            indices_are_sorted: bool = False, unique_indices: bool = False,
            wrap_negative_indices: bool = True) -> Array:  # fmt: skip
    """x[index]. mode says what indices out of bounds give: "clip", "fill" (fill_value), "wrap" or
    "promise_in_bounds"; by default they are clamped."""
    clamp = mode in _CLAMPING
    index = with_arrays(index)
    check_mode(mode)
    if not wrap_negative_indices:
        index = without_negative(index, x.shape, clamp=clamp)
    movable = is_evaluating() and not isinstance(x, Tracer)
    sliced = None if movable else as_slices(index, tuple(x.shape))
    if sliced is not None:
        axis, parts = sliced
        taken = [getitem(x, part) for part in parts]
        return taken[0] if len(taken) == 1 else lax.concatenate(taken, axis)
    index = wrapped(index, x.shape) if mode == "wrap" else index
    try:
        plan, arrays = make_plan(index, tuple(x.shape), clamp=clamp, movable=movable)
    except OutOfBounds:
        # Only a gather knows of elements that are not there.
        plan, arrays = make_plan(as_arrays(index), tuple(x.shape), clamp=clamp, movable=movable)
    if (
        all(e.is_whole(n) for e, n in zip(plan.entries, x.shape, strict=False))
        and not plan.expanded
        and (len(plan.entries) == len(x.shape))
    ):
        return x
    if mode in ("wrap", "clip", GatherScatterMode.CLIP):
        mode = GatherScatterMode.CLIP
    elif mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return take_by_plan(x, arrays, plan=plan, mode=mode, fill_value=fill_value,
                        sorted_=bool(indices_are_sorted), unique=bool(unique_indices))  # fmt: skip


def check_mode(mode: Any) -> None:
    """Raises ValueError for a mode that there is not."""
    if mode != "wrap":
        GatherScatterMode.from_any(mode)


def as_arrays(index: Any) -> Any:
    """An index expression with its integers as arrays."""
    items = index if isinstance(index, tuple) else (index,)
    return tuple(_lifted(i) for i in items)


def _lifted(item: Any) -> Any:
    number = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
    if number or (isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu"):
        return asarray(np.int32(max(min(int(item), 2**31 - 1), -(2**31))))
    return item


@compiled(static=("plan", "mode", "fill_value", "sorted_", "unique"))
def take_by_plan(x: Any, arrays: list[Any], *, plan: Plan, mode: Any, fill_value: Any,
                 sorted_: bool, unique: bool) -> Array:  # fmt: skip
    """The elements that a plan names."""
    if plan.expanded:
        x = lax.expand_dims(x, plan.expanded)
    filling = GatherScatterMode.from_any(mode) in (
        GatherScatterMode.FILL_OR_DROP,
        GatherScatterMode.ONE_HOT,
    )
    if plan.has_arrays or (filling and any(e.kind == "scalar" for e in plan.entries)):
        x = _take_slices(x, plan)
        return _gather(x, arrays, plan, mode, fill_value, sorted_, unique)
    x = _take_windows(x, arrays, plan) if arrays else _take_slices(x, plan)
    dropped = [a for a, e in enumerate(_axes(plan)) if e.kind in ("int", "moved", "scalar")]
    x = lax.squeeze(x, dropped) if dropped else x
    added, position = [], 0
    for e in plan.entries:
        if e.kind == "new":
            added.append(position)
        position += e.kind in ("new", "slice", "window", "range")
    return lax.expand_dims(x, added) if added else x


def _axes(plan: Plan) -> list[Entry]:
    """The entries that take an axis, in the order of axes."""
    return [e for e in plan.entries if e.kind != "new"]


class _Range(NamedTuple):
    """The positions of an axis that a static slice takes, in order."""

    start: int
    limit: int
    step: int

    @classmethod
    def of(cls, e: Entry, n: int) -> _Range:
        """Those of an entry on an axis of size n: all, where it is no slice and no integer."""
        if e.kind not in ("slice", "int"):
            return cls(0, n, 1)
        first, last = e.start, e.start + (e.size - 1) * e.step
        if not e.size:
            return cls(first, first, 1)
        return cls(min(first, last), max(first, last) + 1, abs(e.step))


def _take_slices(x: Array, plan: Plan) -> Array:
    """The static slices and integers of a plan; integers leave their axis with size 1."""
    ranges = [_Range.of(e, n) for e, n in zip(_axes(plan), x.shape, strict=True)]
    return _reversed(_sliced(x, ranges), plan)


def _sliced(x: Array, ranges: list[_Range]) -> Array:
    if ranges == [(0, n, 1) for n in x.shape]:
        return x
    starts, limits, steps = map(list, zip(*ranges, strict=True))
    return lax.slice(x, starts, limits, None if set(steps) == {1} else steps)


def _reversed(x: Array, plan: Plan) -> Array:
    turned = [axis for axis, e in enumerate(_axes(plan)) if e.step < 0]
    return lax.rev(x, turned) if turned else x


def _take_windows(x: Array, arrays: list[Any], plan: Plan) -> Array:
    """The windows at traced positions, integers among them with size 1, and of these the static slices:
    the array is read once, where both say."""
    given = iter(arrays)
    dtype = index_dtype(arrays, x.shape)
    starts: list[Any] = []
    ranges = []
    for axis, e in enumerate(_axes(plan)):
        n = x.shape[axis]
        if e.kind in ARGUMENTS:
            starts.append(_start(next(given), n, dtype))
            ranges.append(_Range(0, e.size, 1))
        else:
            taken = _Range.of(e, n)
            starts.append(dtype.type(taken.start))
            ranges.append(_Range(0, taken.limit - taken.start, taken.step))
    x = lax.dynamic_slice(x, starts, [taken.limit for taken in ranges])
    return _reversed(_sliced(x, ranges), plan)


def _start(i: Any, n: int, dtype: np.dtype) -> Any:
    """An index as the start of a window: dynamic_slice takes starts of one dtype."""
    have = get_aval(i).dtype
    if dtypes.is_unsigned(have) and have.itemsize >= dtype.itemsize:
        i = lax.min(i, literal(i, n))  # stays beyond the end
    return i if have == dtype else lax.convert_element_type(i, dtype)


# ---- gather ------------------------------------------------------------------------------------
def index_dtype(arrays: list[Any], shape: tuple[int, ...]) -> np.dtype:
    """The dtype in which indices are computed: at least int32, 64 bits where they are needed."""
    longest = position_dtype(max(shape, default=0))
    return np.dtype(np.int64) if any(get_aval(i).dtype.itemsize == 8 for i in arrays) else longest


def normalized(index: Any, n: int, dtype: np.dtype) -> Any:
    """An index array with negative entries counted from the end. Unsigned ones are none, also where
    `dtype` cannot hold them: they stay out of bounds."""
    signed = not dtypes.is_unsigned(get_aval(index).dtype)
    if isinstance(index, (np.ndarray, np.generic, int)):
        values = np.asarray(index).astype(dtype)
        return np.where(values < 0, values + dtype.type(n), values) if signed else values
    index = lax.convert_element_type(index, dtype)
    if not signed:
        return index
    return lax.select(lax.lt(index, literal(index, 0)), lax.add(index, literal(index, n)), index)


def stacked_indices(indices: list[Any], shape: tuple[int, ...]) -> Any:
    """Index arrays as components along a last axis, broadcast to `shape`."""
    if len(indices) == 1:
        return lax.broadcast_in_dim(broadcast_to_shape(indices[0], shape), (*shape, 1),
                                    tuple(range(len(shape))))  # fmt: skip
    return lax.concatenate(
        [lax.broadcast_in_dim(broadcast_to_shape(i, shape), (*shape, 1), tuple(range(len(shape))))
         for i in indices], len(shape),
    )  # fmt: skip


def _gather(x: Array, arrays: list[Any], plan: Plan, mode: Any, fill_value: Any, sorted_: bool,
            unique: bool) -> Array:  # fmt: skip
    axes = _axes(plan)
    windows = [(a, e) for a, e in enumerate(axes) if e.kind == "window"]
    if windows:  # first the windows, then the index arrays in them
        moving = [
            i for i, e in zip(arrays, _with_arguments(plan), strict=True) if e.kind == "window"
        ]
        starts: list[Any] = [np.int32(0)] * len(axes)  # as the windows'
        sizes = list(x.shape)
        for (axis, e), start in zip(windows, moving, strict=True):
            starts[axis], sizes[axis] = start, e.size
        x = lax.dynamic_slice(x, starts, sizes)
    indexed = [a for a, e in enumerate(axes) if e.kind in INDEXED]
    arrays = [i for i, e in zip(arrays, _with_arguments(plan), strict=True) if e.kind != "window"]
    dtype = index_dtype(arrays, x.shape)
    shape = broadcast_shapes(*map(shape_of, arrays))
    indices = stacked_indices(
        [normalized(i, x.shape[a], dtype) for i, a in zip(arrays, indexed, strict=True)], shape
    )
    at = 0 if plan.front else sum(e.kind not in INDEXED for e in axes[: indexed[0]])
    if 0 in shape:  # of an empty axis, too, nothing can be taken
        kept = [n for a, n in enumerate(x.shape) if a not in indexed]
        none = lax.full((*kept[:at], *shape, *kept[at:]), 0, x.dtype)
        return _with_new_axes(none, plan, len(shape))
    rank = len(shape) + len(axes) - len(indexed)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(d for d in range(rank) if not at <= d < at + len(shape)),
        collapsed_slice_dims=tuple(indexed), start_index_map=tuple(indexed),
    )  # fmt: skip
    slices = [1 if a in indexed else n for a, n in enumerate(x.shape)]
    out = lax.gather(x, indices, numbers, slices, mode=mode, fill_value=fill_value,
                     indices_are_sorted=sorted_, unique_indices=unique)  # fmt: skip
    return _with_new_axes(out, plan, len(shape))


def _with_arguments(plan: Plan) -> list[Entry]:
    return [e for e in plan.entries if e.kind in ARGUMENTS]


def _with_new_axes(out: Array, plan: Plan, batch_rank: int) -> Array:
    position, added, placed = 0, [], False
    if plan.front:
        position, placed = batch_rank, True
    for e in plan.entries:
        if e.kind in INDEXED:
            if not placed:
                position, placed = position + batch_rank, True
        else:
            if e.kind == "new":
                added.append(position)
            position += 1
    return lax.expand_dims(out, added) if added else out


# ---- take --------------------------------------------------------------------------------------
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
         mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: Any = None) -> Array:  # fmt: skip
    """The slices of a with these indices along an axis (None: of the flattened array).

    a                   an array
    indices             an array of integers of any shape; negative ones count from the end
    axis                the axis; None: the flattened array
    out                 must be None: arrays cannot be written to
    mode                "fill" (default), "clip" or "wrap"
    unique_indices      a promise that no index comes twice
    indices_are_sorted  a promise that they ascend
    fill_value          what indices out of bounds give

    Indices out of bounds give fill_value, by default NaN for floats, the least integer for signed
    and the greatest for unsigned ones; other modes are "clip" and "wrap".

    >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0])).tolist()
    [30, 10]
    """
    refuse_out("take", out)
    check_arraylike("take", a, indices)
    a = asarray(a)
    # An ndarray's elements are known.
    indices = indices if isinstance(indices, np.ndarray) else asarray(indices)
    if indices.dtype == np.bool_:  # no mask here: the elements 0 and 1
        indices = indices.astype(np.int32)
    if not dtypes.is_integer(indices.dtype):
        raise ValueError(f"take: indices must have an integer type, got {indices.dtype.name}: .astype(int)")
    if mode == "raise":
        raise NotImplementedError(f"The 'raise' mode to {library}.numpy.take is not supported.")
    if axis is None:
        a, at = lax.reshape(a, (a.size,)), 0
    else:
        at = canonical_axis(axis, len(a.shape))
    if a.shape[at] == 0 and indices.size:
        raise IndexError(f"cannot do a non-empty {library}.numpy.take() from an empty axis.")
    if mode == "clip":  # negative indices too
        last = max(a.shape[at] - 1, 0)
        if isinstance(indices, np.ndarray):
            indices = np.clip(indices, 0, last)
        else:
            indices = lax.clamp(literal(indices, 0), indices, literal(indices, last))
    index = (*(slice(None),) * at, indices)
    return getitem(
        a,
        index,
        mode=mode or "fill",
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """arr[..., indices[..., i, ...], ...]: indices along an axis, other axes going together.

    arr                    an array
    indices                integers, with as many axes as arr
    axis                   the axis; None: of the flattened array
    mode                   as for `take`, or "one_hot"
    fill_value             what indices out of bounds give
    wrap_negative_indices  whether negative ones count from the end

    Indices out of bounds are filled as by `take`, with mode "one_hot" by zeros; of an empty axis 0 is
    read. Negative ones count from the end, or with wrap_negative_indices=False are out of bounds.

    >>> jnp.take_along_axis(jnp.array([[3, 1], [2, 4]]), jnp.array([[1], [0]]), axis=1).tolist()
    [[1], [2]]
    """
    check_arraylike("take_along_axis", arr, indices)
    arr, indices = asarray(arr), asarray(indices)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError("take_along_axis indices must be of integer type, got "
                        f"{indices.dtype.name}")  # fmt: skip
    if axis is None:
        if len(indices.shape) != 1:
            raise ValueError("take_along_axis indices must be 1D if axis=None, got shape "
                             f"{indices.shape}")  # fmt: skip
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    if len(arr.shape) != len(indices.shape):
        raise ValueError("indices and arr must have the same number of dimensions; "
                         f"{len(indices.shape)} vs. {len(arr.shape)}")  # fmt: skip
    at = canonical_axis(axis, len(arr.shape))
    check_mode(mode)
    return _take_along_axis(arr, indices, axis=at, mode=mode or "fill", fill_value=fill_value,
                            wrap=bool(wrap_negative_indices))  # fmt: skip


@compiled(static=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(x: Any, indices: Any, *, axis: int, mode: Any, fill_value: Any, wrap: bool
                     ) -> Array:  # fmt: skip
    ndim = len(x.shape)
    others = [i for i in range(ndim) if i != axis]
    for i in others:
        if x.shape[i] != indices.shape[i] and 1 not in (x.shape[i], indices.shape[i]):
            raise ValueError(
                f"take_along_axis: sizes of axis {i} differ: {x.shape} and {indices.shape}"
            )
    sizes = tuple(
        indices.shape[i] if i == axis or x.shape[i] == 1 else x.shape[i] for i in range(ndim)
    )
    indices = broadcast_to_shape(indices, sizes)
    if not x.shape[axis]:
        return lax.full(sizes, 0, x.dtype)
    x = broadcast_to_shape(x, tuple(x.shape[i] if i == axis else sizes[i] for i in range(ndim)))
    dtype = index_dtype([indices], x.shape)
    if mode == "wrap":
        from lamina.numpy.arithmetic import remainder

        indices, mode = remainder(indices, literal(indices, x.shape[axis])), "clip"
    index = (
        normalized(indices, x.shape[axis], dtype)
        if wrap
        else lax.convert_element_type(indices, dtype)
    )
    if 0 in indices.shape:
        return lax.full(indices.shape, 0, x.dtype)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), tuple(others), tuple(others))
    return lax.gather(x, lax.expand_dims(index, (ndim,)), numbers, single_elements(x.shape, axis),
                      mode=mode, fill_value=fill_value)  # fmt: skip
