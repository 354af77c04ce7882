"""Put very many arrays together in groups first, and then the groups.

    %0 = concatenate %x1, ..., %x600         %g1 = concatenate %x1, ..., %x200
                                       ->    ...
                                             %0 = concatenate %g1, %g2, %g3

A kernel has an argument and a loop for each array that it puts together, and what compiles it takes time in
proportion to their square, and stack. What is put together is copied once more; groups of equal shapes
are one kernel. Leaves concatenations of `most` operands alone. Nothing that joins concatenations again may
follow but `stablehlo-fuse`, to which these are too many parts for one kernel.

example: test/passes/stablehlo/canonicalize/concatenate_in_groups.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_CONCATENATE = "stablehlo.concatenate"


class ConcatenateInGroups(Pass):
    """The pass `stablehlo-concatenate-in-groups`."""

    only_with = frozenset(("stablehlo.concatenate",))

    most: int = 256  # code

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, _CONCATENATE):
            if len(op.operands) <= self.most:
                continue
            dim = ir.IntegerAttr(op.attributes["dimension"]).value
            with ir.InsertionPoint(op), op.location:
                whole = self._together(list(op.operands), dim)
            op.results[0].replace_all_uses_with(whole)
            op.erase()
            self.count("concatenations")

    def _together(self, values: list[ir.Value], dim: int) -> ir.Value:
        """The values as one, by groups that are as alike as they can be."""
        while len(values) > self.most:
            groups = -(-len(values) // self.most)
            size = -(-len(values) // groups)
            parts = [values[begin : begin + size] for begin in range(0, len(values), size)]
            values = [hlo.concatenate(part, dim) if len(part) > 1 else part[0] for part in parts]
        return hlo.concatenate(values, dim)
