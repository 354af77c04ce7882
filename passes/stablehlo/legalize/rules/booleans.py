"""Spell arithmetic on booleans as logic: `add`, `maximum` are OR, `multiply`, `minimum` are AND.

Upstream adds i1 as one-bit integers, where true + true wraps to false. Applies inside reduction and
scatter bodies too. Leaves all other element types alone.

example: test/passes/stablehlo/legalize/rules/booleans.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.legalize.rules.rule import Rule

_EITHER = ("stablehlo.add", "stablehlo.maximum")
_BOTH = ("stablehlo.multiply", "stablehlo.minimum")


def _are_booleans(op: ir.Operation) -> bool:
    element = ir.ShapedType(op.results[0].type).element_type
    return bool(element == ir.IntegerType.get_signless(1))


def _as_logic(op: ir.Operation) -> list[ir.Value]:
    return [(hlo.or_ if op.name in _EITHER else hlo.and_)(*op.operands)]


RULE = Rule((*_EITHER, *_BOTH), _are_booleans, _as_logic)
