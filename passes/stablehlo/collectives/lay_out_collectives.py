"""Give collectives the form in which devices exchange contiguous memory.

    %0 = stablehlo.all_gather %x {all_gather_dim = 1}     %0 = stablehlo.reshape %x   // 1x2x3
       : 2x3 -> 2x12                                  ->  %1 = stablehlo.all_gather %0 {dim = 0}
                                                          %2 = transpose %1, reshape  // 2x12

The dimension that tells devices apart comes first, in a dimension of its own: of the operand of a
reduce_scatter, of the result of an all_gather, of both of an all_to_all. Collectives on several
operands become one each; `replica_id` becomes the number of the device or zero, by the module's
`mhlo.num_replicas` and `mhlo.num_partitions`; groups that are not written out are. Refused are
groups of devices that there are not, and programs with several replicas and several partitions.

example: test/passes/stablehlo/collectives/lay_out_collectives.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.stablehlo.canonicalize.rewriting import replace
from lamina.passes.stablehlo.collectives.collective import (
    CHANNEL,
    KINDS,
    REDUCTIONS,
    combine,
    device_counts,
    groups_among,
    groups_of,
)


class LayOutCollectives(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name in (*KINDS, "stablehlo.replica_id"):
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        replicas, partitions = device_counts(module)
        for op in found:
            _check_devices(op, max(replicas, partitions))
            if replicas > 1 and partitions > 1:
                raise CompileError.at(
                    op, f"runs on {replicas} replicas of {partitions} partitions; one must be 1"
                )
            with ir.InsertionPoint(op), op.location:
                new = _laid_out(op, replicas, partitions)
            replace(op, new)
            self.count("collectives")


def _check_devices(op: ir.Operation, devices: int) -> None:
    if op.name in ("stablehlo.replica_id", "stablehlo.partition_id"):
        return
    pairs = op.name == "stablehlo.collective_permute"
    table = groups_of(op, "source_target_pairs" if pairs else "replica_groups")
    if table.size and int(table.max()) >= devices:
        raise CompileError.at(
            op,
            f"names device {int(table.max())} in a program for {devices}",
            "say how many devices run it: mhlo.num_partitions, or compile_stablehlo(num_replicas=)",
        )


def _laid_out(op: ir.Operation, replicas: int, partitions: int) -> list[ir.Value]:
    if op.name in ("stablehlo.replica_id", "stablehlo.partition_id"):
        mine = replicas if op.name == "stablehlo.replica_id" else partitions
        other = partitions if op.name == "stablehlo.replica_id" else replicas
        alone = mine == 1 and other > 1
        return [hlo.constant(np.uint32(0)) if alone else hlo.partition_id()]
    if op.name == "stablehlo.collective_permute":
        pairs = groups_of(op, "source_target_pairs").tolist()
        return [hlo.collective_permute(x, pairs, CHANNEL) for x in op.operands]
    groups = groups_among(op, max(replicas, partitions))
    return [_FORMS[op.name](op, x, groups) for x in op.operands]


def _dimension(op: ir.Operation, name: str) -> int:
    return ir.IntegerAttr(op.attributes[name]).value


def _all_reduce(op: ir.Operation, x: ir.Value, groups: list[list[int]]) -> ir.Value:
    return hlo.all_reduce(x, groups, CHANNEL, combine(op))


def _reduce_scatter(op: ir.Operation, x: ir.Value, groups: list[list[int]]) -> ir.Value:
    parts = _cut(x, _dimension(op, "scatter_dimension"), len(groups[0]))
    mine = hlo.reduce_scatter(parts, 0, groups, CHANNEL, combine(op))
    return hlo.reshape(mine, list(mine.type.shape)[1:])


def _all_gather(op: ir.Operation, x: ir.Value, groups: list[list[int]]) -> ir.Value:
    row = hlo.reshape(x, [1, *x.type.shape])
    return _merge(hlo.all_gather(row, 0, groups, CHANNEL), _dimension(op, "all_gather_dim"))


def _all_to_all(op: ir.Operation, x: ir.Value, groups: list[list[int]]) -> ir.Value:
    parts = _cut(x, _dimension(op, "split_dimension"), len(groups[0]))
    return _merge(hlo.all_to_all(parts, 0, 0, groups, CHANNEL), _dimension(op, "concat_dimension"))


def _broadcast(op: ir.Operation, x: ir.Value, groups: list[list[int]]) -> ir.Value:
    table = ir.DenseElementsAttr.get(np.array(groups, dtype=np.int64))
    new = ir.Operation.create(
        "stablehlo.collective_broadcast",
        results=[x.type],
        operands=[x],
        attributes={"replica_groups": table},
    )
    return new.results[0]


_FORMS = {
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _broadcast,
}
assert set(_FORMS) >= REDUCTIONS


def _cut(x: ir.Value, dim: int, parts: int) -> ir.Value:
    """x with `parts` equal parts of dimension dim in a new leading dimension."""
    shape = list(x.type.shape)
    split = hlo.reshape(x, [*shape[:dim], parts, shape[dim] // parts, *shape[dim + 1 :]])
    return hlo.transpose(split, [dim, *(i for i in range(len(shape) + 1) if i != dim)])


def _merge(x: ir.Value, dim: int) -> ir.Value:
    """x with its leading dimension put side by side along dimension dim of the rest."""
    order = list(range(1, len(x.type.shape)))
    order.insert(dim, 0)
    moved = hlo.transpose(x, order)
    shape = list(moved.type.shape)
    return hlo.reshape(moved, [*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]])
