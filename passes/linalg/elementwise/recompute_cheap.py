"""Make what costs next to nothing again in each loop that reads it, instead of keeping it in memory.

    %m = linalg.generic ins(%x) { yield cmpf(une, %in, %in) }        %a = reduction ins(%x) { and(%out,
    %a = reduction ins(%m) { and(%out, %in) }                   ->       cmpf(une, %in, %in)) }
    %b = reduction ins(%m, %x) { ... }                               %b = reduction ins(%x) { ... }

Fusion takes only what has one use: the mask of a `nanmax` would be written and read once more, element
by element, and loops over bytes for truths are not plain ones. Done for at most `max_ops` comparisons,
conversions, additions and the like of one array of the result's size, or of elements' places (other arrays are
spread), whose readers are all generics over the same space. Products are left alone, since they may be contracted
with what is added to them, in one loop and not in the other; and what something reads otherwise, as that is in
memory anyway.

example: test/passes/linalg/elementwise/recompute_cheap.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.upstream import run_upstream
from lamina.passes.linalg.analysis.structure import (
    Generic,
    generics_together,
    places_of,
    read_generic,
)

_CHEAP = frozenset(
    f"arith.{name}"
    for name in (
        "addf addi andi cmpf cmpi extf extsi extui negf ori select shli shrsi shrui subf subi xori"
    ).split()
)
_PLACES = frozenset(("linalg.index", "arith.index_cast"))
"""What an element's place costs: nothing, where loops count it."""


class RecomputeCheap(Pass):
    """See the module's docstring."""

    max_ops: int = 2  # code
    most_uses: int = 6  # code

    def run(self, module: ir.Module) -> None:
        cloned = 0
        for op in generics_together(module):
            readers = self._readers(op)
            for user, number in readers[1:]:
                with ir.InsertionPoint(user):
                    user.operands[number] = op.clone().operation.results[0]
            cloned += len(readers)
        if cloned:
            run_upstream(module, "func.func(linalg-fuse-elementwise-ops)")
            self.count("recomputed", cloned)

    def _readers(self, op: ir.Operation) -> list[tuple[ir.Operation, int]]:
        """Who reads a generic's result, and as which operand, where each can make it on its own."""
        if len(op.results) != 1 or not isinstance(op.results[0].type, ir.RankedTensorType):
            return []
        uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
        if not 2 <= len(uses) <= self.most_uses:
            return []
        if any(user.name != "linalg.generic" or user.block != op.block for user, _ in uses):
            return []
        if not self._is_cheap(read_generic(op)):
            return []
        return uses if all(_walks_once(read_generic(user), number) for user, number in uses) else []

    def _is_cheap(self, generic: Generic) -> bool:
        *steps, _ = (step.operation.name for step in generic.body.operations)
        steps = [step for step in steps if step not in _PLACES]
        whole = [
            map_
            for value, map_ in zip(generic.inputs, generic.input_maps, strict=True)
            if isinstance(value.type, ir.RankedTensorType) and len(map_.results) == generic.rank
        ]
        return (
            len(steps) <= self.max_ops
            and _CHEAP.issuperset(steps)
            and len(whole) <= 1
            and not any(generic.reductions)
            and generic.output_maps[0] == ir.AffineMap.get_identity(generic.rank)
            and all(_is_in_order(map_) for map_ in generic.input_maps)
            and not list(generic.body.arguments[len(generic.inputs)].uses)
        )


def _is_in_order(map_: ir.AffineMap) -> bool:
    """Whether a map names dimensions in their order, so that nothing is transposed."""
    places = places_of(map_)
    return -1 not in places and places == sorted(set(places))


def _walks_once(generic: Generic, number: int) -> bool:
    """Whether a generic reads each element of an input once."""
    return number < len(generic.inputs) and bool(generic.input_maps[number].is_permutation)
