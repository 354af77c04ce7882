"""Say what becomes of NaN in a format that has none.

    reduce_precision %x, format = e5m0   ->   reduce_precision (select (%x != %x), infinity, %x), format = e5m0

A format without mantissa bits can't tell NaN from infinity; upstream's lowering leaves NaN as it
is. Leaves every other format alone.
example: test/passes/stablehlo/legalize/rules/precision.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.legalize.rules.rule import Rule


def _lacks_nan(op: ir.Operation) -> bool:
    return not op.attributes["mantissa_bits"].value


def _of_infinity(op: ir.Operation) -> None:
    x = op.operands[0]
    infinity = hlo.full(np.inf, shape_of(x.type), dtype_of(x.type))
    op.operands[0] = hlo.select(hlo.compare(x, x, "NE"), infinity, x)


RULE = Rule(("stablehlo.reduce_precision",), _lacks_nan, _of_infinity)
