"""Simplify algebra, shapes and control flow by local rules that keep every bit of the result.

    %1 = stablehlo.transpose %0, dims = [1, 0]            %2 = stablehlo.multiply %0, %0
    %2 = stablehlo.transpose %1, dims = [1, 0]     ->
    %3 = stablehlo.power %2, %two

The rules are in `rules/`, a file for each kind of op that they are about. Float rules are exact for
-0, infinities and NaN; nothing is reassociated but sums of equal terms, which are products then, and no op is
computed twice that was computed once.

Does nothing to ops it has no rule for. With `fold`, ops on constants are computed on the way, as by
`stablehlo-fold`: folding makes operands constant that rules look at.

example: test/passes/stablehlo/canonicalize/simplify.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.canonicalize.fold import Fold, Folder
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, rewrite
from lamina.passes.stablehlo.canonicalize.rules import (
    arithmetic,
    bounds,
    broadcasts,
    control,
    conversions,
    divisions,
    gathers,
    indices,
    positions,
    products,
    reads,
    reshaped,
    shapes,
    slices,
    solves,
    updates,
)

_FAMILIES = (
    arithmetic, conversions, divisions, shapes, indices, positions, products, control, reshaped, broadcasts, slices,
    solves, gathers, reads, updates, bounds,
)  # fmt: skip
_RULES: dict[str, tuple[Rule, ...]] = {}
for _family in _FAMILIES:
    for _name, _rules in _family.RULES.items():
        _RULES[_name] = _RULES.get(_name, ()) + tuple(_rules)


class Simplify(Pass):
    """The pass `stablehlo-simplify`."""

    fold: bool = False

    def run(self, module: ir.Module) -> None:
        of_constants = Folder(Fold()).rules() if self.fold else None
        for rule, times in rewrite(module, _RULES, of_constants).items():
            self.count(rule, times)
