"""Take the form in blocks of what is given in two forms, where threads are few and caches deep.

    %0 = stablehlo.composite "lamina.two_forms" %x {
      composite_attributes = {in_blocks = @f},           ->   %0 = call @f(%x)
      decomposition = @g}

Targets without this pass take the decomposition, which needs more memory traffic and has more
parallelism. Leaves other composites alone.

example: test/passes/stablehlo/choose_forms.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.find import find_ops

_NAME = "lamina.two_forms"


class ChooseForms(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.composite",))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.composite"):
            if op.attributes["name"].value != _NAME:
                continue
            given = ir.DictAttr(op.attributes["composite_attributes"])
            form = ir.FlatSymbolRefAttr(given["in_blocks"]).value
            with ir.InsertionPoint(op), op.location:
                results = hlo.call(form, list(op.operands), [v.type for v in op.results])
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()
            self.count("in blocks")
