"""Ask in f32 whether an f8 or narrower float is finite.

Upstream compares its size with the format's infinity, which most of these formats do not have.
Leaves all other types alone.

example: test/passes/stablehlo/legalize/rules/finiteness.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.legalize.rules.rule import Rule


def _is_small(op: ir.Operation) -> bool:
    return bool(ir.FloatType(op.operands[0].type.element_type).width <= 8)


def _in_f32(op: ir.Operation) -> list[ir.Value]:
    return [hlo.is_finite(hlo.convert(op.operands[0], np.float32))]


RULE = Rule(("stablehlo.is_finite",), _is_small, _in_f32)
