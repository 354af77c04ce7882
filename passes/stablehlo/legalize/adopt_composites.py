"""Take operations of CHLO back that come as composites of StableHLO, as JAX sends them to plugins.

    composite "chlo.erf" %x {decomposition = @chlo.erf.impl}          ->   chlo.erf %x
    composite "chlo.top_k" %x {composite_attributes = {k = 2}, ...}   ->   chlo.top_k %x, k = 2

What we have code of our own for, where the decomposition is a long polynomial or a whole sort. Others
are left, and so is erf of f16 and bf16, which are computed in f32.

example: test/passes/stablehlo/legalize/adopt_composites.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_ELEMENTWISE = frozenset(("chlo.erf", "chlo.erfc"))
_WIDE = ("f32", "f64")


class AdoptComposites(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.composite",))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.composite"):
            name = op.attributes["name"].value
            with ir.InsertionPoint(op), op.location:
                results = _adopted(op, name)
            if results is None:
                continue
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()
            self.count("ops")


def _adopted(op: ir.Operation, name: str) -> list[ir.Value] | None:
    x = op.operands[0] if len(op.operands) == 1 else None
    if x is None or not isinstance(x.type, ir.RankedTensorType) or not x.type.has_static_shape:
        return None
    if name in _ELEMENTWISE and str(x.type.element_type) in _WIDE:
        return [hlo.chlo(name.removeprefix("chlo."), [x], x.type)]
    if name == "chlo.top_k":
        k = ir.IntegerAttr(ir.DictAttr(op.attributes["composite_attributes"])["k"]).value
        made = hlo.top_k(x, k)
        if [value.type for value in made] == [value.type for value in op.results]:
            return made
    return None
