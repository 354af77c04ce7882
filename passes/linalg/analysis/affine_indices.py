"""The values of an indexing map at a position of the iteration space, as arithmetic on indices."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import index


def indices(map_: ir.AffineMap, position: Mapping[int, ir.Value]) -> list[ir.Value]:
    """One index per result of the map; `position` holds the variable of each dimension."""
    return [_index(expression, position) for expression in map_.results]


def _index(expression: ir.AffineExpr, position: Mapping[int, ir.Value]) -> ir.Value:
    if isinstance(expression, ir.AffineDimExpr):
        return position[ir.AffineDimExpr(expression).position]
    if isinstance(expression, ir.AffineConstantExpr):
        return index(ir.AffineConstantExpr(expression).value)
    for kind, name in ((ir.AffineAddExpr, "arith.addi"), (ir.AffineMulExpr, "arith.muli")):
        if isinstance(expression, kind):
            parts = kind(expression)
            operands = [_index(parts.lhs, position), _index(parts.rhs, position)]
            return ir.Operation.create(name, [operands[0].type], operands).result
    raise NotImplementedError(f"affine expression {expression} in an indexing map")
