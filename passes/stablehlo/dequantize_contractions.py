"""Compute contractions of quantised values on the numbers that these stand for.

    dot_general %a, %b : (quant, quant) -> quant
        ->    uniform_quantize (dot_general (uniform_dequantize %a), (uniform_dequantize %b))

This is what StableHLO's specification says. Upstream's legalisation computes on stored integers, and
neither rounds nor clamps the result. Looks at `dot_general` and `convolution`; leaves those with an
operand or a result that is not quantised alone.

example: test/passes/stablehlo/dequantize_contractions.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lamina.dialects.types import tensor_type
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.loops import find_ops


@dataclass(frozen=True)
class DequantizeContractions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.dot_general", "stablehlo.convolution"):
            result = op.results[0]
            values = [*op.operands, result]
            if not all(str(v.type.element_type).startswith("!quant.uniform") for v in values):
                continue
            with ir.InsertionPoint(op), op.location:
                operands = [
                    ir.Operation.create("stablehlo.uniform_dequantize", [_numbers(x)], [x]).result
                    for x in op.operands
                ]
                computed = ir.Operation.create(
                    op.name,
                    results=[_numbers(result)],
                    operands=operands,
                    attributes={name: op.attributes[name] for name in op.attributes},
                ).result
                stored = ir.Operation.create(
                    "stablehlo.uniform_quantize", [result.type], [computed]
                )
            result.replace_all_uses_with(stored.result)
            op.erase()
            self.count("dequantised")


def _numbers(value: ir.Value) -> ir.Type:
    return tensor_type(value.type.shape, np.float32)
