"""Bring reductions into the form upstream lowers: operands of the type that the body computes on.

StableHLO lets a body compute, and the results be, in a wider type than the operands' elements:
`reduce`, `reduce_window`. The operands are converted first. What adds, multiplies or compares floats
of up to 16 bits does so in f32 and rounds once: a sum of ones in bf16 would stay at 256, and there
are no vector instructions for them. Sums of complex numbers that lie side by side are sums of their
parts, which products and sums of such numbers are made in: LLVM makes no vectors of pairs that are
carried along. What reduces across no dimension, as StableHLO lets it, reduces across one of size 1 that is
put in front: each element is combined with the initial value. Optimisation barriers go, by a rule of their own:
within one kernel nothing is left to keep apart.

example: test/passes/stablehlo/legalize/rules/reductions.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.complex_parts import part_of
from lamina.passes.stablehlo.analysis.facts import reducer_of
from lamina.passes.stablehlo.analysis.scan_order import Scan
from lamina.passes.stablehlo.legalize.rules.rule import Rule

_IN_F32 = ("stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum")


def _applies(op: ir.Operation) -> bool:
    across_none = op.name == "stablehlo.reduce" and not list(_dimensions(op))
    return across_none or bool(_converted(op)) or _is_narrow(op) or _is_complex_sum(op)


def _legal(op: ir.Operation) -> list[ir.Value] | None:
    if op.name == "stablehlo.reduce" and not list(_dimensions(op)):
        _reduce_across_one(op)
    for place, dtype in _converted(op).items():
        op.operands[place] = hlo.convert(op.operands[place], dtype)
    if _is_narrow(op):
        return [_in_f32(op)]
    return [_of_parts(op)] if _is_complex_sum(op) else None


def _converted(op: ir.Operation) -> dict[int, np.dtype]:
    """The operands of another type than the body computes on, by number, with that type."""
    arguments = op.regions[0].blocks[0].arguments
    wanted = [arguments[number % len(op.results)].type for number in range(len(op.operands))]
    return {
        place: dtype_of(of) for place, (operand, of) in enumerate(zip(op.operands, wanted, strict=True))
        if operand.type.element_type != of.element_type
    }  # fmt: skip


def _dimensions(op: ir.Operation) -> ir.DenseI64ArrayAttr:
    return ir.DenseI64ArrayAttr(op.attributes["dimensions"])


def _reduce_across_one(op: ir.Operation) -> None:
    """Lets a reduction across no dimension be one across the first, of size 1, of its reshaped operands."""
    count = len(op.results)
    for place, value in enumerate(list(op.operands)[:count]):
        op.operands[place] = hlo.reshape(value, [1, *value.type.shape])
    op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get([0], op.context)


def _is_narrow(op: ir.Operation) -> bool:
    """Whether a reduction combines floats of up to 16 bits by a single op that rounds less in f32.
    Scans, which are kernels of their own, see to that themselves."""
    if op.name == "stablehlo.reduce_window" and Scan.of(op, in_kernel=True) is not None:
        return False
    dtype = dtype_of(op.results[0].type)
    is_small_float = "float" in dtype.name and dtype.itemsize <= 2
    return is_small_float and reducer_of(op) in _IN_F32


def _in_f32(op: ir.Operation) -> ir.Value:
    """What a reduction of one operand gives if it combines in f32, rounded at its end."""
    wide = np.dtype(np.float32)
    narrow = dtype_of(op.results[0].type)
    operands = [hlo.convert(value, wide) for value in op.operands]
    scalar = ir.RankedTensorType.get([], ir.F32Type.get())
    shape = ir.RankedTensorType(op.results[0].type).shape
    of = ir.RankedTensorType.get(shape, ir.F32Type.get())
    widened = remade(op, [of], operands, regions=1)
    body = widened.regions[0].blocks.append(scalar, scalar)
    combiner = op.regions[0].blocks[0].operations[0].operation
    with ir.InsertionPoint(body):
        total = ir.Operation.create(combiner.name, [scalar], list(body.arguments)).result
        ir.Operation.create("stablehlo.return", operands=[total])
    return hlo.convert(widened.result, narrow)


def _is_complex_sum(op: ir.Operation) -> bool:
    """Whether a reduction adds complex numbers of the last dimension."""
    if op.name != "stablehlo.reduce" or len(op.results) != 1:
        return False
    of = ir.RankedTensorType(op.operands[0].type)
    return (
        isinstance(of.element_type, ir.ComplexType)
        and of.rank - 1 in list(_dimensions(op))
        and reducer_of(op) == "stablehlo.add"
    )


def _of_parts(op: ir.Operation) -> ir.Value:
    dimensions = list(_dimensions(op))
    parts = []
    for imaginary in (False, True):
        x, init = (part_of(value, imaginary) for value in op.operands)
        parts += hlo.reduce([x], [init], dimensions, lambda a, b: [hlo.add(a, b)])
    return hlo.complex(*parts)


RULE = Rule(("stablehlo.reduce", "stablehlo.reduce_window"), _applies, _legal)
BARRIERS = Rule(("stablehlo.optimization_barrier",), lambda op: True, lambda op: list(op.operands))
