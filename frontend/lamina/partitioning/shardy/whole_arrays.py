"""Ops that Shardy does not cut, or cuts wrongly, are given whole arrays."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from jaxlib.mlir.passmanager import PassManager

from lamina.partitioning.shardy.meshes import mesh_of
from lamina.partitioning.shardy.ops import (
    CALL,
    MANUAL,
    SHARDING,
    is_of_each_device,
    target_of,
    walk,
)

_RULE = "sdy.sharding_rule"
_FRONTEND, _BATCH = "mhlo.frontend_attributes", "num_batch_dims"
_LAPACK, _OF_VECTORS = "lamina.lapack.", frozenset(("gtsv", "permutation"))
"""Calls of LAPACK's routines, and those whose first operand is a vector, not a matrix."""
_WITHOUT_NEED = frozenset(
    ("stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.return", "func.return", "func.call",
     "func.func", "stablehlo.optimization_barrier", "stablehlo.rng_bit_generator")
)  # fmt: skip
"""Ops without a rule that Shardy cuts all the same."""
_RULES = "func.func(sdy-populate-op-sharding-rules)"
_COMBINERS = frozenset(("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum"))


def gather_where_needed(module: Any, mesh: str) -> None:
    """Reshards the operands of ops that Shardy would get wrong: to whole arrays, or whole along some
    dimensions. Custom calls are given whole arrays but for the leading dimensions of a batch, where
    they say how many these are."""
    PassManager.parse(f"builtin.module({_RULES})").run(module.operation)
    for op in list(walk(module.operation)):
        if op.name.startswith("sdy.") or op.name in _WITHOUT_NEED:
            continue
        if op.name == CALL:
            if is_of_each_device(op):
                continue
            batch = _batch(op)
            axes = [batch] * len(op.operands), [batch] * len(op.results)
        elif _RULE not in op.attributes:
            axes = [[]] * len(op.operands), [[]] * len(op.results)
        elif whole := _whole_factors(op):
            axes = _without(op, whole)
        else:
            continue
        with ir.InsertionPoint(op), op.location:
            for i, operand in enumerate(op.operands):
                if isinstance(operand.type, ir.RankedTensorType):
                    sharding = _cut(axes[0][i], operand.type, mesh)
                    op.operands[i] = sdy.ReshardOp(operand, sharding).result
        if SHARDING in op.attributes:
            cuts = zip(axes[1], op.results, strict=True)
            kept = [_cut(first, result.type, mesh) for first, result in cuts]
            op.attributes[SHARDING] = sdy.TensorShardingPerValueAttr.get(kept)


def mark_batches(module: Any) -> None:
    """Writes into calls of LAPACK's routines how many leading dimensions are of a batch: to Shardy as a rule, by which
    these lie alike, and for `gather_where_needed`."""
    for op in walk(module.operation):
        if op.name == CALL and target_of(op).startswith(_LAPACK):
            routine = target_of(op).removeprefix(_LAPACK)
            count = op.operands[0].type.rank - (1 if routine in _OF_VECTORS else 2)
            op.attributes[_FRONTEND] = ir.DictAttr.get({_BATCH: ir.StringAttr.get(str(count))})
            op.attributes[_RULE] = _rule_of_batch(op, count)


def _rule_of_batch(call: Any, count: int) -> Any:
    """A rule by which so many leading dimensions of all arrays lie alike, each other dimension by itself."""
    sizes = list(call.operands[0].type.shape[:count])

    def mapping(value: Any) -> Any:
        own = value.type.shape[count:]
        factors = [*range(count), *range(len(sizes), len(sizes) + len(own))]
        sizes.extend(own)
        return sdy.TensorMappingAttr.get([sdy.DimMappingAttr.get([factor]) for factor in factors])

    operands, results = ([mapping(x) for x in values] for values in (call.operands, call.results))
    return sdy.OpShardingRuleAttr.get(sizes, operands, results, is_custom=True)


def take_batches(module: Any) -> None:
    """Takes off what `mark_batches` wrote."""
    for op in walk(module.operation):
        if op.name == CALL and target_of(op).startswith(_LAPACK):
            del op.attributes[_FRONTEND]


def _batch(call: Any) -> list[Any]:
    """How the first result of a custom call lies along the dimensions of a batch."""
    if (
        not len(call.results)
        or _FRONTEND not in call.attributes
        or _BATCH not in call.attributes[_FRONTEND]
    ):
        return []
    return _dimensions(call)[0][: int(call.attributes[_FRONTEND][_BATCH].value)]


