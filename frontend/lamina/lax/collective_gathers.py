"""The values of all positions along a named axis side by side, and its transpose: all_gather,
psum_scatter.

Under vmap they are data movement along the batch dimension, on devices StableHLO's collectives. The
primitives work on whole blocks ("tiled"); the functions make that of JAX's other forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import LINEAR, Primitive, ShapedArray, axes, tree
from lamina.core.axes import Axis
from lamina.core.library import library
from lamina.core.placed import WHOLE, sums
from lamina.lax import hlo
from lamina.lax.batching_rules import past
from lamina.lax.checks import canonical_axes
from lamina.lax.collective_sums import spread, unreduced
from lamina.lax.named_axes import (
    CHANNEL,
    Groups,
    bound_names,
    cut,
    device_groups,
    for_each_member,
    gathered,
    group_size,
    in_groups,
    merge,
    names_in,
    rank,
    read_groups,
    scaled,
    steps,
    take,
    times,
    vary_too,
)
from lamina.lax.terms import to_unreduced, with_sums


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The x of all lanes, on every lane.

    x                  a tree of arrays.
    axis_name          the axis' name, or a tuple of names.
    axis_index_groups  gathers only within these groups of positions, all of one size.
    axis               the dimension of the result along which they lie.
    tiled              whether they lie side by side in this dimension of x; otherwise it is a new
                       one.
    to                 in a shard_map body with check_vma: whether the type of the result says that
                       all devices have the same ("invarying") or not ("varying", "reduced").

    Raises NameError for a name that is not bound; ValueError for groups of other kinds or another
    `to`.

    >>> mean = lambda x: lax.all_gather(x, 'i').mean()
    >>> print(lamina.vmap(mean, axis_name='i')(jnp.array([1.0, 3.0])))
    [2. 2.]
    """
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(f"all_gather: to is 'varying', 'reduced' or 'invarying', got {to!r}")
    names = bound_names(axis_name, "all_gather")
    groups = read_groups("all_gather", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        (at,) = canonical_axes("all_gather", (axis,), rank(leaf) + (not tiled))
        block = leaf if tiled else lax.expand_dims(leaf, (at,))
        for name in reversed(steps(names, groups)):
            if to == "reduced" and groups is None and name in axes.typed():
                block = gather_reduced(block, at, name, group_size((name,), groups))
                continue
            same = to == "invarying" and groups is None and name in axes.typed()
            block = (all_gather_invariant_p if same else all_gather_p).bind(
                block, all_gather_dimension=at, axis_name=name, axis_index_groups=groups,
                axis_size=group_size((name,), groups),
            )  # fmt: skip
        return block

    return tree.map(one, x)


def _all_gather_lowering(
    ctx: Any, x: Any, *, all_gather_dimension: int, axis_name: Any, axis_index_groups: Groups, **_: Any
) -> Any:  # fmt: skip
    groups = device_groups(ctx, names_in(axis_name), axis_index_groups)
    return hlo.all_gather(x, all_gather_dimension, groups, CHANNEL)


def _all_gather_axis_batching(
    axis: Axis, args: Any, dims: Any, *, all_gather_dimension: int, axis_index_groups: Groups, **_: Any
) -> Any:  # fmt: skip
    (x,), (d,), at = args, dims, all_gather_dimension
    if axis_index_groups is None:
        return gathered(x, d, axis, at), None
    members = in_groups(x, d, axis, axis_index_groups)
    order = [i for i in range(rank(members)) if i != 1]
    order.insert(at + 1, 1)
    per_group = merge(lax.transpose(members, order), at + 1)
    return for_each_member(per_group, axis, axis_index_groups), 0


def _all_gather_transpose(ct: Any, x: Any, *, all_gather_dimension: int, **params: Any) -> Any:
    return [reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)]


def _own_block(ct: Any, x: Any, *, all_gather_dimension: int, axis_name: Any, **_: Any) -> Any:
    """What all devices have the same of has one cotangent: each takes the part that it gave."""
    size = x.aval.shape[all_gather_dimension]
    start = lax.axis_index(axis_name) * size
    own = lax.dynamic_slice_in_dim(spread(ct, (axis_name,)), start, size, all_gather_dimension)
    return [own]


def _gather(name: str, transpose: Any, varying: Any) -> Primitive:
    def batching(args: Any, dims: Any, *, all_gather_dimension: int, **params: Any) -> Any:
        (at,) = past(dims[0], (all_gather_dimension,))
        return primitive.bind(args[0], all_gather_dimension=at, **params), dims[0]

    primitive = Primitive(
        name,
        abstract_eval=lambda x, *, all_gather_dimension, axis_size, **_: scaled(
            x, all_gather_dimension, axis_size
        ),
        lowering=_all_gather_lowering,
        jvp=LINEAR,
        transpose=transpose,
        batching=batching,
        axis_batching=_all_gather_axis_batching,
        axis_names=lambda params: names_in(params["axis_name"]),
        varying=varying,
    )
    return primitive


