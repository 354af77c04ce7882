"""Find where along rows the greatest or least element is by finding the element first.

    %1:2 = reduce(%x init %low), (%iota init 0)       %m = reduce max %x
      applies the better of two, or the first    ->   %w = select %x == broadcast %m, %iota, 2147483647
    return %1#1                                       return reduce min %w

A fold of pairs is one element after the other; these two are loops over vectors, the second over a
row that is in cache. A NaN is better than any number: the first one's place is found. Leaves alone
folds across rows, which are done for many columns at a time, those whose element is read, too, and
all that are folded by another rule.

example: test/passes/stablehlo/find_extremes_first.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.find import find_ops
from lamina.passes.stablehlo.facts import defining, ints, made_by

_LEAST_ROW = 32  # elements: fewer are found in order as soon
_EXTREMES = {"GT": hlo.maximum, "LT": hlo.minimum}


@dataclass(frozen=True)
class FindExtremesFirst(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.reduce",))

    def run(self, module: ir.Module) -> None:
        for op in list(find_ops(module, "stablehlo.reduce")):
            direction = _direction(op)
            if direction is not None:
                with ir.InsertionPoint(op), op.location:
                    op.results[1].replace_all_uses_with(_index(op, direction))
                op.erase()
                self.count("found first")


def _direction(reduce: ir.Operation) -> str | None:
    """Which element of a row it finds the index of; None if that is not what it does."""
    if len(reduce.results) != 2 or next(iter(reduce.results[0].uses), None) is not None:
        return None
    values, places = reduce.operands[0], reduce.operands[1]
    shape, dims = list(values.type.shape), ints(reduce, "dimensions")
    iota = made_by(places, "stablehlo.iota")
    if iota is None or dims != [len(shape) - 1] or not _LEAST_ROW <= shape[-1] < 2**31:
        return None
    if ir.IntegerAttr(iota.attributes["iota_dimension"]).value != dims[0]:
        return None
    dtype = dtype_of(values.type)
    if dtype == np.bool_ or np.iinfo(dtype_of(places.type)).max < shape[-1]:
        return None
    block = reduce.regions[0].blocks[0]
    found = [_expression(v, block) for v in block.operations[len(block.operations) - 1].operands]
    is_integer = dtype.kind in "iu"
    return next((d for d in _EXTREMES if found == _better(d, is_integer)), None)


def _index(reduce: ir.Operation, direction: str) -> ir.Value:
    values, places, init, _ = reduce.operands
    shape, dims = list(values.type.shape), ints(reduce, "dimensions")
    dtype, counted = dtype_of(values.type), dtype_of(places.type)
    extreme = _EXTREMES[direction]
    (found,) = hlo.reduce([values], [init], dims, lambda a, b: [extreme(a, b)])
    spread = hlo.broadcast_in_dim(found, shape, range(len(shape) - 1))
    is_found = hlo.compare(values, spread, "EQ")
    if dtype.kind not in "iu":
        is_found = hlo.or_(is_found, hlo.compare(values, values, "NE"))
    nowhere = np.iinfo(counted).max
    where = hlo.select(is_found, places, hlo.full(nowhere, shape, counted))
    (first,) = hlo.reduce(
        [where], [hlo.full(nowhere, (), counted)], dims, lambda a, b: [hlo.minimum(a, b)]
    )
    return first


Expression = tuple[object, ...]


def _better(direction: str, is_integer: bool) -> list[Expression]:
    """What a fold gives of a pair (value 0, index 1) and another (2, 3)."""
    wins: Expression = (direction, 0, 2)
    first: Expression = ("LT", 1, 3)
    if not is_integer:
        nan: Expression = ("NE", 0, 0)
        wins = ("select", ("and", nan, ("NE", 2, 2)), first, ("or", wins, nan))
    keeps = ("or", wins, ("and", ("EQ", 0, 2), first))
    return [("select", wins, 0, 2), ("select", keeps, 1, 3)]


def _expression(value: ir.Value, block: ir.Block) -> Expression | int | None:
    """How a value is made from a block's arguments; None if not from them alone."""
    op = defining(value)
    if op is None:
        return list(block.arguments).index(value)
    if op.name == "stablehlo.constant":
        return None
    if op.name == "stablehlo.compare":
        direction = str(op.attributes["comparison_direction"])
        name = direction.removeprefix("#stablehlo<comparison_direction ").removesuffix(">")
    else:
        name = op.name.removeprefix("stablehlo.")
    return (name, *(_expression(operand, block) for operand in op.operands))
