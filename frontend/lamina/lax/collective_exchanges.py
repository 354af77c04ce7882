"""Every position along a named axis sends to every other: all_to_all, ragged_all_to_all.

Under vmap they are data movement along the batch dimension, on devices StableHLO's all_to_all. The
primitive works on whole blocks ("tiled"); the functions make that of JAX's other forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import LINEAR, Primitive, ShapedArray, axes, get_aval, tree
from lamina.core.axes import Axis
from lamina.lax import hlo
from lamina.lax.batching_rules import at_front, past
from lamina.lax.checks import canonical_axes
from lamina.lax.named_axes import (
    CHANNEL,
    Groups,
    bound_names,
    cut,
    device_groups,
    group_size,
    merge,
    names_in,
    rank,
    read_groups,
    scaled,
    steps,
    vary_too,
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
    """Part j of a dimension of x goes to lane j, which puts what it gets from all lanes side by
    side: a transposition of the named axis with a dimension.

    x                  a tree of arrays.
    axis_name          the axis' name, or a tuple of names.
    split_axis         the dimension that is cut in parts, one for each lane.
    concat_axis        the dimension of the result along which parts lie, in the order of lanes.
    axis_index_groups  exchanges only within these groups of positions, all of one size.
    tiled              both dimensions stay, one smaller and one larger; otherwise split_axis goes
                       and a new dimension concat_axis comes.

    Raises ValueError where split_axis does not have the axis's size (or, tiled, a multiple of it);
    NameError for a name that is not bound.

    >>> exchange = lamina.vmap(lambda x: lax.all_to_all(x, 'i', 0, 0), axis_name='i')
    >>> print(exchange(jnp.array([[1, 2], [10, 20]])))
    [[ 1 10]
     [ 2 20]]
    """
    names = bound_names(axis_name, "all_to_all")
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
    """all_to_all over several names is one after the other, each on its digit of the position; in groups, one."""
    if len(steps(names, groups)) == 1:
        (name,) = steps(names, groups)
        return all_to_all_p.bind(
            x, split_axis=split, concat_axis=concat, axis_name=name, axis_index_groups=groups,
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
    """The named axis and a dimension of x, of equal sizes, in each other's place.

    x                  a tree of arrays.
    axis_name          the axis' name, or a tuple of names.
    axis               the dimension of x.
    axis_index_groups  exchanges only within these groups of positions, all of one size.

    Raises ValueError where sizes differ; NameError for a name that is not bound.

    >>> swap = lamina.vmap(lambda x: lax.pswapaxes(x, 'i', 0), axis_name='i')
    >>> print(swap(jnp.array([[1, 2], [10, 20]])))
    [[ 1 10]
     [ 2 20]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _all_to_all_type(
    x: ShapedArray, *, split_axis: int, concat_axis: int, axis_size: int, **_: Any
) -> ShapedArray:
    return scaled(scaled(x, split_axis, 1, axis_size), concat_axis, axis_size)


def _all_to_all_lowering(
    ctx: Any, x: Any, *, split_axis: int, concat_axis: int, axis_name: Any,
    axis_index_groups: Groups, **_: Any,
) -> Any:  # fmt: skip
    groups = device_groups(ctx, names_in(axis_name), axis_index_groups)
    return hlo.all_to_all(x, split_axis, concat_axis, groups, CHANNEL)


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
    axis_names=lambda params: names_in(params["axis_name"]),
    varying=vary_too,
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
    """output, with the rows that other positions along a named axis send to this one written into
    it.

    operand            an array, whose rows are sent.
    output             an array of the same dtype and row shape.
    input_offsets      to position j go rows operand[input_offsets[j]:][:send_sizes[j]],
    send_sizes         so many,
    output_offsets     into j's output from row output_offsets[j] on.
    recv_sizes         how many rows come from each position: what its send_sizes say. All four are
                       vectors of integers, one for each position.
    axis_name          the axis' name.
    axis_index_groups  exchanges only within these groups of positions, all of one size.

    All rows are gathered and those that are meant are picked out, for sizes here are static. Raises
    ValueError where the offsets and sizes are no vectors of integers, one for each position.

    >>> def send(rows, output, *plan):
    ...     return lax.ragged_all_to_all(rows, output, *plan, axis_name='i')
    >>> rows, zeros = jnp.array([[1, 2, 3], [4, 5, 6]]), jnp.zeros((2, 3), int)
    >>> starts, sizes, to = [[0, 1], [0, 2]], [[1, 2], [2, 1]], [[0, 0], [1, 2]]
    >>> plan = [jnp.array(p) for p in (starts, sizes, to, sizes)]
    >>> print(lamina.vmap(send, axis_name='i')(rows, zeros, *plan))
    [[1 4 5]
     [2 3 6]]
    """
    names = bound_names(axis_name, "ragged_all_to_all")
    groups = read_groups("ragged_all_to_all", names, axis_index_groups)
    size = group_size(names, groups)
    tables = {
        "input_offsets": input_offsets, "send_sizes": send_sizes,
        "output_offsets": output_offsets, "recv_sizes": recv_sizes,
    }  # fmt: skip
    for what, table in tables.items():
        aval = get_aval(table)
        if aval.dtype.kind not in "iu":
            raise ValueError(f"ragged_all_to_all {what} must be integer type.")
        if aval.shape != (size,):
            raise ValueError(
                f"ragged_all_to_all {what} must have one entry for each of the {size} positions "
                f"along {axis_name!r}, got shape {aval.shape}"
            )
    x, out = get_aval(operand), get_aval(output)
    if x.dtype != out.dtype:
        raise ValueError(
            f"ragged_all_to_all input and output must have the same dtype, got {x.dtype.name} and "
            f"{out.dtype.name}"
        )
    if x.shape[1:] != out.shape[1:] or not x.shape:
        raise ValueError(
            "ragged_all_to_all input and output must be equal up to their first dimension, got "
            f"{x.str_short()} and {out.str_short()}"
        )
    # [what, sender, receiver]: where rows come from, how many, and where they go.
    plan = lax.concatenate(
        [lax.expand_dims(lax.convert_element_type(t, np.int32), (0,))
         for t in (input_offsets, send_sizes, output_offsets)], 0)  # fmt: skip
    mine = lax.all_to_all(plan, axis_name, 1, 1, axis_index_groups=axis_index_groups, tiled=True)
    begin, count, at = (lax.index_in_dim(mine, i, 0, keepdims=False) for i in range(3))
    everyone = lax.all_gather(operand, axis_name, axis_index_groups=axis_index_groups, tiled=True)
    row = lax.broadcasted_iota(np.int32, (out.shape[0], size), 0)
    into = row - at
    sent = lax.bitwise_and(
        lax.ge(into, np.int32(0)),
        lax.lt(into, lax.broadcast_in_dim(count, (out.shape[0], size), (1,))),
    )
    source = into + begin + np.arange(size, dtype=np.int32) * np.int32(x.shape[0])
    source = lax.reduce_max(lax.select(sent, source, lax.full_like(source, -1)), (1,))
    rows = lax.reshape(everyone, (size * x.shape[0], *x.shape[1:]))
    found = rows.at[source].get(mode="clip") if x.shape[0] else output
    comes = lax.broadcast_in_dim(lax.ge(source, np.int32(0)), out.shape, (0,))
    return lax.select(comes, found, output)
