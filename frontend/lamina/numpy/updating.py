"""Functional updates: x.at[index].set(y) and its siblings give a changed copy of x.

Where the index is static, contiguous and in bounds the update is one dynamic_update_slice, else one
scatter. By default indices out of bounds change nothing; negative ones count from the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.placed import undecided
from lamina.core.trace import Tracer, get_aval, is_evaluating
from lamina.lax.checks import position_dtype
from lamina.lax.convert import convert as convert_weakly
from lamina.lax.indexing import GatherScatterMode, ScatterDimensionNumbers
from lamina.lax.scatter import apply_times
from lamina.numpy._eager import compiled
from lamina.numpy.creation import ones_like
from lamina.numpy.index_plans import (
    ARGUMENTS,
    INDEXED,
    Entry,
    OutOfBounds,
    Plan,
    make_plan,
    with_arrays,
)
from lamina.numpy.index_runs import as_slices
from lamina.numpy.index_strategies import check_strategy
from lamina.numpy.indexing import (
    as_arrays,
    check_mode,
    getitem,
    index_dtype,
    normalized,
    stacked_indices,
)  # fmt: skip
from lamina.numpy.negative_indices import without_negative, wrapped
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    common_type,
    shape_of,
    user_depth,
)  # fmt: skip

_SCATTERS: dict[str, Callable[..., Array]] = {
    "set": lax.scatter, "add": lax.scatter_add, "sub": lax.scatter_sub, "mul": lax.scatter_mul,
    "min": lax.scatter_min, "max": lax.scatter_max,
}  # fmt: skip
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new, "add": lax.add, "sub": lax.sub, "mul": lax.mul, "min": lax.min,
    "max": lax.max,
}  # fmt: skip


class IndexUpdateHelper:
    """x.at: x.at[index] names elements of x for an update."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """x.at[index]: each method gives x with the named elements changed.

    Keywords of all methods: `mode` ("drop" by default, "clip", "wrap", "promise_in_bounds"; "fill"
    is "drop") for indices out of bounds; `indices_are_sorted` and `unique_indices` promise that
    they are; `wrap_negative_indices=False` has negative integers out of bounds instead of counted
    from the end; `out_sharding` says how the result lies on devices. Repeated indices: add, multiply,
    min and max apply every one; with set any may win.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any) -> None:
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, fill_value: Any = None, wrap_negative_indices: bool = True,
            strategy: str = "auto", out_sharding: Any = None) -> Array:  # fmt: skip
        """x[index] with a choice of what indices out of bounds give.

        out_sharding  how the result lies on devices.

        strategy  "static_slice" and "dynamic_slice" raise TypeError for an index that is more than
                  that; "auto" and "gather" take any.
        """
        check_strategy(strategy, self.index, self.array.shape)
        with undecided(out_sharding is not None):
            out = getitem(
                self.array,
                self.index,
                mode=mode,
                fill_value=fill_value,
                indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices,
                wrap_negative_indices=wrap_negative_indices,
            )
        return out if out_sharding is None else lax.under(out, out_sharding)

    @takes_out_sharding
    def set(self, values: ArrayLike, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: Any = None,
            wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] = values."""
        return _update("set", self.array, self.index, values, indices_are_sorted, unique_indices,
                       mode, wrap_negative_indices)  # fmt: skip

    @takes_out_sharding
    def add(self, values: ArrayLike, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: Any = None,
            wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] += values."""
        return _update("add", self.array, self.index, values, indices_are_sorted, unique_indices,
                       mode, wrap_negative_indices)  # fmt: skip

    @takes_out_sharding
    def subtract(self, values: ArrayLike, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: Any = None,
                 wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] -= values."""
        return _update("sub", self.array, self.index, values, indices_are_sorted, unique_indices,
                       mode, wrap_negative_indices)  # fmt: skip

    @takes_out_sharding
    def multiply(self, values: ArrayLike, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: Any = None,
                 wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] *= values."""
        return _update("mul", self.array, self.index, values, indices_are_sorted, unique_indices,
                       mode, wrap_negative_indices)  # fmt: skip

    mul = multiply

    @takes_out_sharding
    def divide(self, values: ArrayLike, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: Any = None,
               wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] /= values."""
        from lamina.numpy.arithmetic import divide

        divisor = _update("mul", ones_like(self.array), self.index, values, indices_are_sorted,
                          unique_indices, mode, wrap_negative_indices)  # fmt: skip
        return divide(self.array, divisor)

    @takes_out_sharding
    def power(self, values: ArrayLike, *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: Any = None,
              wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] **= values."""
        from lamina.numpy.arithmetic import power

        exponent = _update("mul", ones_like(self.array), self.index, values, indices_are_sorted,
                           unique_indices, mode, wrap_negative_indices)  # fmt: skip
        return power(self.array, exponent)

    @takes_out_sharding
    def min(self, values: ArrayLike, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: Any = None,
            wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] = minimum(x[index], values)."""
        return _update("min", self.array, self.index, values, indices_are_sorted, unique_indices,
                       mode, wrap_negative_indices)  # fmt: skip

    @takes_out_sharding
    def max(self, values: ArrayLike, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: Any = None,
            wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] = maximum(x[index], values)."""
        return _update("max", self.array, self.index, values, indices_are_sorted, unique_indices,
                       mode, wrap_negative_indices)  # fmt: skip

    @takes_out_sharding
    def apply(self, func: Callable[[Array], Array], *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: Any = None,
              wrap_negative_indices: bool = True) -> Array:  # fmt: skip
        """x[index] = func(x[index]) for an elementwise func, as often as an index is repeated.

        Differentiable where the index is without arrays or unique_indices is promised.
        """
        has_arrays = any(np.ndim(i) for i in self._items() if i is not None)
        if unique_indices or not has_arrays:
            wrap = wrap_negative_indices
            values = func(
                self.get(mode="clip" if mode is None else mode, wrap_negative_indices=wrap)
            )
            return self.set(
                values,
                indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices,
                mode=mode,
                wrap_negative_indices=wrap,
            )
        counts = IndexUpdateRef(lax.full(self.array.shape, 0, np.int32), self.index)
        times = counts.add(1, indices_are_sorted=indices_are_sorted, mode=mode,
                           wrap_negative_indices=wrap_negative_indices)  # fmt: skip
        return apply_times(func, self.array, times)

    def _items(self) -> tuple[Any, ...]:
        index = with_arrays(self.index)
        return index if isinstance(index, tuple) else (index,)


