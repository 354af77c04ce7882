"""Simplify algebra, shapes and control flow by local rules that keep every bit of the result.

    %1 = stablehlo.transpose %0, dims = [1, 0]            %2 = stablehlo.multiply %0, %0
    %2 = stablehlo.transpose %1, dims = [1, 0]     ->
    %3 = stablehlo.power %2, %two

The rules are in simplify_arithmetic.py, simplify_conversions.py, simplify_divisions.py, simplify_shapes.py,
simplify_indices.py, simplify_positions.py, simplify_products.py, simplify_slices.py, simplify_solves.py,
simplify_gathers.py, simplify_reshaped.py (which moves reshapes down past element-wise ops and reductions),
simplify_broadcasts.py (which moves broadcasts so), simplify_reads.py (which moves reads of parts up to the arrays
that they are of), simplify_updates.py, simplify_bounds.py and
simplify_control.py. Float rules are exact for -0,
infinities and NaN; nothing is reassociated but sums of equal terms, which are products then, and no op
is computed twice that was computed once.
Does nothing to ops it has no rule for. With `fold`, ops on constants are computed on the way, as by
`stablehlo-fold`: folding makes operands constant that rules look at.

example: test/passes/stablehlo/simplify.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.stablehlo import (
    simplify_arithmetic,
    simplify_bounds,
    simplify_broadcasts,
    simplify_control,
    simplify_conversions,
    simplify_divisions,
    simplify_gathers,
    simplify_indices,
    simplify_positions,
    simplify_products,
    simplify_reads,
    simplify_reshaped,
    simplify_shapes,
    simplify_slices,
    simplify_solves,
    simplify_updates,
)
from lamina.passes.stablehlo.fold import Fold, Folder
from lamina.passes.stablehlo.rewriting import Rule, rewrite

_FAMILIES = (
    simplify_arithmetic, simplify_conversions, simplify_divisions, simplify_shapes, simplify_indices,
    simplify_positions, simplify_products, simplify_control, simplify_reshaped, simplify_broadcasts, simplify_slices,
    simplify_solves, simplify_gathers, simplify_reads, simplify_updates, simplify_bounds,
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
