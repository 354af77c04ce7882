"""Keep ui64 indices within the largest signed one: later they are taken for signed numbers.

    gather(x, i)  ->  gather(x, min(i, 2^63 - 1))
Upstream's lowering reads 2^63 and above as negative and would clamp them to the first slice, not to
the last. dynamic_slice and dynamic_update_slice alike; a scatter's indices are checked elsewhere.

example: test/passes/stablehlo/legalize/rules/indices.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.legalize.rules.rule import Rule

_FIRST_INDEX = {
    "stablehlo.gather": 1,
    "stablehlo.dynamic_slice": 1,
    "stablehlo.dynamic_update_slice": 2,
}
_LARGEST = np.uint64(2**63 - 1)


def _are_ui64(op: ir.Operation) -> bool:
    return any(_is_ui64(index) for index in list(op.operands)[_FIRST_INDEX[op.name] :])


def _bound(op: ir.Operation) -> None:
    for number in range(_FIRST_INDEX[op.name], len(op.operands)):
        index = op.operands[number]
        if _is_ui64(index):
            op.operands[number] = hlo.minimum(index, hlo.full(_LARGEST, index.type.shape, np.uint64))


def _is_ui64(index: ir.Value) -> bool:
    return bool(index.type.element_type == ir.IntegerType.get_unsigned(64))


RULE = Rule(tuple(_FIRST_INDEX), _are_ui64, _bound)