def _fitted(y: Any, shape: tuple[int, ...]) -> Any:
    """y spread to the shape of what an index selects."""
    try:
        return broadcast_to_shape(y, shape)
    except ValueError as e:
        raise ValueError(
            f"x.at[index]: {e}. The first are the values, the second is what the index selects."
        ) from None


def _update(op: str, x: Array, index: Any, values: ArrayLike, sorted_: bool, unique: bool,
            mode: Any, wrap: bool) -> Array:  # fmt: skip
    (values,) = check_arraylike(f"at[].{op}", values)
    check_mode(mode)
    aval = get_aval(x)
    x, values = _of_one_dtype(op, x, values)
    index = with_arrays(index, reads=False)
    known = GatherScatterMode.from_any(None if mode == "wrap" else mode)
    dropping = known in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    if not wrap:
        index = without_negative(index, x.shape, clamp=known is GatherScatterMode.CLIP)
        if known is GatherScatterMode.PROMISE_IN_BOUNDS:  # writes that break it are dropped
            mode, dropping = "drop", True
    movable = is_evaluating() and not isinstance(x, Tracer)
    runs = None if movable else as_slices(index, tuple(x.shape))
    if runs is not None and len(runs[1]) == 1:
        (index,) = runs[1]
    if mode == "wrap":
        index, mode, dropping = wrapped(index, x.shape), "clip", False
    try:
        plan, arrays = make_plan(index, tuple(x.shape), clamp=not dropping, movable=movable,
                                 reads=False)  # fmt: skip
    except OutOfBounds:
        plan, arrays = make_plan(as_arrays(index), tuple(x.shape), clamp=False, movable=movable,
                                 reads=False)  # fmt: skip
    mode = GatherScatterMode.from_any(mode)
    out = _scatter(x, values, arrays, op=op, plan=plan, mode=mode, sorted_=bool(sorted_),
                   unique=bool(unique))  # fmt: skip
    return convert_weakly(out, aval.dtype, aval.weak_type)


