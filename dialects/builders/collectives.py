"""Builders of ops between devices. Groups are rows of device numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.dialects.builders.creation import Body, Value, create, fill, i64, tensor
from lamina.dialects.vendors import ir

Groups = Sequence[Sequence[int]]


def _table(rows: Groups) -> ir.Attribute:
    """One row a group; -1 after the devices of shorter ones."""
    width = max(map(len, rows), default=2)  # only pairs may be none
    table = [[*row, *[-1] * (width - len(row))] for row in rows]
    return ir.DenseElementsAttr.get(np.array(table, dtype=np.int64).reshape(len(rows), width))


def _common(channel: int) -> dict[str, ir.Attribute]:
    handle = ir.Attribute.parse(f"#stablehlo.channel_handle<handle = {channel}, type = 1>")
    return {"channel_handle": handle}


def _scaled(x: Value, dim: int, by: int, down: int = 1) -> ir.Type:
    shape = list(x.type.shape)
    shape[dim] = shape[dim] * by // down
    return tensor(shape, x.type.element_type)


def all_reduce(x: Value, groups: Groups, channel: int, body: Body) -> Value:
    """x combined over the devices of a group with body(lhs, rhs) on scalars."""
    op = create(
        "stablehlo.all_reduce",
        results=[x.type],
        operands=[x],
        attributes={
            "replica_groups": _table(groups),
            "use_global_device_ids": ir.UnitAttr.get(),
            **_common(channel),
        },
        regions=1,
    )
    fill(op.regions[0], [tensor([], x.type.element_type)] * 2, body)
    return op.results[0]


def reduce_scatter(x: Value, dim: int, groups: Groups, channel: int, body: Body) -> Value:
    """As all_reduce, each device keeping its part of dimension dim."""
    op = create(
        "stablehlo.reduce_scatter",
        results=[_scaled(x, dim, 1, len(groups[0]))],
        operands=[x],
        attributes={
            "replica_groups": _table(groups),
            "scatter_dimension": i64(dim),
            "use_global_device_ids": ir.UnitAttr.get(),
            **_common(channel),
        },
        regions=1,
    )
    fill(op.regions[0], [tensor([], x.type.element_type)] * 2, body)
    return op.results[0]


def all_gather(x: Value, dim: int, groups: Groups, channel: int) -> Value:
    """The x of all devices of a group, side by side along dimension dim."""
    return create(
        "stablehlo.all_gather",
        results=[_scaled(x, dim, len(groups[0]))],
        operands=[x],
        attributes={
            "replica_groups": _table(groups),
            "all_gather_dim": i64(dim),
            "use_global_device_ids": ir.UnitAttr.get(),
            **_common(channel),
        },
    ).results[0]


def all_to_all(x: Value, split: int, concat: int, groups: Groups, channel: int) -> Value:
    """Part j of dimension split goes to device j; what arrives is put side by side along concat."""
    shape = list(x.type.shape)
    shape[split] //= len(groups[0])
    shape[concat] *= len(groups[0])
    return create(
        "stablehlo.all_to_all",
        results=[tensor(shape, x.type.element_type)],
        operands=[x],
        attributes={
            "replica_groups": _table(groups),
            "split_dimension": i64(split),
            "concat_dimension": i64(concat),
            "split_count": i64(len(groups[0])),
            **_common(channel),
        },
    ).results[0]


def collective_permute(x: Value, pairs: Groups, channel: int) -> Value:
    """x of device s on device t for each pair (s, t); zeros on devices that are no target."""
    return create(
        "stablehlo.collective_permute",
        results=[x.type],
        operands=[x],
        attributes={"source_target_pairs": _table(pairs), **_common(channel)},
    ).results[0]


def partition_id() -> Value:
    """The number of the device that runs, ui32."""
    unsigned: Any = ir.IntegerType.get_unsigned(32)
    return create("stablehlo.partition_id", results=[tensor([], unsigned)]).results[0]
