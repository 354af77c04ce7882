"""What collectives share: reading axis names, groups of devices, and the lanes of a batch.

Under vmap a collective is data movement along the batch dimension: these rules are given batches
and the axis that is eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import ShapedArray, axes, get_aval
from lamina.core.axes import Axis
from lamina.lax.batching_rules import at_front, move_axis
from lamina.lax.indexing import GatherDimensionNumbers

Groups = tuple[tuple[int, ...], ...] | None
CHANNEL = 1  # every collective of a program may share one: devices meet in program order


# ---- reading what the user gave -----------------------------------------------------------------
def names_in(axis_name: Any) -> tuple[Any, ...]:
    """One name, or a tuple or list of them, as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def bound_names(axis_name: Any, function: str) -> tuple[Any, ...]:
    """The same; raises NameError, which names the function, for a name that is not bound."""
    names = names_in(axis_name)
    for name in names:
        axes.size_of(name, function)
    return names


def read_groups(what: str, names: Sequence[Any], groups: Any, uneven: bool = False) -> Groups:
    """axis_index_groups as tuples; ValueError where they are not of one size, unless they may be `uneven`. Over
    several names they are of positions along all of these, the last of which varies fastest."""
    if groups is None:
        return None
    read = tuple(tuple(int(i) for i in group) for group in groups)
    size = group_size(names, None)
    if sorted(i for group in read for i in group) != list(range(size)):
        raise ValueError(
            f"[{what}] axis_index_groups must name each of the {size} indices of axis "
            f"{', '.join(map(repr, names))} once, got {read}"
        )
    if not uneven and are_uneven(read):
        raise ValueError(f"[{what}] axis_index_groups must all be of one size, got {read}")
    return read


def are_uneven(groups: Groups) -> bool:
    """Whether groups are of different sizes."""
    return groups is not None and len({len(group) for group in groups}) > 1


def group_size(names: Sequence[Any], groups: Groups) -> int:
    """How many lanes take part together."""
    if groups is not None:
        return len(groups[0])
    return int(np.prod([axes.size_of(name) for name in names], dtype=np.int64))


def steps(names: Sequence[Any], groups: Groups) -> list[Any]:
    """The `axis_name` of each exchange that one over these names is made of: one name after the other, but in
    groups, which are of positions along all of them, all at once."""
    return [tuple(names)] if groups is not None and len(names) > 1 else list(names)


def vary_too(along: frozenset[Any], params: dict[str, Any]) -> tuple[Any, Any]:
    """Types of a collective that gives each position its own: all vary along its axis, too."""
    both = along | (axes.typed() & frozenset(names_in(params["axis_name"])))
    return both, both


# ---- devices ------------------------------------------------------------------------------------
def device_groups(ctx: Any, names: Sequence[Any], groups: Groups = None) -> list[list[int]]:
    """The devices that take part together, in the mesh that is lowered for."""
    mesh = ctx.module.mesh_axes
    order = [name for name, _ in mesh]
    ids = np.arange(int(np.prod([n for _, n in mesh], dtype=np.int64)))
    ids = ids.reshape([n for _, n in mesh])
    at = [order.index(name) for name in names]
    rest = [i for i in range(ids.ndim) if i not in at]
    size = int(np.prod([ids.shape[i] for i in at], dtype=np.int64))
    rows = ids.transpose(rest + at).reshape(-1, size)
    if groups is None:
        return rows.tolist()
    return [row[list(group)].tolist() for row in rows for group in groups]


# ---- lanes of a batch ---------------------------------------------------------------------------
def take(x: Any, lanes: Sequence[int]) -> Any:
    """The slices of x at these positions of dimension 0."""
    shape = np.shape(x)
    index = np.asarray(lanes, np.int32)[:, None]
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape))), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return lax.gather(x, index, numbers, (1, *shape[1:]), mode="promise_in_bounds")


def in_groups(x: Any, dim: int | None, axis: Axis, groups: tuple[tuple[int, ...], ...]) -> Any:
    """The batch as [group, member, ...]."""
    _check_covered(axis, groups)
    lanes = [i for group in groups for i in group]
    front = take(at_front(x, dim, axis.size), lanes)
    return lax.reshape(front, (len(groups), len(groups[0]), *np.shape(front)[1:]))


def reduced_groups(
    x: Any,
    dim: int | None,
    axis: Axis,
    groups: tuple[tuple[int, ...], ...],
    reduce: Callable[[Any, Sequence[int]], Any],
) -> Any:
    """What the members of each group of a batch come to: [group, ...]."""
    if not are_uneven(groups):
        return reduce(in_groups(x, dim, axis, groups), (1,))
    _check_covered(axis, groups)
    front = at_front(x, dim, axis.size)
    each = [reduce(take(front, group), (0,)) for group in groups]
    return lax.concatenate([lax.expand_dims(one, (0,)) for one in each], 0)


def _check_covered(axis: Axis, groups: tuple[tuple[int, ...], ...]) -> None:
    if sum(map(len, groups)) != axis.size:
        raise NotImplementedError(
            f"axis_index_groups over several axes, of which vmap maps over {axis.name!r}, are not supported"
        )


def for_each_member(x: Any, axis: Axis, groups: tuple[tuple[int, ...], ...]) -> Any:
    """[group, ...] as a batch: each lane has its group's."""
    group_of = {i: g for g, group in enumerate(groups) for i in group}
    return take(x, [group_of[i] for i in range(axis.size)])


def merge(x: Any, dim: int) -> Any:
    """x with dimensions dim and dim + 1 as one."""
    shape = np.shape(x)
    return lax.reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def cut(x: Any, dim: int, parts: int) -> Any:
    """x with dimension dim as two, the first of size parts."""
    shape = np.shape(x)
    return lax.reshape(x, (*shape[:dim], parts, shape[dim] // parts, *shape[dim + 1 :]))


def times(x: Any, n: int) -> Any:
    """n equal lanes added up."""
    return lax.mul(x, lax.full_like(x, n, shape=()))


def scaled(x: ShapedArray, dim: int, times: int, down: int = 1) -> ShapedArray:
    """The type with dimension dim so many times as large, or as small."""
    shape = list(x.shape)
    shape[dim] = shape[dim] * times // down
    return x.update(shape=tuple(shape))


def only_here(what: str, axis: Axis, names: Sequence[Any]) -> None:
    """Raises where a batched axis is one of several of a collective that mixes their positions."""
    if len(names) > 1:
        raise NotImplementedError(
            f"[{what}] vmap over axis {axis.name!r} of a {what} over {tuple(names)}: name one axis "
            "at a time"
        )


def gathered(x: Any, dim: int | None, axis: Axis, at: int) -> Any:
    """The batch side by side along dimension `at` of a lane."""
    if dim is None:
        front = at_front(x, None, axis.size)
        return merge(move_axis(front, 0, at), at)
    return merge(move_axis(x, dim, at), at)


def rank(x: Any) -> int:
    """Number of dimensions."""
    return get_aval(x).ndim
