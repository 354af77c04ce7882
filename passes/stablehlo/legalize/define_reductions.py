"""Bring reductions into the form upstream lowers: operands of the type that the body computes on.

StableHLO lets a body compute, and the results be, in a wider type than the operands' elements:
`reduce`, `reduce_window`. The operands are converted first. What adds, multiplies or compares floats
of up to 16 bits does so in f32 and rounds once: a sum of ones in bf16 would stay at 256, and there
are no vector instructions for them. Sums of complex numbers that lie side by side are sums of their
parts, which products and sums of such numbers are made in: LLVM makes no vectors of pairs that are
carried along. What reduces across no dimension, as StableHLO lets it, reduces across one of size 1 that is
put in front: each element is combined with the initial value. Optimisation barriers go: within one
kernel nothing is left to keep apart. Leaves all other ops alone.

example: test/passes/stablehlo/legalize/define_reductions.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.complex_parts import part_of
from lamina.passes.stablehlo.analysis.facts import reducer_of
from lamina.passes.stablehlo.analysis.scan_order import Scan

_IN_F32 = ("stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum")


class DefineReductions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.reduce", "stablehlo.reduce_window"):
            if op.name == "stablehlo.reduce" and not list(_dimensions(op)):
                _reduce_across_one(op)
                self.count("across one")
            count = len(op.results)
            for position in range(count):
                operand, init = op.operands[position], op.operands[count + position]
                wanted = op.regions[0].blocks[0].arguments[position].type.element_type
                with ir.InsertionPoint(op), op.location:
                    for place, value in ((position, operand), (count + position, init)):
                        if value.type.element_type != wanted:
                            dtype = dtype_of(ir.RankedTensorType.get([], wanted))
                            op.operands[place] = hlo.convert(value, dtype)
                            self.count("converted")
            if _is_narrow(op):
                _widen(op)
                self.count("in f32")
            elif _is_complex_sum(op):
                _sum_parts(op)
                self.count("in parts")
        for op in find_ops(module, "stablehlo.optimization_barrier"):
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.erase()


def _dimensions(op: ir.Operation) -> ir.DenseI64ArrayAttr:
    return ir.DenseI64ArrayAttr(op.attributes["dimensions"])


def _reduce_across_one(op: ir.Operation) -> None:
    """Lets a reduction across no dimension be one across the first, of size 1, of its reshaped operands."""
    count = len(op.results)
    for place, value in enumerate(list(op.operands)[:count]):
        with ir.InsertionPoint(op), op.location:
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


def _widen(op: ir.Operation) -> None:
    """Let a reduction of one operand combine in f32, and round what it gives."""
    wide = np.dtype(np.float32)
    narrow = dtype_of(op.results[0].type)
    with ir.InsertionPoint(op), op.location:
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
        op.results[0].replace_all_uses_with(hlo.convert(widened.result, narrow))
    op.erase()


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


def _sum_parts(op: ir.Operation) -> None:
    dimensions = list(_dimensions(op))

    with ir.InsertionPoint(op), op.location:
        parts = []
        for imaginary in (False, True):
            x, init = (part_of(value, imaginary) for value in op.operands)
            parts += hlo.reduce([x], [init], dimensions, lambda a, b: [hlo.add(a, b)])
        op.results[0].replace_all_uses_with(hlo.complex(*parts))
    op.erase()
