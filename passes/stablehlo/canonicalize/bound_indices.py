"""Keep ui64 indices within the largest signed one: later they are taken for signed numbers.

    gather(x, i)  ->  gather(x, min(i, 2^63 - 1))
Upstream's lowering reads 2^63 and above as negative and would clamp them to the first slice, not to
the last. dynamic_slice and dynamic_update_slice alike; a scatter's indices are checked elsewhere.

example: test/passes/stablehlo/canonicalize/bound_indices.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass

_FIRST_INDEX = {
    "stablehlo.gather": 1,
    "stablehlo.dynamic_slice": 1,
    "stablehlo.dynamic_update_slice": 2,
}
_LARGEST = np.uint64(2**63 - 1)


class BoundIndices(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name in _FIRST_INDEX:
                self._bound(op, _FIRST_INDEX[op.name])
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)

    def _bound(self, op: ir.Operation, first: int) -> None:
        unsigned = ir.IntegerType.get_unsigned(64)
        for number in range(first, len(op.operands)):
            index = op.operands[number]
            if index.type.element_type == unsigned:
                with ir.InsertionPoint(op), op.location:
                    largest = hlo.full(_LARGEST, index.type.shape, np.uint64)
                    op.operands[number] = hlo.minimum(index, largest)
                self.count("bounded")
