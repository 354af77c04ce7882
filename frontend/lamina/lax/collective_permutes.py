"""Positions along a named axis, and values sent from one to another: axis_index, ppermute.

Under vmap they are data movement along the batch dimension, on devices StableHLO's partition_id
and collective_permute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import (
    LINEAR,
    NO_OPERANDS,
    NOT_DIFFERENTIABLE,
    NOT_LINEAR,
    Primitive,
    ShapedArray,
    axes,
    get_aval,
    tree,
)
from lamina.core.array_class import Array
from lamina.core.axes import Axis
from lamina.core.library import library
from lamina.lax import hlo
from lamina.lax.batching_rules import at_front
from lamina.lax.collective_sums import sum_over
from lamina.lax.named_axes import (
    CHANNEL,
    bound_names,
    device_groups,
    group_size,
    only_here,
    take,
    vary_too,
)


def axis_index(axis_name: Any) -> Array:
    """The position along a named axis, an int32: 0 on the first lane.

    axis_name  the axis' name, or a tuple of names, of which the last runs fastest.

    Raises NameError for a name that is not bound.

    >>> print(lamina.vmap(lambda x: 10 * x + lax.axis_index('i'), axis_name='i')(jnp.array([1, 2])))
    [10 21]
    """
    index: Any = None
    for name in bound_names(axis_name, "axis_index"):
        here = axis_index_p.bind(axis_name=name)
        index = here if index is None else index * axes.size_of(name) + here
    return index


def axis_size(axis_name: Any) -> int:
    """The number of lanes along a named axis, a Python int.

    axis_name  the axis' name, or a tuple of names, whose sizes are multiplied.

    Raises NameError for a name that is not bound.

    >>> print(lamina.vmap(lambda x: x / lax.axis_size('i'), axis_name='i')(jnp.ones(4)))
    [0.25 0.25 0.25 0.25]
    """
    return group_size(bound_names(axis_name, "axis_size"), None)


def _axis_index_lowering(ctx: Any, *, axis_name: Any) -> Any:
    sizes = dict(ctx.module.mesh_axes)
    if axis_name not in sizes:
        raise NameError(
            f"Found an unbound axis name: {axis_name}, where lax.axis_index is compiled. A rule of "
            "derivatives can name an axis only where its function does, too."
        )
    names = list(sizes)
    stride = math.prod(sizes[name] for name in names[names.index(axis_name) + 1 :])
    size = sizes[axis_name]
    here = hlo.divide(hlo.partition_id(), hlo.constant(np.uint32(stride)))
    here = hlo.remainder(here, hlo.constant(np.uint32(size)))
    return hlo.convert(here, np.int32)


axis_index_p = Primitive(
    "axis_index",
    abstract_eval=lambda *, axis_name: ShapedArray((), np.int32),
    lowering=_axis_index_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=NO_OPERANDS,
    axis_batching=lambda axis, args, dims, *, axis_name: (lax.iota(np.int32, axis.size), 0),
    axis_names=lambda params: (params["axis_name"],),
    varying=vary_too,
)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """x of lane s on lane t, for each pair (s, t) of perm; zeros on lanes that are no target.

    x          a tree of arrays.
    axis_name  the axis' name, or a tuple of names.
    perm       pairs of positions along the axis.

    Raises ValueError where a source or a target comes twice or is no position along the axis;
    NameError for a name that is not bound.

    >>> shift = lambda x: lax.ppermute(x, 'i', [(0, 1), (1, 2)])
    >>> print(lamina.vmap(shift, axis_name='i')(jnp.array([10, 20, 30])))
    [ 0 10 20]
    """
    names = bound_names(axis_name, "ppermute")
    if not isinstance(perm, (list, tuple, np.ndarray)):  # an iterator is used up by the first trace
        raise TypeError(f"`perm` passed to `{library}.lax.ppermute` must be a list of pairs, got {type(perm).__name__}")
    pairs = tuple((int(s), int(t)) for s, t in perm)
    sources, targets = [s for s, _ in pairs], [t for _, t in pairs]
    if len(set(sources)) < len(pairs) or len(set(targets)) < len(pairs):
        raise ValueError(
            f"ppermute sources and destinations must be unique, got {sources} and {targets}."
        )
    size = group_size(names, None)
    if any(not 0 <= i < size for i in (*sources, *targets)):
        raise ValueError(
            f"ppermute over axis {axis_name!r} of size {size} takes indices 0 to {size - 1}, got "
            f"{pairs}"
        )
    return tree.map(lambda leaf: ppermute_p.bind(leaf, axis_name=names, perm=pairs), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """x of lane perm[i] on lane i.

    x          a tree of arrays.
    axis_name  the axis' name, or a tuple of names.
    perm       the positions along the axis in another order.

    Raises ValueError where perm is no permutation; NameError for a name that is not bound.

    >>> turn = lambda x: lax.pshuffle(x, 'i', [2, 0, 1])
    >>> print(lamina.vmap(turn, axis_name='i')(jnp.array([10, 20, 30])))
    [30 10 20]
    """
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def _ppermute_lowering(ctx: Any, x: Any, *, axis_name: Any, perm: Any) -> Any:
    rows = device_groups(ctx, axis_name)
    pairs = [(row[s], row[t]) for row in rows for s, t in perm]
    return hlo.collective_permute(x, pairs, CHANNEL)


def _ppermute_axis_batching(axis: Axis, args: Any, dims: Any, *, axis_name: Any, perm: Any) -> Any:
    only_here("ppermute", axis, axis_name)
    front = at_front(args[0], dims[0], axis.size)
    source = {t: s for s, t in perm}
    moved = take(front, [source.get(i, 0) for i in range(axis.size)])
    if len(source) == axis.size:
        return moved, 0
    got = np.array([i in source for i in range(axis.size)])
    mask = lax.broadcast_in_dim(got, np.shape(moved), (0,))
    return lax.select(mask, moved, lax.zeros_like(moved)), 0


ppermute_p: Primitive = Primitive(
    "ppermute",
    abstract_eval=lambda x, *, axis_name, perm: x,
    lowering=_ppermute_lowering,
    jvp=LINEAR,
    transpose=lambda ct, x, *, axis_name, perm: [
        ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((t, s) for s, t in perm))
    ],
    batching=lambda args, dims, **params: (ppermute_p.bind(*args, **params), dims[0]),
    axis_batching=_ppermute_axis_batching,
    axis_names=lambda params: params["axis_name"],
    varying=vary_too,
)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """x of one lane on every lane.

    x          a tree of arrays.
    axis_name  the axis' name, or a tuple of names.
    source     the position along the axis of the lane whose x all get.

    Raises ValueError where there is no such position; NameError for a name that is not bound.

    >>> print(lamina.vmap(lambda x: lax.pbroadcast(x, 'i', 1), axis_name='i')(jnp.array([10, 20])))
    [20 20]
    """
    names = bound_names(axis_name, "pbroadcast")
    size = group_size(names, None)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast source {source} is no index of axis {axis_name!r} ({size=})")

    def one(leaf: Any) -> Any:
        mine = lax.eq(axis_index(names), np.int32(source))
        kept = lax.select(lax.broadcast(mine, np.shape(leaf)), leaf, lax.zeros_like(leaf))
        return sum_over(kept, names)

    def of_leaf(leaf: Any) -> Any:
        dtype = get_aval(leaf).dtype
        if dtype != np.bool_:
            return one(leaf)
        return lax.convert_element_type(one(lax.convert_element_type(leaf, np.int32)), dtype)

    return tree.map(of_leaf, x)
