"""scatter and scatter_add, _mul, _min, _max: an array with windows of another put in at indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, get_aval
from lamina.core.array_class import Array
from lamina.core.placed import first, linear_in, no_sums
from lamina.lax import hlo, scatter_rules
from lamina.lax.batching_rules import at_front, batch_size, spread_at_front
from lamina.lax.checks import (
    ANY,
    ANY_OR_KEY,
    NUMBER,
    Accepted,
    canonical_shape,
    check_accepted,
    check_same_dtypes,
)
from lamina.lax.convert import convert
from lamina.lax.indexing import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    batch_both,
    batch_operand,
    canonical_numbers,
    check_numbers,
    index_limits,
    spread_limits,
)  # fmt: skip
from lamina.lax.reduce import scalar_body

Mode = str | GatherScatterMode | None


# ---- user functions ----------------------------------------------------------------------------
def scatter(operand: Any, scatter_indices: Any, updates: Any,
            dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: Mode = None) -> Array:  # fmt: skip
    """operand with windows of `updates` in place of its elements at the indices: StableHLO's
    scatter, which x.at[indices].set(updates) becomes. With equal indices one of them wins.

    operand             an array.
    scatter_indices     integers; the last axis holds an index's components, the others count
                        windows.
    updates             the windows, of operand's dtype.
    dimension_numbers   a lax.ScatterDimensionNumbers, which says what axes mean:
                        update_window_dims, those of updates that lie in windows;
                        inserted_window_dims, those of operand that windows lack;
                        scatter_dims_to_operand_dims, the axis of operand for each component.
    indices_are_sorted  whether the indices are known to rise.
    unique_indices      whether they are known to differ.
    mode                what out-of-bounds windows do: "drop" (the default, also "fill" and
                        "one_hot") nothing, "clip" moves them in; "promise_in_bounds" says that
                        there are none.

    Raises TypeError where dtypes differ, indices are no integers or shapes do not fit.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[2], [0]]), jnp.array([30, 10])
    >>> print(lax.scatter(jnp.array([1, 2, 3]), indices, updates, numbers))
    [10  2 30]
    """
    return _bind(scatter_p, operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_add(operand: Any, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: Mode = None) -> Array:  # fmt: skip
    """operand with all windows of `updates` added to its elements at the indices, as often as these
    are named: x.at[indices].add(updates).

    operand             an array of numbers.
    scatter_indices     integers; the last axis holds an index's components.
    updates             the windows, of operand's dtype.
    dimension_numbers   a lax.ScatterDimensionNumbers, as for scatter.
    indices_are_sorted  whether the indices are known to rise.
    unique_indices      whether they are known to differ.
    mode                what out-of-bounds windows do, as for scatter.

    Raises TypeError where dtypes differ, indices are no integers or shapes do not fit.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [0], [2]]), jnp.array([10, 20, 30])
    >>> print(lax.scatter_add(jnp.array([1, 2, 3]), indices, updates, numbers))
    [31  2 33]
    """
    return _bind(scatter_add_p, operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_sub(operand: Any, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: Mode = None) -> Array:  # fmt: skip
    """operand with all windows of `updates` subtracted from its elements at the indices, as often
    as these are named.

    operand             an array of numbers.
    scatter_indices     integers; the last axis holds an index's components.
    updates             the windows, of operand's dtype.
    dimension_numbers   a lax.ScatterDimensionNumbers, as for scatter.
    indices_are_sorted  whether the indices are known to rise.
    unique_indices      whether they are known to differ.
    mode                what out-of-bounds windows do, as for scatter.

    Raises TypeError where dtypes differ, indices are no integers or shapes do not fit.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [0], [2]]), jnp.array([10, 20, 30])
    >>> print(lax.scatter_sub(jnp.array([1, 2, 3]), indices, updates, numbers))
    [-29   2 -27]
    """
    return _bind(scatter_add_p, operand, scatter_indices, lax.neg(updates), dimension_numbers,
                 indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_mul(operand: Any, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: Mode = None) -> Array:  # fmt: skip
    """operand with its elements at the indices multiplied by all windows of `updates`, as often as
    these are named. The derivative by updates needs unique indices.

    operand             an array of numbers.
    scatter_indices     integers; the last axis holds an index's components.
    updates             the windows, of operand's dtype.
    dimension_numbers   a lax.ScatterDimensionNumbers, as for scatter.
    indices_are_sorted  whether the indices are known to rise.
    unique_indices      whether they are known to differ.
    mode                what out-of-bounds windows do, as for scatter.

    Raises TypeError where dtypes differ, indices are no integers or shapes do not fit.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[1], [2]]), jnp.array([10, 100])
    >>> print(lax.scatter_mul(jnp.array([1, 2, 3]), indices, updates, numbers))
    [  1  20 300]
    """
    return _bind(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_apply(operand: Any, scatter_indices: Any, func: Callable[[Any], Any],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: Mode = None) -> Array:  # fmt: skip
    """operand with func(x) in place of its elements x at the indices, applied as often as these are
    named: x.at[indices].apply(func). Not differentiable in reverse.

    operand             an array of numbers.
    scatter_indices     integers; the last axis holds an index's components.
    func                an elementwise function of an array of operand's dtype.
    dimension_numbers   a lax.ScatterDimensionNumbers, as for scatter.
    update_shape        the shape that scatter's updates would have.
    indices_are_sorted  whether the indices are known to rise.
    unique_indices      whether they are known to differ.
    mode                what out-of-bounds windows do, as for scatter.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> tenfold = lambda x: 10 * x
    >>> indices = jnp.array([[0], [0], [2]])
    >>> print(lax.scatter_apply(jnp.array([1, 2, 3]), indices, tenfold, numbers, update_shape=(3,)))
    [100   2  30]
    """
    times = scatter_add(
        lax.full(np.shape(operand), 0, np.int32), scatter_indices,
        lax.full(canonical_shape(update_shape), 1, np.int32), dimension_numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip
    return apply_times(func, operand, times)


def apply_times(func: Callable[[Any], Any], x: Any, times: Any) -> Any:
    """func applied to each element as often as `times` says."""

    def unfinished(state: Any) -> Any:
        left = state[1]
        return lax.gt(lax.reduce_max(left, tuple(range(left.ndim))), np.int32(0))

    def step(state: Any) -> Any:
        x, left = state
        new = convert(func(x), get_aval(x).dtype, get_aval(x).weak_type)
        return lax.select(lax.gt(left, np.int32(0)), new, x), lax.sub(left, np.int32(1))

    return lax.while_loop(unfinished, step, (x, times))[0]


def scatter_min(operand: Any, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: Mode = None) -> Array:  # fmt: skip
    """operand with its elements at the indices lowered to the least of them and the updates.

    operand             an array of numbers.
    scatter_indices     integers; the last axis holds an index's components.
    updates             the windows, of operand's dtype.
    dimension_numbers   a lax.ScatterDimensionNumbers, as for scatter.
    indices_are_sorted  whether the indices are known to rise.
    unique_indices      whether they are known to differ.
    mode                what out-of-bounds windows do, as for scatter.

    Raises TypeError where dtypes differ, indices are no integers or shapes do not fit.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [2]]), jnp.array([5, -5])
    >>> print(lax.scatter_min(jnp.array([1, 2, 3]), indices, updates, numbers))
    [ 1  2 -5]
    """
    return _bind(scatter_min_p, operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_max(operand: Any, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: Mode = None) -> Array:  # fmt: skip
    """operand with its elements at the indices raised to the greatest of them and the updates.

    operand             an array of numbers.
    scatter_indices     integers; the last axis holds an index's components.
    updates             the windows, of operand's dtype.
    dimension_numbers   a lax.ScatterDimensionNumbers, as for scatter.
    indices_are_sorted  whether the indices are known to rise.
    unique_indices      whether they are known to differ.
    mode                what out-of-bounds windows do, as for scatter.

    Raises TypeError where dtypes differ, indices are no integers or shapes do not fit.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [2]]), jnp.array([5, -5])
    >>> print(lax.scatter_max(jnp.array([1, 2, 3]), indices, updates, numbers))
    [5 2 3]
    """
    return _bind(scatter_max_p, operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)  # fmt: skip


def _bind(primitive: Primitive, operand: Any, indices: Any, updates: Any,
          numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
          mode: Mode) -> Any:  # fmt: skip
    parsed = GatherScatterMode.from_any(mode)
    if parsed is GatherScatterMode.ONE_HOT:
        parsed = GatherScatterMode.FILL_OR_DROP
    return primitive.bind(
        operand, indices, updates,
        dimension_numbers=canonical_numbers(numbers),
        indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
        mode=parsed,
    )  # fmt: skip


# ---- types and lowering ------------------------------------------------------------------------
def _abstract_eval(name: str, accept: Accepted) -> Callable[..., ShapedArray]:
    def rule(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
             dimension_numbers: ScatterDimensionNumbers, **_: Any) -> ShapedArray:  # fmt: skip
        numbers = dimension_numbers
        check_accepted(name, accept, x, 0)
        check_same_dtypes(name, (x, updates))
        check_numbers(name, numbers, x, indices)
        absent = len(numbers.inserted_window_dims) + len(numbers.operand_batching_dims)
        windows = numbers.update_window_dims
        rank = len(updates.shape)
        if (
            len(windows) != len(x.shape) - absent
            or list(windows) != sorted(set(windows))
            or any(not 0 <= d < rank for d in windows)
        ):
            raise TypeError(
                f"[{name}] update_window_dims={windows} must be {len(x.shape) - absent} ascending "
                f"axes of the updates {updates.str_short()}: one for each axis of the operand "
                f"{x.str_short()} that is not inserted or batched"
            )
        batch = tuple(n for d, n in enumerate(updates.shape) if d not in windows)
        if batch != indices.shape[:-1]:
            raise TypeError(
                f"[{name}] updates {updates.str_short()} must have, beside update_window_dims="
                f"{windows}, the axes of the indices {indices.str_short()} but its last"
            )
        sizes = scatter_rules.window_sizes(x.shape, updates.shape, numbers)
        if any(n > m for n, m in zip(sizes, x.shape) if m):
            raise TypeError(
                f"[{name}] windows of {sizes} do not fit into the operand {x.str_short()}"
            )
        return ShapedArray(x.shape, x.dtype, x.weak_type and updates.weak_type)

    return rule


def _lowering(combine: Callable[[], Primitive] | None) -> Callable[..., Any]:
    """Scatters with the elementwise primitive `combine`; without one the update replaces."""

    def rule(ctx: Any, x: Any, indices: Any, updates: Any, *,
             dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool,
             unique_indices: bool, mode: GatherScatterMode) -> Any:  # fmt: skip
        numbers = dimension_numbers
        aval, index_aval, update_aval = ctx.avals_in
        if mode is GatherScatterMode.CLIP and numbers.scatter_dims_to_operand_dims:
            sizes = scatter_rules.window_sizes(aval.shape, update_aval.shape, numbers)
            limits = index_limits(aval.shape, sizes, numbers.scatter_dims_to_operand_dims,
                                  index_aval.dtype)  # fmt: skip
            zero = hlo.full(0, index_aval.shape, index_aval.dtype)
            indices = hlo.clamp(zero, indices, spread_limits(limits, index_aval.shape))

        def replace(_: Any, new: Any) -> list[Any]:
            return [new]

        body = replace if combine is None else scalar_body(ctx, combine(), aval.dtype)
        return hlo.scatter(
            [x], indices, [updates],
            update_window_dims=numbers.update_window_dims,
            inserted_window_dims=numbers.inserted_window_dims,
            input_batching_dims=numbers.operand_batching_dims,
            scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
            scatter_dims_to_operand_dims=numbers.scatter_dims_to_operand_dims,
            index_vector_dim=len(index_aval.shape) - 1,
            indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, body=body,
        )[0]  # fmt: skip

    return rule


# ---- batching and primitives -------------------------------------------------------------------
def _batching(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(args: Any, dims: Any, *, dimension_numbers: Any, **params: Any) -> tuple[Any, int]:
        (x, indices, updates), (d, index_dim, update_dim) = args, dims
        size = batch_size(args, dims)
        x, updates = spread_at_front(x, d, size), at_front(updates, update_dim, size)
        if index_dim is None:
            numbers = batch_operand(dimension_numbers)
        else:
            indices, numbers = at_front(indices, index_dim, size), batch_both(dimension_numbers)
            params["indices_are_sorted"] = False
        return primitive().bind(x, indices, updates, dimension_numbers=numbers, **params), 0

    return rule


def _scatter(name: str, combine: Callable[[], Primitive] | None, accept: Accepted, jvp: Any,
             transpose: Any) -> Primitive:  # fmt: skip
    primitive = Primitive(
        name,
        abstract_eval=_abstract_eval(name, accept),
        placed=first,
        lowering=_lowering(combine),
        jvp=jvp,
        sums=linear_in(0, 2) if name in ("scatter", "scatter-add", "scatter-sub") else no_sums,
        transpose=transpose,
        batching=_batching(lambda: primitive),
    )
    return primitive


scatter_p: Primitive = _scatter(
    "scatter", None, ANY_OR_KEY, scatter_rules.set_jvp, scatter_rules.set_transpose
)
scatter_add_p: Primitive = _scatter(
    "scatter-add", lambda: lax.add_p, NUMBER, scatter_rules.add_jvp, scatter_rules.add_transpose
)
scatter_mul_p: Primitive = _scatter(
    "scatter-mul", lambda: lax.mul_p, NUMBER, scatter_rules.mul_jvp, scatter_rules.mul_transpose
)
scatter_min_p: Primitive = _scatter(
    "scatter-min", lambda: lax.min_p, ANY, scatter_rules.extremum_jvp(lambda: scatter_min_p), NOT_LINEAR,
)  # fmt: skip
scatter_max_p: Primitive = _scatter(
    "scatter-max", lambda: lax.max_p, ANY, scatter_rules.extremum_jvp(lambda: scatter_max_p), NOT_LINEAR,
)  # fmt: skip
