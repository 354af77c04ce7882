"""Spell arithmetic on booleans as logic: `add`, `maximum` are OR, `multiply`, `minimum` are AND.

Upstream adds i1 as one-bit integers, where true + true wraps to false. Applies inside reduction and
scatter bodies too. Leaves all other element types alone.

example: test/passes/stablehlo/legalize/define_booleans.mlir
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.canonicalize.rewriting import rewrite


class DefineBooleans(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        either, both = _logic(hlo.or_), _logic(hlo.and_)
        rules = {
            "stablehlo.add": (either,),
            "stablehlo.maximum": (either,),
            "stablehlo.multiply": (both,),
            "stablehlo.minimum": (both,),
        }
        self.count("rewritten", rewrite(module, rules).total())


def _logic(
    build: Callable[[ir.Value, ir.Value], ir.Value],
) -> Callable[[ir.Operation], ir.Value | None]:
    def as_logic(op: ir.Operation) -> ir.Value | None:
        element = ir.ShapedType(op.results[0].type).element_type
        return build(*op.operands) if element == ir.IntegerType.get_signless(1) else None

    return as_logic