all_gather_p = _gather("all_gather", _all_gather_transpose, vary_too)
all_gather_invariant_p = _gather(
    "all_gather_invariant",
    _own_block,
    lambda along, params: (along | {params["axis_name"]}, along - {params["axis_name"]}),
)


def psum_scatter_start(*args: Any, **kwargs: Any) -> Any:
    """Would begin a psum_scatter that another operation waits for: NotImplementedError, since devices
    of a CPU exchange values in one operation. Use psum_scatter.

    args  those of psum_scatter.

    >>> lax.psum_scatter_start(jnp.ones(2), "i")
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        f"{library} has no collectives in two steps (psum_scatter_start): use psum_scatter"
    )


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum of x over a named axis, of which each lane keeps one part: psum in pieces.

    x                  a tree of arrays.
    axis_name          the axis' name, or a tuple of names.
    scatter_dimension  the dimension of x of which lane i keeps part i.
    axis_index_groups  sums only within these groups of positions, all of one size.
    tiled              the dimension stays, smaller by the axis size; otherwise it has that size and
                       goes.

    Raises ValueError where the dimension's size is not the axis size (or, tiled, no multiple);
    NameError for a name that is not bound.

    >>> summed = lamina.vmap(lambda x: lax.psum_scatter(x, 'i'), axis_name='i')
    >>> print(summed(jnp.array([[1, 2], [10, 20]])))
    [11 22]
    """
    names = bound_names(axis_name, "psum_scatter")
    groups = read_groups("psum_scatter", names, axis_index_groups)
    size = group_size(names, groups)

    def one(leaf: Any) -> Any:
        (at,) = canonical_axes("psum_scatter", (scatter_dimension,), rank(leaf))
        here = np.shape(leaf)[at]
        if here % size if tiled else here != size:
            relation = "divisible by" if tiled else "equal to"
            raise ValueError(
                f"reduce_scatter operand scatter dimension size {here} must be {relation} the "
                f"shard_count {size}"
            )
        for name in steps(names, groups):
            if groups is None and name in unreduced(leaf):
                leaf = scatter_terms(leaf, at, name, group_size((name,), groups))
                continue
            leaf = reduce_scatter_p.bind(
                leaf, scatter_dimension=at, axis_name=name, axis_index_groups=groups,
                axis_size=group_size((name,), groups),
            )  # fmt: skip
        return leaf if tiled else lax.squeeze(leaf, (at,))

    return tree.map(one, x)


def _reduce_scatter_lowering(
    ctx: Any, x: Any, *, scatter_dimension: int, axis_name: Any, axis_index_groups: Groups, **_: Any
) -> Any:  # fmt: skip
    groups = device_groups(ctx, names_in(axis_name), axis_index_groups)
    return hlo.reduce_scatter(x, scatter_dimension, groups, CHANNEL, hlo.add)


def _reduce_scatter_axis_batching(
    axis: Axis, args: Any, dims: Any, *, scatter_dimension: int, axis_index_groups: Groups, **_: Any
) -> Any:  # fmt: skip
    (x,), (d,), at = args, dims, scatter_dimension
    if axis_index_groups is None:
        total = times(x, axis.size) if d is None else lax.reduce_sum(x, (d,))
        return cut(total, at, axis.size), at
    size = len(axis_index_groups[0])
    per_group = lax.reduce_sum(in_groups(x, d, axis, axis_index_groups), (1,))
    parts = cut(per_group, at + 1, size)
    order = [0, at + 1, *(i for i in range(1, rank(parts)) if i != at + 1)]
    lanes = merge(lax.transpose(parts, order), 0)
    place = {lane: i for i, lane in enumerate(i for group in axis_index_groups for i in group)}
    return take(lanes, [place[i] for i in range(axis.size)]), 0


def _reduce_scatter_transpose(ct: Any, x: Any, *, scatter_dimension: int, **params: Any) -> Any:
    return [all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)]


def _reduce_scatter_batching(args: Any, dims: Any, *, scatter_dimension: int, **params: Any) -> Any:
    (at,) = past(dims[0], (scatter_dimension,))
    return reduce_scatter_p.bind(args[0], scatter_dimension=at, **params), dims[0]