def _of_one_dtype(op: str, x: Array, values: ArrayLike) -> tuple[Array, Any]:
    """x and values as op takes them: in x's dtype, or where that loses something, with JAX's warning,
    in their common one; what is merely set is converted alone."""
    aval = get_aval(x)
    if type(values) is int and dtypes.is_integer(aval.dtype):  # one that fits x may not fit int32
        return x, lax.full((), values, aval.dtype)
    dtype, _ = common_type(x, values)
    if dtype != aval.dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from dtype="
            f"{get_aval(values).dtype.name} to dtype={aval.dtype.name}. In future releases this "
            "will result in an error.",
            FutureWarning, stacklevel=user_depth(),
        )  # fmt: skip
        if op != "set":
            return lax.convert_element_type(x, dtype), lax.convert_element_type(values, dtype)
        if get_aval(values).dtype.kind == "c" and aval.dtype.kind != "c":
            values = lax.real(values)
    return x, convert_weakly(values, aval.dtype, aval.weak_type)


@compiled(static=("op", "plan", "mode", "sorted_", "unique"))
def _scatter(x: Any, y: Any, arrays: list[Any], *, op: str, plan: Plan, mode: GatherScatterMode,
             sorted_: bool, unique: bool) -> Array:  # fmt: skip
    """x with y combined into the elements that a plan names."""
    shape, weak = x.shape, get_aval(x).weak_type
    if plan.expanded:
        x = lax.expand_dims(x, plan.expanded)
    axes = [e for e in plan.entries if e.kind != "new"]
    contiguous = all(
        e.kind in ("int", "moved", "window") or (e.kind == "slice" and abs(e.step) == 1)
        for e in axes
    )
    write = _write_slice if contiguous else _write_scattered
    out = write(x, y, arrays, axes, op, plan, mode, sorted_, unique)
    out = lax.reshape(out, shape) if plan.expanded else out
    return convert_weakly(out, out.dtype, True) if weak else out


def _write_slice(x: Array, y: Any, arrays: list[Any], axes: list[Entry], op: str, plan: Plan,
                 *_: Any) -> Array:  # fmt: skip
    starts: list[Any] = []
    given = iter(arrays)
    for e in axes:
        if e.kind in ARGUMENTS:
            starts.append(next(given))
        else:
            starts.append(e.start - e.size + 1 if e.step == -1 else e.start)
    sizes = tuple(e.size for e in axes)
    y = _fitted(
        y, tuple(e.size for e in plan.entries if e.kind in ("new", "slice", "window", "range"))
    )
    y = lax.reshape(y, sizes)
    turned = [a for a, e in enumerate(axes) if e.step == -1]
    y = lax.rev(y, turned) if turned else y
    if 0 in sizes:
        return x
    at = [position_dtype(s).type(s) if isinstance(s, int) else s for s in starts]
    if op != "set":
        if all(isinstance(s, int) for s in starts):
            old = lax.slice(x, starts, [s + n for s, n in zip(starts, sizes, strict=True)])
        else:
            old = lax.dynamic_slice(x, at, sizes)
        y = _COMBINE[op](old, y)
    if sizes == x.shape:
        return y
    return lax.dynamic_update_slice(x, y, at)


