"""Simplify algebra, shapes and control flow by local rules that keep every bit of the result.

    %1 = stablehlo.transpose %0, dims = [1, 0]            %2 = stablehlo.multiply %0, %0
    %2 = stablehlo.transpose %1, dims = [1, 0]     ->
    %3 = stablehlo.power %2, %two

The rules are in simplify_arithmetic.py, simplify_shapes.py and simplify_control.py. Float rules are
exact for -0, infinities and NaN; nothing is reassociated, and no op is computed twice that was
computed once. Does nothing to ops it has no rule for.

example: test/passes/stablehlo/simplify.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.stablehlo import simplify_arithmetic, simplify_control, simplify_shapes
from lamina.passes.stablehlo.rewriting import rewrite

_RULES = {**simplify_arithmetic.RULES, **simplify_shapes.RULES, **simplify_control.RULES}


@dataclass(frozen=True)
class Simplify(Pass):
    """The pass `stablehlo-simplify`."""

    def run(self, module: ir.Module) -> None:
        for rule, times in rewrite(module, _RULES).items():
            self.count(rule, times)
