"""Ask in f32 whether an f8 or narrower float is finite.

Upstream compares its size with the format's infinity, which most of these formats do not have.
Leaves all other types alone.

example: test/passes/stablehlo/legalize/define_is_finite.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.canonicalize.rewriting import rewrite


class DefineIsFinite(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        self.count("rewritten", rewrite(module, {"stablehlo.is_finite": (_in_f32,)}).total())


def _in_f32(op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    if ir.FloatType(x.type.element_type).width > 8:
        return None
    return hlo.is_finite(hlo.convert(x, np.float32))
