"""What all builders are made of: short names for creating ops, types, attributes, regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from lamina.dialects.vendors import ir

Value: TypeAlias = ir.Value
Body = Callable[..., Any]
"""Builds a region: takes its block's arguments, returns a value or a sequence of values."""

create = ir.Operation.create
tensor = ir.RankedTensorType.get
dims_attribute = ir.DenseI64ArrayAttr.get


def return_(values: Sequence[Value]) -> None:
    """End the function or region that is being built."""
    owner = ir.InsertionPoint.current.block.owner.operation
    name = "func.return" if owner.name == "func.func" else "stablehlo.return"
    create(name, operands=list(values))


def i32(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def padding_attribute(padding: Sequence[tuple[int, int]]) -> ir.Attribute:
    return ir.DenseElementsAttr.get(np.array(padding, dtype=np.int64).reshape(-1, 2))


def scalar_types(values: Sequence[Value]) -> list[ir.Type]:
    return [tensor([], x.type.element_type) for x in values]


def add_block(region: ir.Region, types: Sequence[ir.Type]) -> ir.Block:
    location = ir.Location.current
    return region.blocks.append(*types, arg_locs=[location] * len(types))


def fill(region: ir.Region, types: Sequence[ir.Type], body: Body) -> None:
    block = add_block(region, types)
    with ir.InsertionPoint(block):
        values = body(*block.arguments)
        return_([values] if isinstance(values, ir.Value) else list(values))