def _dimensions(op: Any) -> list[list[Any]]:
    """How the results of an op lie along their dimensions."""
    if SHARDING not in op.attributes:
        return [[] for _ in op.results]
    given = sdy.TensorShardingPerValueAttr(op.attributes[SHARDING]).shardings
    return [list(sdy.TensorShardingAttr(one).dimension_shardings) for one in given]


def _whole_factors(op: Any) -> set[int]:
    """The factors of an op's rule along which Shardy cuts it wrongly."""
    rule = sdy.OpShardingRuleAttr(op.attributes[_RULE])
    if op.name == "stablehlo.reduce":
        inner = [one.operation.name for one in op.regions[0].blocks[0].operations]
        known = len(inner) == 2 and inner[0] in _COMBINERS
        return set() if known else set(rule.reduction_factors)
    steps = {"stablehlo.slice": ("strides", 1), "stablehlo.pad": ("interior_padding", 0)}
    if op.name in steps:
        name, usual = steps[op.name]
        return (
            set() if all(x == usual for x in op.attributes[name]) else set(rule.permutation_factors)
        )
    return set()


def _without(op: Any, whole: set[int]) -> tuple[list[list[Any]], list[list[Any]]]:
    """How the operands and the results of an op lie where the results lie as they do, but for dimensions
    of these factors, which are whole."""
    rule = sdy.OpShardingRuleAttr(op.attributes[_RULE])
    sides = [
        [[list(sdy.DimMappingAttr(dim).factor_indices) for dim in sdy.TensorMappingAttr(one).dim_mappings]
         for one in mappings]
        for mappings in (rule.operand_mappings, rule.result_mappings)
    ]  # fmt: skip
    of_factor: dict[int, Any] = {}
    for dims, cuts in zip(sides[1], _dimensions(op), strict=True):
        for factors, cut in zip(dims, cuts):  # a scalar, or one that is not cut, has none
            if len(factors) == 1 and factors[0] not in whole:
                of_factor.setdefault(factors[0], cut)
    nowhere = sdy.DimensionShardingAttr.get([], True)
    operands, results = (
        [
            [
                of_factor.get(factors[0], nowhere) if len(factors) == 1 else nowhere
                for factors in dims
            ]
            for dims in side
        ]
        for side in sides
    )
    return operands, results


def keep_whole(module: Any, mesh: str) -> None:
    """Gathers the arguments of @main, what manual computations give, and the results before they are cut
    again, so that all between is on whole arrays."""
    main = ir.SymbolTable(module.operation)["main"].operation
    block = main.regions[0].blocks[0]
    _gather(list(block.arguments), ir.InsertionPoint.at_block_begin(block), mesh)
    for op in list(walk(module.operation)):
        if op.name == "sdy.sharding_constraint":
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        elif op.name == MANUAL:
            _gather(list(op.results), ir.InsertionPoint.after(op), mesh)
        elif SHARDING in op.attributes:
            del op.attributes[SHARDING]
    last = list(block.operations)[-1].operation
    with ir.InsertionPoint(last), last.location:
        for i, value in enumerate(last.operands):
            last.operands[i] = sdy.ReshardOp(value, _cut([], value.type, mesh)).result


def _gather(values: list[Any], place: Any, mesh: str) -> None:
    """Gives the users of these values the whole arrays."""
    with place, ir.Location.unknown():
        for value in values:
            whole = sdy.ReshardOp(value, _cut([], value.type, mesh))
            value.replace_all_uses_except(whole.result, whole.operation)


def any_mesh(module: Any, devices: int) -> str | None:
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            sizes = list(mesh_of(op.operation.attributes["mesh"], sdy).sizes.values())
            if sizes and prod(sizes) == devices:
                return str(op.operation.attributes["sym_name"].value)
    return None


def _cut(first: list[Any], type: Any, mesh: str) -> Any:
    """The sharding of an array of this type that lies so along its first dimensions, whole along others."""
    if not isinstance(type, ir.RankedTensorType):  # a token
        return sdy.TensorShardingAttr.get(mesh, [])
    rest = [sdy.DimensionShardingAttr.get([], True)] * (type.rank - len(first))
    return sdy.TensorShardingAttr.get(mesh, [*first, *rest])
