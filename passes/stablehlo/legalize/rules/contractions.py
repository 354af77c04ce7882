"""Accumulate contractions of small floats in f32, of bytes in 32-bit integers.

`dot_general` and `convolution` whose results are bf16, f16 or narrower convert their operands to
f32, and the sum once at the end: rounding it at every step would lose most of its digits. Integer
operands of a floating-point result are converted too. An `algorithm` that asks for less precision
than this goes: computing more exactly is allowed, and upstream has no lowering for it. Unsigned
convolutions are computed on the signed integers with the same bits: upstream's lowering of one by
channel knows no others. Products of bytes whose result is bytes, too, keep the lowest 8 bits of sums of
32, for which processors have instructions. Leaves other f32, f64, complex and integer results alone.

example: test/passes/stablehlo/legalize/rules/contractions.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, tensor_type
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.legalize.rules.rule import Rule


def _applies(op: ir.Operation) -> bool:
    element = op.results[0].type.element_type
    if "algorithm" in op.attributes:
        return True
    if not isinstance(element, ir.FloatType):
        return _is_unsigned(element) if op.name == "stablehlo.convolution" else _is_byte(element)
    return any(value.type.element_type != _accumulator(element) for value in (*op.operands, op.results[0]))


def _accumulated(op: ir.Operation) -> list[ir.Value] | None:
    result = op.results[0]
    element = result.type.element_type
    if "algorithm" in op.attributes:
        del op.attributes["algorithm"]
        if not _applies(op):
            return None
    if not isinstance(element, ir.FloatType):
        return [_computed_signed(op) if op.name == "stablehlo.convolution" else _computed_wide(op)]
    wide = ir.RankedTensorType.get(result.type.shape, _accumulator(element))
    dtype = dtype_of(wide)
    operands = [x if x.type.element_type == wide.element_type else hlo.convert(x, dtype) for x in op.operands]
    computed = remade(op, [wide], operands).result
    return [computed if element == wide.element_type else hlo.convert(computed, dtype_of(result.type))]


def _computed_wide(op: ir.Operation) -> ir.Value:
    result = op.results[0]
    narrow = dtype_of(result.type)
    wide = tensor_type(result.type.shape, np.uint32 if narrow == np.uint8 else np.int32)
    return hlo.convert(remade(op, [wide], list(op.operands)).result, narrow)


def _computed_signed(op: ir.Operation) -> ir.Value:
    result = op.results[0]
    shape, unsigned = result.type.shape, dtype_of(result.type)
    width = ir.IntegerType(result.type.element_type).width
    wanted = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(width))

    def as_signed(x: ir.Value) -> ir.Value:
        if x.type.element_type != result.type.element_type:
            x = hlo.convert(x, unsigned)
        return hlo.bitcast_convert(x, x.type.shape, dtype_of(wanted))

    computed = remade(op, [wanted], [as_signed(x) for x in op.operands]).result
    return hlo.bitcast_convert(computed, shape, unsigned)


def _accumulator(element: ir.Type) -> ir.Type:
    return element if isinstance(element, ir.F32Type | ir.F64Type) else ir.F32Type.get()


def _is_byte(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and ir.IntegerType(element).width == 8


def _is_unsigned(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and ir.IntegerType(element).is_unsigned


RULE = Rule(("stablehlo.dot_general", "stablehlo.convolution"), _applies, _accumulated)
