"""Where each device takes its own part of what devices have combined, let it get no more than that.

    %0 = stablehlo.all_reduce %x              // 8x4        %0 = stablehlo.reduce_scatter %x
    %1 = stablehlo.partition_id                        ->        {scatter_dimension = 0}    // 2x4
    %2 = multiply %1, 2
    %3 = stablehlo.dynamic_slice %0, %2, 0    // 2x4

A reduce_scatter moves half the bytes, and combines in the same order. Gradients of weights that are split over the
devices (FSDP) come so from the partitioner, which sums them whole. Transposes, and ops by element with
scalars, may stand between; they are done on the part. Where the part begins is computed for every
device: it must be part j for the j-th device of each group. Leaves alone what anything else reads.

example: test/passes/stablehlo/collectives/scatter_reductions.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of, dense_splat
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    computes_elements,
    defining,
    has_one_use,
    ints,
    made_by,
    splat_of,
)
from lamina.passes.stablehlo.canonicalize import fold_evaluate
from lamina.passes.stablehlo.collectives.collective import (
    CHANNEL,
    combine,
    device_counts,
    groups_among,
)
from lamina.records import Record

_ALL_REDUCE, _BROADCAST = "stablehlo.all_reduce", "stablehlo.broadcast_in_dim"
_SLICE, _TRANSPOSE = "stablehlo.dynamic_slice", "stablehlo.transpose"
_MOST_OPS = 32  # search
"""That are looked at to know where a part begins."""


class ScatterReductions(Pass):
    """The pass `stablehlo-scatter-reductions`."""

    only_with = frozenset(("stablehlo.all_reduce",))

    def run(self, module: ir.Module) -> None:
        devices = max(device_counts(module))
        for op in find_ops(module, _SLICE):
            found = _found(op, devices)
            if found is not None:
                _scatter(found)
                self.count("reductions")


class _Found(Record):
    """A reduction of which a slice takes each device's part; dim is that of the reduction."""

    slice: ir.Operation
    between: list[ir.Operation]  # the last first
    reduction: ir.Operation
    dim: int
    groups: list[list[int]]


def _found(op: ir.Operation, devices: int) -> _Found | None:
    whole, part = op.operands[0].type.shape, op.results[0].type.shape
    cut = [dim for dim, (n, m) in enumerate(zip(whole, part, strict=True)) if n != m]
    if len(cut) != 1:
        return None
    dim = cut[0]
    above = _above(op, dim)
    if above is None:
        return None
    between, reduction, its_dim = above
    groups = groups_among(reduction, devices)
    count = len(groups[0])
    if any(len(group) != count for group in groups):
        return None
    if whole[dim] != part[dim] * count or sorted(sum(groups, [])) != list(range(devices)):
        return None
    starts = _on_each_device(op.operands[1 + dim], devices)
    if starts is None:
        return None
    begins = np.clip(starts.astype(np.int64), 0, whole[dim] - part[dim])
    if not (begins[np.array(groups)] == part[dim] * np.arange(count)).all():
        return None
    return _Found(slice=op, between=between, reduction=reduction, dim=its_dim, groups=groups)


def _above(op: ir.Operation, dim: int) -> tuple[list[ir.Operation], ir.Operation, int] | None:
    """What only an op reads, up to the reduction that it comes from, and which dimension is there `dim`."""
    between: list[ir.Operation] = []
    value = op.operands[0]
    while True:
        maker = defining(value)
        if maker is None or maker.block != op.block or not has_one_use(value):
            return None
        if maker.name == _ALL_REDUCE:
            return (between, maker, dim) if len(maker.operands) == 1 else None
        if maker.name == _TRANSPOSE:
            dim = ints(maker, "permutation")[dim]
            value = maker.operands[0]
        elif computes_elements(maker):
            arrays = [x for x in maker.operands if not _is_scalar(x)]
            if len(arrays) != 1:
                return None
            value = arrays[0]
        else:
            return None
        between.append(maker)


def _is_scalar(value: ir.Value) -> bool:
    """Whether an operand is one number, or one that has been repeated."""
    if not value.type.shape or splat_of(value) is not None:
        return True
    spread = made_by(value, _BROADCAST)
    return spread is not None and not spread.operands[0].type.shape


def _scatter(found: _Found) -> None:
    reduction = found.reduction
    with ir.InsertionPoint(reduction), reduction.location:
        value = hlo.reduce_scatter(
            reduction.operands[0], found.dim, found.groups, CHANNEL, combine(reduction)
        )
    for op in reversed(found.between):
        with ir.InsertionPoint(found.slice), op.location:
            value = _on_part(op, value)
    found.slice.results[0].replace_all_uses_with(value)
    for op in (found.slice, *found.between, reduction):
        op.erase()


def _on_part(op: ir.Operation, part: ir.Value) -> ir.Value:
    if op.name == _TRANSPOSE:
        return hlo.transpose(part, ints(op, "permutation"))
    shape = part.type.shape
    operands = [_spread(x, shape) if _is_scalar(x) else part for x in op.operands]
    of = ir.RankedTensorType.get(shape, op.results[0].type.element_type)
    return remade(op, [of], operands).result


def _spread(value: ir.Value, shape: list[int]) -> ir.Value:
    """A repeated number as often as a part has elements."""
    if not value.type.shape:
        return value
    of = ir.RankedTensorType.get(shape, value.type.element_type)
    splat = splat_of(value)
    if splat is None:
        spread = made_by(value, _BROADCAST)
        assert spread is not None
        return remade(spread, [of], list(spread.operands)).result
    dense = dense_splat(splat, tuple(shape), dtype_of(value.type))
    return ir.Operation.create(CONSTANT, [of], attributes={"value": dense}).result


def _on_each_device(value: ir.Value, devices: int) -> np.ndarray | None:
    """A number that depends on the device alone, on each; None where it does not, or that is not known."""
    order: list[ir.Operation] = []  # operands first
    if not _collect(value, order):
        return None
    found = []
    for device in range(devices):
        known: dict[ir.Value, np.ndarray] = {}
        for op in order:
            made = _value(op, known, device)
            if made is None:
                return None
            known[op.results[0]] = made
        found.append(known[value])
    return np.array(found)


def _collect(value: ir.Value, order: list[ir.Operation]) -> bool:
    op = defining(value)
    if op is None or len(order) > _MOST_OPS:
        return False
    if op in order:
        return True
    known = op.name in fold_evaluate.EVALUATE or op.name in (
        CONSTANT,
        _SLICE,
        "stablehlo.partition_id",
    )
    if not known or len(op.regions) or not all(_collect(x, order) for x in op.operands):
        return False
    order.append(op)
    return True


def _value(op: ir.Operation, known: dict[ir.Value, np.ndarray], device: int) -> np.ndarray | None:
    if op.name == CONSTANT:
        return array_of(op)
    if op.name == "stablehlo.partition_id":
        return np.asarray(device, np.uint32)
    operands = [known[x] for x in op.operands]
    if op.name == _SLICE:
        array, *starts = operands
        sizes = op.results[0].type.shape
        bounds = zip(starts, array.shape, sizes, strict=True)
        begins = [min(max(int(at), 0), n - size) for at, n, size in bounds]
        return array[tuple(slice(at, at + size) for at, size in zip(begins, sizes, strict=True))]
    return fold_evaluate.run(fold_evaluate.EVALUATE[op.name], op, operands)
