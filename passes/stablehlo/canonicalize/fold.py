"""Compute at compile time what has only constants as operands.

    %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %1 = stablehlo.add %0, %0 : tensor<2xi32>              ->   stablehlo.constant dense<[2, 4]>

Results are the ones the program would give: integers wrap, division by zero and long shifts give
XLA's values, float to integer saturates (fold_evaluate.py). Transcendentals are computed in f64
and rounded once. Constants of one repeated element fold at any size, to such a constant; others
only up to `max-bytes`, and never to more bytes than their operands have unless they are small: a
broadcast or an iota costs nothing inside a kernel, an array costs memory and compile time.

example: test/passes/stablehlo/canonicalize/fold.mlir
"""

from __future__ import annotations

import time

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.types import DYNAMIC, byte_size, dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.facts import CONSTANT, defining, size_of
from lamina.passes.stablehlo.canonicalize import fold_evaluate
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, replace

_SMALL = 64  # memory: elements that may be stored where only repeated elements were stored before
_TINY = 8  # memory: elements that may be stored where nothing was


class Fold(Pass):
    """The pass `stablehlo-fold`."""

    max_bytes: int = 1 << 20  # memory
    max_seconds: float = 1.0  # code

    def run(self, module: ir.Module) -> None:
        _walk(module.operation.regions[0], Folder(self))


def _walk(region: ir.Region, folder: Folder) -> None:
    for block in region.blocks:
        # Only ops before the current one are erased, so that a list stays good to walk.
        for op in [inner.operation for inner in block.operations]:
            value = None
            if op.name in fold_evaluate.EVALUATE:
                with ir.InsertionPoint(op), op.location:
                    value = folder.folded(op)
            if value is not None:
                replace(op, [value])
                folder.options.count("folded")
                continue
            for inner in op.regions:
                _walk(inner, folder)


class Folder:
    """What computes ops on constants, for so many seconds from when it is made."""

    def __init__(self, options: Fold) -> None:
        self.options = options
        self._deadline = time.monotonic() + options.max_seconds

    def rules(self) -> dict[str, Rule]:
        """The rule that folds, by the names of the ops that can be folded."""
        return dict.fromkeys(fold_evaluate.EVALUATE, self.folded)

    def folded(self, op: ir.Operation) -> ir.Value | None:
        """The value of an op of `EVALUATE` that has only constants as operands, built at the ambient
        insertion point; None where it has others, or is not worth it."""
        if len(op.results) != 1 or not isinstance(op.result.type, ir.RankedTensorType):
            return None
        constants = []
        for operand in op.operands:
            constant = defining(operand)
            if constant is None or constant.name != CONSTANT:
                return None
            constants.append(constant)
        of = op.result.type
        if DYNAMIC in of.shape or not all(_has_dtype(x.type) for x in (*op.operands, op.result)):
            return None
        evaluate = fold_evaluate.EVALUATE[op.name]
        splats = bool(constants) and all(is_splat(constant) for constant in constants)
        if splats and op.name in fold_evaluate.SPLAT_TO_SPLAT and size_of(of):
            return _folded_splat(op, constants, evaluate)
        if not self._is_worth_storing(op, constants) or time.monotonic() > self._deadline:
            return None
        value = fold_evaluate.run(evaluate, op, [array_of(constant) for constant in constants])
        if value is None:
            return None
        return hlo.constant(np.ascontiguousarray(value).reshape(shape_of(of)))

    def _is_worth_storing(self, op: ir.Operation, constants: list[ir.Operation]) -> bool:
        size = byte_size(op.result.type)
        if size > self.options.max_bytes:
            return False
        work = sum(size_of(constant.result.type) for constant in constants)
        if work > self.options.max_bytes:
            return False
        stored = sum(byte_size(c.result.type) for c in constants if not is_splat(c))
        # An iota is cheaper computed in a kernel than read; only the smallest help others fold.
        return size <= stored or size_of(op.result.type) <= (_SMALL if constants else _TINY)


def _folded_splat(
    op: ir.Operation, constants: list[ir.Operation], evaluate: fold_evaluate.Evaluate
) -> ir.Value | None:
    of = op.result.type
    if op.name in fold_evaluate.ONLY_MOVES:
        array = array_of(constants[0])
        element = array[(0,) * array.ndim]
    else:
        arrays = [array_of(constant) for constant in constants]
        found = fold_evaluate.run(evaluate, op, [a[(0,) * a.ndim].reshape(()) for a in arrays])
        if found is None:
            return None
        element = found.reshape(())
    return hlo.full(element, shape_of(of), dtype_of(of))


def _has_dtype(of: ir.Type) -> bool:
    try:
        dtype_of(of)
    except TypeError:
        return False
    return True
