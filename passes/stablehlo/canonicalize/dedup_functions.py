"""Keep one of private functions that do the same, and call it from everywhere.

    func.func private @f_0(%a) { add %a, %a }        func.func private @f(%a) { add %a, %a }
    func.func private @f(%a) { add %a, %a }      ->

Names and locations don't count, argument and result attributes do. Functions that call others are
compared after those. Leaves public functions alone.

example: test/passes/stablehlo/canonicalize/dedup_functions.mlir
"""

from __future__ import annotations

from collections.abc import Hashable

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.keys import attributes_key, region_key
from lamina.passes.stablehlo.canonicalize.dce_functions import is_private


class DedupFunctions(Pass):
    """The pass `stablehlo-dedup-functions`."""

    def run(self, module: ir.Module) -> None:
        # Merging callees can make their callers equal, so go on until nothing merges.
        while merged := self._once(module):
            self.count("functions", merged)

    def _once(self, module: ir.Module) -> int:
        first: dict[Hashable, str] = {}
        renamed: dict[str, str] = {}
        for op in [inner.operation for inner in module.body.operations]:
            if op.name != "func.func" or not is_private(op) or not len(op.regions[0].blocks):
                continue
            name = op.attributes["sym_name"].value
            kept = first.setdefault(function_key(op), name)
            if kept != name:
                renamed[name] = kept
                op.erase()
        if renamed:
            for op in module.body.operations:
                _rename_calls(op.operation, renamed)
        return len(renamed)


def function_key(function: ir.Operation) -> Hashable:
    """Equal for functions that differ in name and locations alone."""
    attributes = tuple(
        (name, value) for name, value in attributes_key(function) if name != "sym_name"
    )
    return (attributes, region_key(function.regions[0], {}))


def _rename_calls(op: ir.Operation, renamed: dict[str, str]) -> None:
    if op.name == "func.call":
        callee = op.attributes["callee"].value
        if callee in renamed:
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(renamed[callee])
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _rename_calls(inner.operation, renamed)
