"""Operations across a named axis: the lanes of a vmap or the devices of a pmap or shard_map.

Under vmap they become data movement along the batch dimension (`axis_batching`), on devices
StableHLO's collectives (`lowering`). The primitives work on whole blocks ("tiled"); the functions
make that of JAX's other forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from lamina.core.axes import Axis
from lamina.core.tangents import Zero
from lamina.core.trace import Tracer
from lamina.lax import hlo
from lamina.lax.batching_rules import at_front, past
from lamina.lax.checks import canonical_axes
from lamina.lax.named_axes import (
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
    only_here,
    rank,
    read_groups,
    take,
    times,
)

_DEVICE_CHANNEL = 1  # every collective of a program may share one: devices meet in program order


# ---- reductions ---------------------------------------------------------------------------------
def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of x (a tree of arrays) over the axis, on every lane.

    axis_name          a name or a tuple of names; integers among them are dimensions of x.
    axis_index_groups  sums only within groups of positions along the axis.
    Booleans count as int32. For what is the same everywhere (a number, a NumPy array) the sum is
    known at once: psum(1, name) is the axis size, an int.
    """
    dims = [n for n in names_in(axis_name) if isinstance(n, int)]
    names = bound_names(tuple(n for n in names_in(axis_name) if not isinstance(n, int)))
    groups = read_groups("psum", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        if get_aval(leaf).dtype == np.bool_:
            leaf = int(leaf) if isinstance(leaf, bool) else lax.convert_element_type(leaf, np.int32)
        if dims:
            leaf = lax.reduce_sum(leaf, canonical_axes("psum", dims, rank(leaf)))
        if not isinstance(leaf, Tracer) and not _is_array(leaf):
            return leaf * group_size(names, groups)
        return psum_p.bind(leaf, axes=names, axis_index_groups=groups) if names else leaf

    return tree.map(one, x)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of x over the axis. Arguments as psum's."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    n = psum(1, axis_name, axis_index_groups=axis_index_groups)
    if any(isinstance(name, int) for name in names_in(axis_name)):
        counts = psum(tree.map(lambda leaf: np.ones(np.shape(leaf), np.int32), x), axis_name)
        return tree.map(lambda v, c: v / c, total, counts)
    return tree.map(lambda v: v / n, total)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest x over the axis. Arguments as psum's."""
    return _extremum("pmax", pmax_p, lax.reduce_max, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The least x over the axis. Arguments as psum's."""
    return _extremum("pmin", pmin_p, lax.reduce_min, x, axis_name, axis_index_groups)


def _extremum(
    what: str, primitive: Primitive, reduce: Any, x: Any, axis_name: Any, index_groups: Any
) -> Any:
    dims = [n for n in names_in(axis_name) if isinstance(n, int)]
    names = bound_names(tuple(n for n in names_in(axis_name) if not isinstance(n, int)))
    groups = read_groups(what, names, index_groups)

    def one(leaf: Any) -> Any:
        if dims:
            leaf = reduce(leaf, canonical_axes(what, dims, rank(leaf)))
        return primitive.bind(leaf, axes=names, axis_index_groups=groups) if names else leaf

    return tree.map(one, x)


def _is_array(x: Any) -> bool:
    return hasattr(x, "aval")


def _reduction(
    name: str,
    reduce: Callable[[Any, Sequence[int]], Any],
    repeat: Callable[[Any, int], Any],
    combine: Callable[[Any, Any], Any],
    jvp: Any,
    transpose: Any,
) -> Primitive:
    """A reduction over named axes. repeat(x, n): what n equal lanes come to."""

    def lowering(ctx: Any, x: Any, *, axes: Any, axis_index_groups: Groups) -> Any:
        groups = device_groups(ctx, axes, axis_index_groups)
        return hlo.all_reduce(x, groups, _DEVICE_CHANNEL, combine)

    def batching(args: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(*args, **params), dims[0]

    def axis_batching(
        axis: Axis, args: Any, dims: Any, *, axes: Any, axis_index_groups: Groups
    ) -> Any:
        (x,), (d,) = args, dims
        if axis_index_groups is not None:
            per_group = reduce(in_groups(x, d, axis, axis_index_groups), (1,))
            return for_each_member(per_group, axis, axis_index_groups), 0
        x = repeat(x, axis.size) if d is None else reduce(x, (d,))
        rest = tuple(n for n in axes if n != axis.name)
        return primitive.bind(x, axes=rest, axis_index_groups=None) if rest else x, None

    primitive = Primitive(
        name,
        abstract_eval=lambda x, *, axes, axis_index_groups: x,
        lowering=lowering,
        jvp=jvp,
        transpose=transpose,
        batching=batching,
        axis_batching=axis_batching,
        axis_names=lambda params: params["axes"],
    )
    return primitive


def _extremum_jvp(primitive: Callable[[], Primitive]) -> Any:
    """The tangent is that of the lane that has the extremum, shared out among equals."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = primitive().bind(x, **params)
        if type(t) is Zero:
            return out, t
        here = lax.convert_element_type(lax.eq(x, out), get_aval(t).dtype)
        count = psum_p.bind(here, **params)
        return out, lax.div(psum_p.bind(lax.mul(t, here), **params), count)

    return jvp


psum_p: Primitive = _reduction(
    "psum", lambda x, dims: lax.reduce_sum(x, dims), times, lambda a, b: hlo.add(a, b), LINEAR,
    lambda ct, x, **params: [psum_p.bind(ct, **params)],
)  # fmt: skip
pmax_p: Primitive = _reduction(
    "pmax", lambda x, dims: lax.reduce_max(x, dims), lambda x, n: x, lambda a, b: hlo.maximum(a, b),
    _extremum_jvp(lambda: pmax_p), NOT_LINEAR,
)  # fmt: skip
pmin_p: Primitive = _reduction(
    "pmin", lambda x, dims: lax.reduce_min(x, dims), lambda x, n: x, lambda a, b: hlo.minimum(a, b),
    _extremum_jvp(lambda: pmin_p), NOT_LINEAR,
)  # fmt: skip


# ---- where am I ---------------------------------------------------------------------------------
def axis_index(axis_name: Any) -> Any:
    """The position along the axis, an int32. Over several names the last runs fastest."""
    index: Any = None
    for name in bound_names(axis_name):
        here = axis_index_p.bind(axis_name=name)
        index = here if index is None else index * axes.size_of(name) + here
    return index


def axis_size(axis_name: Any) -> int:
    """The number of lanes along the axis (the product, for several names)."""
    return group_size(bound_names(axis_name), None)


def _axis_index_lowering(ctx: Any, *, axis_name: Any) -> Any:
    stride = 1
    for name, size in reversed(ctx.module.mesh_axes):
        if name == axis_name:
            break
        stride *= size
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
)


# ---- moving values between lanes ----------------------------------------------------------------
def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """x of lane s on lane t, for each pair (s, t) of perm; zeros on lanes that are no target.

    Raises ValueError where a source or a target comes twice or is no index of the axis.
    """
    names = bound_names(axis_name)
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
    """x of lane perm[i] on lane i."""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def _ppermute_lowering(ctx: Any, x: Any, *, axis_name: Any, perm: Any) -> Any:
    rows = device_groups(ctx, axis_name)
    pairs = [(row[s], row[t]) for row in rows for s, t in perm]
    return hlo.collective_permute(x, pairs, _DEVICE_CHANNEL)


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
)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """x of lane `source` on every lane."""
    names = bound_names(axis_name)
    size = group_size(names, None)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast source {source} is no index of axis {axis_name!r} ({size=})")

    def one(leaf: Any) -> Any:
        mine = lax.eq(axis_index(names), np.int32(source))
        kept = lax.select(lax.broadcast(mine, np.shape(leaf)), leaf, lax.zeros_like(leaf))
        return psum_p.bind(kept, axes=names, axis_index_groups=None)

    def of_leaf(leaf: Any) -> Any:
        dtype = get_aval(leaf).dtype
        if dtype != np.bool_:
            return one(leaf)
        return lax.convert_element_type(one(lax.convert_element_type(leaf, np.int32)), dtype)

    return tree.map(of_leaf, x)


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The x of all lanes: stacked in a new dimension `axis`, or side by side in it (tiled)."""
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(f"all_gather: to is 'varying', 'reduced' or 'invarying', got {to!r}")
    names = bound_names(axis_name)
    groups = read_groups("all_gather", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        (at,) = canonical_axes("all_gather", (axis,), rank(leaf) + (not tiled))
        block = leaf if tiled else lax.expand_dims(leaf, (at,))
        for name in reversed(names):
            block = all_gather_p.bind(
                block, all_gather_dimension=at, axis_name=name, axis_index_groups=groups,
                axis_size=group_size((name,), groups),
            )  # fmt: skip
        return block

    return tree.map(one, x)


def _scaled(x: ShapedArray, dim: int, times: int, down: int = 1) -> ShapedArray:
    shape = list(x.shape)
    shape[dim] = shape[dim] * times // down
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _one_name(params: dict[str, Any]) -> tuple[Any, ...]:
    return (params["axis_name"],)


def _all_gather_lowering(
    ctx: Any, x: Any, *, all_gather_dimension: int, axis_name: Any, axis_index_groups: Groups, **_: Any
) -> Any:  # fmt: skip
    groups = device_groups(ctx, (axis_name,), axis_index_groups)
    return hlo.all_gather(x, all_gather_dimension, groups, _DEVICE_CHANNEL)


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


def _all_gather_batching(args: Any, dims: Any, *, all_gather_dimension: int, **params: Any) -> Any:
    (at,) = past(dims[0], (all_gather_dimension,))
    return all_gather_p.bind(args[0], all_gather_dimension=at, **params), dims[0]


all_gather_p: Primitive = Primitive(
    "all_gather",
    abstract_eval=lambda x, *, all_gather_dimension, axis_size, **_: _scaled(
        x, all_gather_dimension, axis_size
    ),
    lowering=_all_gather_lowering,
    jvp=LINEAR,
    transpose=_all_gather_transpose,
    batching=_all_gather_batching,
    axis_batching=_all_gather_axis_batching,
    axis_names=_one_name,
)


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """As psum, each lane keeping one part of dimension `scatter_dimension` of the sum.

    Raises ValueError where the dimension's size is not the axis size (or, tiled, no multiple).
    """
    names = bound_names(axis_name)
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
        for name in names:
            leaf = reduce_scatter_p.bind(
                leaf, scatter_dimension=at, axis_name=name, axis_index_groups=groups,
                axis_size=group_size((name,), groups),
            )  # fmt: skip
        return leaf if tiled else lax.squeeze(leaf, (at,))

    return tree.map(one, x)


def _reduce_scatter_lowering(
    ctx: Any, x: Any, *, scatter_dimension: int, axis_name: Any, axis_index_groups: Groups, **_: Any
) -> Any:  # fmt: skip
    groups = device_groups(ctx, (axis_name,), axis_index_groups)
    return hlo.reduce_scatter(x, scatter_dimension, groups, _DEVICE_CHANNEL, hlo.add)


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
    abstract_eval=lambda x, *, scatter_dimension, axis_size, **_: _scaled(
        x, scatter_dimension, 1, axis_size
    ),
    lowering=_reduce_scatter_lowering,
    jvp=LINEAR,
    transpose=_reduce_scatter_transpose,
    batching=_reduce_scatter_batching,
    axis_batching=_reduce_scatter_axis_batching,
    axis_names=_one_name,
)


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Part j of dimension split_axis goes to lane j, which puts what it gets into concat_axis.

    Without `tiled` the dimension split_axis goes and a new dimension concat_axis comes; with it
    both stay, one smaller and one larger. Raises ValueError where split_axis does not have the
    axis's size (or, tiled, a multiple of it).
    """
    names = bound_names(axis_name)
    groups = read_groups("all_to_all", names, axis_index_groups)
    size = group_size(names, groups)

    def one(leaf: Any) -> Any:
        (split,) = canonical_axes("all_to_all", (split_axis,), rank(leaf))
        (concat,) = canonical_axes("all_to_all", (concat_axis,), rank(leaf))
        here = np.shape(leaf)[split]
        if tiled and here % size:
            raise ValueError(
                f"The size of all_to_all split_axis ({here}) has to be divisible by the size of "
                f"the named axis {axis_name} ({size})"
            )
        if not tiled and here != size:
            raise ValueError(
                "all_to_all requires the size of the mapped axis axis_name to equal x.shape["
                f"split_axis], but they are {size} and {here} respectively."
            )
        if not tiled and split != concat:
            concat += split < concat  # its place once split is gone
            leaf = lax.expand_dims(leaf, (concat,))
            split += concat < split
        out = _exchange(leaf, names, split, concat, groups)
        return lax.squeeze(out, (split,)) if not tiled and split != concat else out

    return tree.map(one, x)


def _exchange(x: Any, names: Any, split: int, concat: int, groups: Groups) -> Any:
    """all_to_all over several names is one after the other, each on its digit of the position."""
    if len(names) == 1:
        return all_to_all_p.bind(
            x, split_axis=split, concat_axis=concat, axis_name=names[0], axis_index_groups=groups,
            axis_size=group_size(names, groups),
        )  # fmt: skip
    sizes = [axes.size_of(name) for name in names]
    shape, k = np.shape(x), len(names)
    digits = (*sizes, shape[split] // int(np.prod(sizes)))
    x = lax.reshape(x, (*shape[:split], *digits, *shape[split + 1 :]))
    for i, name in enumerate(names):
        x = _exchange(x, (name,), split + i, split + i, None)
    # The digits now tell where each part came from: they go in front of the dimension concat.
    order = [i for i in range(rank(x)) if not split <= i < split + k]
    at = order.index(concat + k if concat >= split else concat)
    order[at:at] = range(split, split + k)
    x = lax.transpose(x, order)
    out = list(shape)
    out[split] //= int(np.prod(sizes))
    out[concat] *= int(np.prod(sizes))
    return lax.reshape(x, out)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The named axis and dimension `axis`, of equal sizes, in each other's place."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _all_to_all_type(
    x: ShapedArray, *, split_axis: int, concat_axis: int, axis_size: int, **_: Any
) -> ShapedArray:
    return _scaled(_scaled(x, split_axis, 1, axis_size), concat_axis, axis_size)


def _all_to_all_lowering(
    ctx: Any, x: Any, *, split_axis: int, concat_axis: int, axis_name: Any,
    axis_index_groups: Groups, **_: Any,
) -> Any:  # fmt: skip
    groups = device_groups(ctx, (axis_name,), axis_index_groups)
    return hlo.all_to_all(x, split_axis, concat_axis, groups, _DEVICE_CHANNEL)


def _all_to_all_axis_batching(
    axis: Axis, args: Any, dims: Any, *, split_axis: int, concat_axis: int,
    axis_index_groups: Groups, **_: Any,
) -> Any:  # fmt: skip
    if axis_index_groups is not None:
        raise NotImplementedError("axis_index_groups of all_to_all are not supported under vmap")
    parts = cut(at_front(args[0], dims[0], axis.size), split_axis + 1, axis.size)
    target = split_axis + 1
    order = [i for i in range(1, rank(parts)) if i != target]
    order.insert(concat_axis, 0)
    return merge(lax.transpose(parts, [target, *order]), concat_axis + 1), 0


def _all_to_all_transpose(
    ct: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any
) -> Any:
    return [all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)]


def _all_to_all_batching(
    args: Any, dims: Any, *, split_axis: int, concat_axis: int, **params: Any
) -> Any:
    split, concat = past(dims[0], (split_axis, concat_axis))
    out = all_to_all_p.bind(args[0], split_axis=split, concat_axis=concat, **params)
    return out, dims[0]


all_to_all_p: Primitive = Primitive(
    "all_to_all",
    abstract_eval=_all_to_all_type,
    lowering=_all_to_all_lowering,
    jvp=LINEAR,
    transpose=_all_to_all_transpose,
    batching=_all_to_all_batching,
    axis_batching=_all_to_all_axis_batching,
    axis_names=_one_name,
)


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """Raises NotImplementedError: sizes that data decide are not compiled."""
    raise NotImplementedError(
        "ragged_all_to_all is not supported: pad the parts to one size and use all_to_all"
    )


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """x: whether a value varies along an axis is not part of its type here."""
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: `to` is 'varying', 'reduced' or 'unreduced', got {to!r}")
    bound_names(() if axis_name is None else axis_name)
    return x


def pvary(x: Any, axis_name: Any) -> Any:
    """x: the same as pcast(x, axis_name, to="varying")."""
    return pcast(x, axis_name, to="varying")
