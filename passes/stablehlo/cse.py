"""Compute each value once: an op equal to one that dominates it is replaced by it.

    %0 = stablehlo.add %a, %b                      %0 = stablehlo.add %a, %b
    %1 = stablehlo.add %b, %a               ->     %1 = stablehlo.multiply %0, %0
    %2 = stablehlo.multiply %0, %1

Sees ops of enclosing regions, ops with equal regions, and commutative operands in either order.
Leaves impure ops, calls and ops in different branches alone.

example: test/passes/stablehlo/cse.mlir
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.stablehlo.facts import CONTROL, is_pure
from lamina.passes.stablehlo.keys import op_key, region_key


@dataclass(frozen=True)
class Cse(Pass):
    """The pass `stablehlo-cse`."""

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            for region in function.operation.regions:
                self._region(region, {})

    def _region(self, region: ir.Region, known: dict[Hashable, ir.Operation]) -> None:
        """Replace what `known`, the ops of enclosing regions, or earlier ops here compute."""
        for block in region.blocks:
            added: list[Hashable] = []
            for op in [inner.operation for inner in block.operations]:
                regions = op.regions
                for nested in regions:
                    # A reduction's body must not capture; control flow may.
                    self._region(nested, known if op.name in CONTROL else {})
                if not op.results or not is_pure(op):
                    continue
                key = op_key(op, tuple(op.operands))
                if len(regions):
                    key = (key, *(region_key(nested, {}) for nested in regions))
                first = known.setdefault(key, op)
                if first == op:
                    added.append(key)
                    continue
                for result, same in zip(op.results, first.results):
                    result.replace_all_uses_with(same)
                op.erase()
                self.count("replaced")
            for key in added:
                del known[key]