reduce_scatter_p: Primitive = Primitive(
    "reduce_scatter",
    abstract_eval=lambda x, *, scatter_dimension, axis_size, **_: scaled(
        x, scatter_dimension, 1, axis_size
    ),
    lowering=_reduce_scatter_lowering,
    jvp=LINEAR,
    transpose=_reduce_scatter_transpose,
    batching=_reduce_scatter_batching,
    axis_batching=_reduce_scatter_axis_batching,
    axis_names=lambda params: names_in(params["axis_name"]),
    varying=vary_too,
)


# ---- of what counts once, and of terms -----------------------------------------------------------
def _gathered_type(
    x: ShapedArray, *, all_gather_dimension: int, axis_name: Any, axis_size: int
) -> ShapedArray:
    of, here = (WHOLE if x.placed is None else x.placed.sums), axes.typed() & {axis_name}
    out = scaled(x, all_gather_dimension, axis_size).update(vma=x.vma - here)
    mesh = None if x.placed is None else x.placed.mesh
    return with_sums(out, sums(of.unreduced, of.reduced | here, of.kind), mesh)


def _scattered_type(
    x: ShapedArray, *, scatter_dimension: int, axis_name: Any, axis_size: int
) -> ShapedArray:
    of, here = (WHOLE if x.placed is None else x.placed.sums), axes.typed() & {axis_name}
    out = scaled(x, scatter_dimension, 1, axis_size).update(vma=x.vma | here)
    mesh = None if x.placed is None else x.placed.mesh
    return with_sums(out, sums(of.unreduced - here, of.reduced, of.kind), mesh)


def _gather_reduced_lowering(
    ctx: Any, x: Any, *, all_gather_dimension: int, axis_name: Any, axis_size: int
) -> Any:
    return hlo.all_gather(x, all_gather_dimension, device_groups(ctx, (axis_name,), None), CHANNEL)


def _scatter_terms_lowering(
    ctx: Any, x: Any, *, scatter_dimension: int, axis_name: Any, axis_size: int
) -> Any:
    return hlo.reduce_scatter(
        x, scatter_dimension, device_groups(ctx, (axis_name,), None), CHANNEL, hlo.add
    )


def _gather_reduced_batching(args: Any, dims: Any, *, all_gather_dimension: int, **params: Any) -> Any:
    (at,) = past(dims[0], (all_gather_dimension,))
    return all_gather_reduced_p.bind(args[0], all_gather_dimension=at, **params), dims[0]


def _scatter_terms_batching(args: Any, dims: Any, *, scatter_dimension: int, **params: Any) -> Any:
    (at,) = past(dims[0], (scatter_dimension,))
    return unreduced_reduce_scatter_p.bind(args[0], scatter_dimension=at, **params), dims[0]


all_gather_reduced_p: Primitive = Primitive(
    "all_gather_reduced",
    abstract_eval=_gathered_type,
    align=lambda args, params: (args, params),
    lowering=_gather_reduced_lowering,
    jvp=LINEAR,
    transpose=lambda ct, x, *, all_gather_dimension, axis_name, axis_size: [
        scatter_terms(ct, all_gather_dimension, axis_name, axis_size)
    ],
    batching=_gather_reduced_batching,
    axis_batching=lambda axis, args, dims, **params: _all_gather_axis_batching(
        axis, args, dims, axis_index_groups=None, **params
    ),
    axis_names=lambda params: names_in(params["axis_name"]),
)
unreduced_reduce_scatter_p: Primitive = Primitive(
    "unreduced_reduce_scatter",
    abstract_eval=_scattered_type,
    align=lambda args, params: (args, params),
    lowering=_scatter_terms_lowering,
    jvp=LINEAR,
    transpose=lambda ct, x, *, scatter_dimension, axis_name, axis_size: [
        gather_reduced(ct, scatter_dimension, axis_name, axis_size)
    ],
    batching=_scatter_terms_batching,
    axis_batching=lambda axis, args, dims, **params: _reduce_scatter_axis_batching(
        axis, args, dims, axis_index_groups=None, **params
    ),
    axis_names=lambda params: names_in(params["axis_name"]),
)


def gather_reduced(x: Any, dim: int, name: Any, size: int) -> Any:
    """What all devices along an axis have, side by side: the same on all, which counts once."""
    return all_gather_reduced_p.bind(
        lax.pvary(x, (name,)), all_gather_dimension=dim, axis_name=name, axis_size=size
    )


def scatter_terms(x: Any, dim: int, name: Any, size: int) -> Any:
    """The sum of terms, of which each device keeps a part."""
    x = to_unreduced(x, (name,))
    return unreduced_reduce_scatter_p.bind(x, scatter_dimension=dim, axis_name=name, axis_size=size)
