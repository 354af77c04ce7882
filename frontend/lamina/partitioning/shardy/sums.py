"""Arrays that are terms of a sum over an axis of the mesh (unreduced).

Shardy takes a constraint for a property of what it constrains: whole arrays, the same on each device, would
count as terms as they are, and their sum be too large. Only some ops make terms; what others give is split
into terms, the first of which is the array and the others zero.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from lamina.partitioning.shardy.ops import walk

_PRODUCTS = frozenset(("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"))
_REDUCTIONS = frozenset(("stablehlo.reduce", "stablehlo.scatter", "stablehlo.reduce_window"))
_BODIES = frozenset(("sdy.manual_computation", "sdy.named_computation", "stablehlo.custom_call"))
_COMBINERS = {"sum": "stablehlo.add", "max": "stablehlo.maximum", "min": "stablehlo.minimum"}


def split_whole_arrays(module: Any) -> None:
    """Has arrays that are not terms resharded where they are to become some."""
    for op in list(walk(module.operation)):
        if op.name != "sdy.sharding_constraint" or not _has_terms(op.attributes["sharding"]):
            continue
        made_by = op.operands[0].owner
        if isinstance(made_by, ir.Block):
            continue
        kind = str(sdy.TensorShardingAttr(op.attributes["sharding"]).reduction_op)
        if _may_be_terms(op.operands[0], kind, module) or any(map(_is_terms, made_by.operands)):
            continue
        with ir.InsertionPoint(op), op.location:
            whole: Any = sdy.ReshardOp(op.operands[0], op.attributes["sharding"])
        op.results[0].replace_all_uses_with(whole.result)
        if "sdy.sharding" not in made_by.attributes:  # else Shardy takes it for that of the reshard
            made_by.attributes["sdy.sharding"] = _without_terms(made_by, op)
        op.erase()


def _may_be_terms(value: Any, kind: str, module: Any) -> bool:
    """Whether the op that makes a value makes terms of its parts on each device, though no operand is such."""
    op = value.owner
    if _is_terms(value):
        return True
    if isinstance(op, ir.Block):
        return False
    if op.name in _PRODUCTS:
        return kind == "sum"
    if op.name in _REDUCTIONS:
        body = op.regions[0].blocks[0]
        return [inner.operation.name for inner in body][:-1] == [_COMBINERS[kind]]
    if op.name == "func.call":
        function: Any = ir.SymbolTable(module.operation)[
            ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        ]
        returned = list(function.operation.regions[0].blocks[0])[-1].operation
        return _may_be_terms(returned.operands[ir.OpResult(value).result_number], kind, module)
    return op.name in _BODIES or any(map(_is_terms, op.operands))


def _without_terms(made_by: Any, constraint: Any) -> Any:
    """How an op's results lie before one of them is split: as it will, but whole."""
    target = sdy.TensorShardingAttr(constraint.attributes["sharding"])
    given = []
    for result in made_by.results:
        dimensions = target.dimension_shardings
        if result != constraint.operands[0]:
            dimensions = [sdy.DimensionShardingAttr.get([], False)] * _rank(result.type)
        given.append(sdy.TensorShardingAttr.get(target.mesh_or_ref, dimensions))
    return sdy.TensorShardingPerValueAttr.get(given)


def _rank(type: Any) -> int:
    return type.rank if isinstance(type, ir.RankedTensorType) else 0


def _is_terms(value: Any) -> bool:
    """Whether a value is marked as terms where it is made."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        function = owner.owner.operation
        if function.name != "func.func" or "arg_attrs" not in function.attributes:
            return False
        given = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[value.arg_number])
        return "sdy.sharding" in given and _has_terms(given["sdy.sharding"])
    return "sharding" in owner.attributes and _has_terms(owner.attributes["sharding"])


def _has_terms(sharding: Any) -> bool:
    return len(sdy.TensorShardingAttr(sharding).unreduced_axes) > 0
