"""Take the form in blocks of what is given in two forms, where threads are few and caches deep.

    %0 = stablehlo.composite "lamina.two_forms" %x {
      composite_attributes = {in_blocks = @f},           ->   %0 = call @f(%x)
      decomposition = @g}

Targets without this pass take the decomposition, which needs more memory traffic and has more
parallelism. Leaves other composites alone, and those without a function of their own types.

example: test/passes/stablehlo/legalize/choose_forms.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops, functions_of
from lamina.passes.stablehlo.analysis.signatures import has_types

_NAME = "lamina.two_forms"


class ChooseForms(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.composite",))

    def run(self, module: ir.Module) -> None:
        functions = functions_of(module)
        for op in find_ops(module, "stablehlo.composite"):
            if op.attributes["name"].value != _NAME:
                continue
            given = op.attributes["composite_attributes"]
            form = given["in_blocks"] if "in_blocks" in given else None
            types = [v.type for v in op.operands], [v.type for v in op.results]
            if not (
                isinstance(form, ir.FlatSymbolRefAttr)
                and has_types(functions.get(form.value), *types)
            ):
                continue
            with ir.InsertionPoint(op), op.location:
                results = hlo.call(form.value, list(op.operands), types[1])
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()
            self.count("in blocks")
