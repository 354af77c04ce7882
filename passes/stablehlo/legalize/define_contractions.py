"""Accumulate contractions of small floats in f32, of bytes in 32-bit integers.

`dot_general` and `convolution` whose results are bf16, f16 or narrower convert their operands to
f32, and the sum once at the end: rounding it at every step would lose most of its digits. Integer
operands of a floating-point result are converted too. An `algorithm` that asks for less precision
than this goes: computing more exactly is allowed, and upstream has no lowering for it. Unsigned
convolutions are computed on the signed integers with the same bits: upstream's lowering of one by
channel knows no others. Products of bytes whose result is bytes, too, keep the lowest 8 bits of sums of
32, for which processors have instructions. Leaves other f32, f64, complex and integer results alone.

example: test/passes/stablehlo/legalize/define_contractions.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, tensor_type
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_WIDE = ("f32", "f64")


class DefineContractions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.dot_general", "stablehlo.convolution"):
            result = op.results[0]
            element = result.type.element_type
            if "algorithm" in op.attributes:
                del op.attributes["algorithm"]
            if not isinstance(element, ir.FloatType):
                if op.name == "stablehlo.convolution" and _is_unsigned(element):
                    self._compute_signed(op)
                elif op.name == "stablehlo.dot_general" and _is_byte(element):
                    self._compute_wide(op)
                continue
            accumulator = dtype_of(result.type) if str(element) in _WIDE else np.dtype(np.float32)
            wide = ir.RankedTensorType.get(result.type.shape, _element_type(accumulator))
            if all(operand.type.element_type == wide.element_type for operand in op.operands):
                if element == wide.element_type:
                    continue
            with ir.InsertionPoint(op), op.location:
                operands = [
                    operand
                    if operand.type.element_type == wide.element_type
                    else hlo.convert(operand, accumulator)
                    for operand in op.operands
                ]
                computed = remade(op, [wide], operands).result
                if element != wide.element_type:
                    computed = hlo.convert(computed, dtype_of(result.type))
            result.replace_all_uses_with(computed)
            op.erase()
            self.count("widened")

    def _compute_wide(self, op: ir.Operation) -> None:
        result = op.results[0]
        narrow = dtype_of(result.type)
        wide = tensor_type(result.type.shape, np.uint32 if narrow == np.uint8 else np.int32)
        with ir.InsertionPoint(op), op.location:
            computed = remade(op, [wide], list(op.operands)).result
            result.replace_all_uses_with(hlo.convert(computed, narrow))
        op.erase()
        self.count("widened")

    def _compute_signed(self, op: ir.Operation) -> None:
        result = op.results[0]
        shape, unsigned = result.type.shape, dtype_of(result.type)
        width = ir.IntegerType(result.type.element_type).width
        wanted = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(width))

        def as_signed(x: ir.Value) -> ir.Value:
            if x.type.element_type != result.type.element_type:
                x = hlo.convert(x, unsigned)
            return hlo.bitcast_convert(x, x.type.shape, dtype_of(wanted))

        with ir.InsertionPoint(op), op.location:
            computed = remade(op, [wanted], [as_signed(x) for x in op.operands]).result
            result.replace_all_uses_with(hlo.bitcast_convert(computed, shape, unsigned))
        op.erase()
        self.count("made signed")


def _is_byte(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and ir.IntegerType(element).width == 8


def _is_unsigned(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and ir.IntegerType(element).is_unsigned


def _element_type(dtype: np.dtype) -> ir.Type:
    return ir.F64Type.get() if dtype == np.float64 else ir.F32Type.get()