def _write_scattered(x: Array, y: Any, arrays: list[Any], axes: list[Entry], op: str, plan: Plan,
                     mode: GatherScatterMode, sorted_: bool, unique: bool) -> Array:  # fmt: skip
    """One scatter. Its updates have the axes of the index arrays first, then one for each slice
    that skips elements, then the windows: the other slices, at where each begins."""
    given = iter(arrays)
    indexed: list[Any] = [next(given) if e.kind in ARGUMENTS else None for e in axes]
    advanced = [a for a, e in enumerate(axes) if e.kind in INDEXED]
    batch = broadcast_shapes(*(shape_of(indexed[a]) for a in advanced))
    strided = [a for a, e in enumerate(axes) if e.kind == "slice" and abs(e.step) > 1]
    windows = [a for a, e in enumerate(axes) if e.kind in ("slice", "window", "range")
               and a not in strided]
    moved = [a for a in windows if axes[a].size != x.shape[a]]
    dtype = index_dtype([i for i in indexed if i is not None] or [np.int32(0)], x.shape)
    full_batch = (*batch, *(axes[a].size for a in strided))
    order = [a for a in range(len(axes)) if a not in windows or a in moved]
    components = []
    for a in order:
        if a in advanced:
            i = normalized(indexed[a], x.shape[a], dtype)
            dims = tuple(range(len(batch) - len(shape_of(i)), len(batch)))
        elif a in strided:
            i = (axes[a].start + axes[a].step * np.arange(axes[a].size)).astype(dtype)
            dims = (len(batch) + strided.index(a),)
        else:
            i, dims = _first_position(axes[a], indexed[a], dtype), ()
        components.append(lax.broadcast_in_dim(i, full_batch, dims))
    updates = _arranged(y, axes, plan, batch, strided, windows)
    turned = [len(full_batch) + n for n, a in enumerate(windows) if axes[a].step == -1]
    updates = lax.rev(updates, turned) if turned else updates
    if not order:
        return _COMBINE[op](x, updates)
    if 0 in (*updates.shape, *x.shape):
        return x
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(len(full_batch), len(full_batch) + len(windows))),
        inserted_window_dims=tuple(a for a in order if a not in moved),
        scatter_dims_to_operand_dims=tuple(order),
    )  # fmt: skip
    unique = unique or not batch  # of scalars and slices
    return _SCATTERS[op](x, stacked_indices(components, full_batch), updates, numbers,
                         indices_are_sorted=sorted_, unique_indices=unique, mode=mode)  # fmt: skip


def _first_position(e: Entry, start: Any, dtype: np.dtype) -> Any:
    """The least position that a window, or an integer, takes along its axis."""
    if start is not None:
        return lax.convert_element_type(start, dtype)
    return dtype.type(e.start - e.size + 1 if e.step == -1 else e.start)


def _arranged(y: Any, axes: list[Entry], plan: Plan, batch: tuple[int, ...], strided: list[int],
              windows: list[int]) -> Any:  # fmt: skip
    """y, which broadcasts to the shape of x[index], with the axes of _write_scattered's updates."""
    front = bool([e for e in axes if e.kind in INDEXED]) and plan.front
    labels: list[Any] = ["batch"] if front else []
    axis = 0
    for e in plan.entries:
        if e.kind == "new":
            labels.append("new")
            continue
        if e.kind in INDEXED:
            if "batch" not in labels:
                labels.append("batch")
        elif e.kind != "int":
            labels.append(axis)
        axis += 1
    sizes: list[int] = []
    spans: dict[Any, list[int]] = {"batch": []}
    for label in labels:
        extent = batch if label == "batch" else (1,) if label == "new" else (axes[label].size,)
        if label != "new":
            spans[label] = list(range(len(sizes), len(sizes) + len(extent)))
        sizes.extend(extent)
    y = _fitted(y, tuple(sizes))
    wanted = spans["batch"] + [i for a in (*strided, *windows) for i in spans[a]]
    new = [i for i in range(len(sizes)) if i not in wanted]
    y = lax.transpose(y, [*wanted, *new])
    return lax.reshape(y, (*batch, *(axes[a].size for a in (*strided, *windows))))
