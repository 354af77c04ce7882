"""Compute nothing on tensors without elements.

An op whose results are all empty becomes an empty constant; one that reads an empty operand and
still has elements to give becomes what is left: the other operands of a concatenation, the padding
value, a reduction's initial value, a contraction's zeros, the operand that an empty update leaves
as it is. Bufferisation could not lay empty buffers out.

example: test/passes/stablehlo/canonicalize/drop_empty_tensors.mlir
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.canonicalize.rewriting import replace


class DropEmptyTensors(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            if function.operation.name != "func.func" or not function.regions[0].blocks:
                continue
            for op in [inner.operation for inner in function.regions[0].blocks[0].operations]:
                with ir.InsertionPoint(op), op.location:
                    values = _without_empty(op)
                if values is not None:
                    replace(op, values)
                    self.count("dropped")


def _without_empty(op: ir.Operation) -> Sequence[ir.Value] | None:
    if not op.name.startswith("stablehlo.") or not len(op.results):
        return None
    if all(_is_empty(result) for result in op.results):
        if op.name == "stablehlo.constant":
            return None
        return [hlo.constant(np.zeros(list(r.type.shape), dtype_of(r.type))) for r in op.results]
    rule = _RULES.get(op.name)
    if rule is None or not any(_is_empty(operand) for operand in op.operands):
        return None
    return rule(op)


def _concatenate(op: ir.Operation) -> list[ir.Value]:
    kept = [operand for operand in op.operands if not _is_empty(operand)]
    return [
        kept[0]
        if len(kept) == 1
        else hlo.concatenate(kept, ir.IntegerAttr(op.attributes["dimension"]).value)
    ]


def _filled_with(operand: int) -> Callable[[ir.Operation], list[ir.Value]]:
    def fill(op: ir.Operation) -> list[ir.Value]:
        return [hlo.broadcast_in_dim(op.operands[operand], list(op.results[0].type.shape), [])]

    return fill


def _initial_values(op: ir.Operation) -> list[ir.Value]:
    inits = list(op.operands)[len(op.results) :]
    return [
        hlo.broadcast_in_dim(i, list(r.type.shape), [])
        for i, r in zip(inits, op.results, strict=True)
    ]


def _zeros(op: ir.Operation) -> list[ir.Value]:
    of = op.results[0].type
    return [hlo.full(0, list(of.shape), dtype_of(of))]


def _unchanged(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[: len(op.results)]


def _is_empty(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and 0 in value.type.shape


_RULES: dict[str, Callable[[ir.Operation], list[ir.Value]]] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _zeros,
    "stablehlo.dot_general": _zeros,
    "stablehlo.dynamic_update_slice": _unchanged,
    "stablehlo.pad": _filled_with(1),
    "stablehlo.reduce": _initial_values,
    "stablehlo.reduce_window": _initial_values,
    "stablehlo.scatter": _unchanged,
    "stablehlo.select_and_scatter": _filled_with(2),
}
