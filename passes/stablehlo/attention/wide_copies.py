"""Copying ops on scores into a kernel that keeps these in f32, whatever the program rounds them to."""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import made_by, reducer_of, splat_of

NARROW = ("bf16", "f16")


class WideCopies:
    """Copies at the end of a block; `known` says what stands for values from outside. Scores are what
    the products make that are said to, and all that is made of those."""

    def __init__(self, known: dict[ir.Value, ir.Value], end: ir.InsertionPoint) -> None:
        self.known = known
        self._end = end
        self._scores: set[ir.Value] = set()
        self._rounded: dict[ir.Value, ir.Value] = {}

    def product(self, op: ir.Operation) -> None:
        """Copy one that makes scores."""
        self._copied(op, [self.known[v] for v in op.operands])
        self._widen(op)

    def same(self, op: ir.Operation) -> None:
        """Copy one whose operands and result keep their types."""
        self._copied(op, [self._of_its_type(v) for v in op.operands])

    def other(self, op: ir.Operation) -> None:
        """Copy what is neither."""
        operands = [self.known[v] for v in op.operands]
        if not any(v in self._scores for v in op.operands):
            self._copied(op, operands)
            return
        result = op.results[0]
        element = str(result.type.element_type)
        operands = [_as_f32(v) for v in operands]
        if op.name == "stablehlo.convert" and element in (*NARROW, "f32"):
            is_wide = str(operands[0].type.element_type) == "f32"
            copy = operands[0] if is_wide else hlo.convert(operands[0], np.float32)
            self.stands_for(result, copy)
        elif op.name == "stablehlo.reduce" and element in NARROW:
            self.stands_for(result, _reduced(op, operands[0]))
        else:
            self._copied(op, operands)
            self._widen(op)

    def stands_for(self, value: ir.Value, copy: ir.Value) -> None:
        """Scores that were made in another way."""
        self.known[value] = copy
        self._scores.add(value)

    def _of_its_type(self, value: ir.Value) -> ir.Value:
        """What stands for a value, rounded to its type."""
        if self.known[value].type.element_type == value.type.element_type:
            return self.known[value]
        if value not in self._rounded:
            self._rounded[value] = hlo.convert(self.known[value], dtype_of(value.type))
        return self._rounded[value]

    def _copied(self, op: ir.Operation, operands: list[ir.Value]) -> None:
        copy = op.clone(self._end).operation
        for number, operand in enumerate(operands):
            copy.operands[number] = operand
        self.known |= dict(zip(op.results, copy.results, strict=True))

    def _widen(self, op: ir.Operation) -> None:
        result = op.results[0]
        self._scores.add(result)
        if str(result.type.element_type) in NARROW:
            type_ = ir.RankedTensorType.get(list(result.type.shape), ir.F32Type.get())
            self.known[result].set_type(type_)


def _reduced(op: ir.Operation, operand: ir.Value) -> ir.Value:
    combine = {"stablehlo.add": hlo.add, "stablehlo.maximum": hlo.maximum}[reducer_of(op) or ""]
    initial = hlo.full(splat_of(op.operands[1]), [], np.float32)
    dimensions = op.attributes["dimensions"]
    (result,) = hlo.reduce(
        [operand], [initial], list(dimensions), lambda a, b: [combine(a, b)]
    )
    return result


def _as_f32(value: ir.Value) -> ir.Value:
    narrow = str(value.type.element_type) in NARROW
    return hlo.convert(value, np.float32) if narrow else value


def before_rounding(value: ir.Value) -> ir.Value:
    """What was rounded to a value of 16 bits; other values as they are."""
    rounding = made_by(value, "stablehlo.convert")
    if rounding is None or str(value.type.element_type) not in NARROW:
        return value
    return rounding.operands[0]
