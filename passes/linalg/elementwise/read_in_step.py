"""Read as an operand what a generic extracts of another's result at its own place.

    linalg.generic {                                     linalg.generic ins(%a) {
      %n = linalg.index 0                                ^bb0(%at):
      %at = tensor.extract %a[%n]              ->          ...
      ... }

That elements are read in step with those written is plain then: both generics can share their loops, and what the
first leaves for the second in a register. So it is where a search's next place, which another step
reads too, is looked up in a table. Leaves alone what is extracted elsewhere, and arrays of other extents.

example: test/passes/linalg/elementwise/read_in_step.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.framework.base import Pass
from lamina.passes.linalg.analysis.structure import (
    Generic,
    generics_together,
    make_generic,
    read_generic,
)

_EXTRACT = "tensor.extract"


class ReadInStep(Pass):
    """See the module's docstring."""

    only_with = frozenset(("tensor.extract",))

    def run(self, module: ir.Module) -> None:
        for op in generics_together(module):
            generic = read_generic(op)
            found: dict[tuple[ir.Value, tuple[int, ...]], list[ir.Operation]] = {}
            for inner in (view.operation for view in generic.body.operations):
                dims = _dims(inner, generic)
                if dims is not None:
                    found.setdefault((inner.operands[0], dims), []).append(inner)
            if found:
                _read(generic, found)
                self.count("operands", len(found))


def _dims(op: ir.Operation, generic: Generic) -> tuple[int, ...] | None:
    """The dimensions by whose places an op extracts from what another generic makes; None if it does not."""
    if op.name != _EXTRACT:
        return None
    array, *places = op.operands
    if isinstance(array.owner, ir.Block) or array.owner.name != "linalg.generic":
        return None
    dims = []
    for place, size in zip(places, array.type.shape, strict=True):
        if isinstance(place.owner, ir.Block) or place.owner.name != "linalg.index":
            return None
        dim = ir.IntegerAttr(place.owner.attributes["dim"]).value
        if generic.extents[dim] != size:
            return None
        dims.append(dim)
    return tuple(dims)


def _read(generic: Generic, found: dict[tuple[ir.Value, tuple[int, ...]], list[ir.Operation]]) -> None:
    """Give a generic these operands in place of what is extracted."""
    arrays = [array for array, _ in found]
    maps = [
        ir.AffineMap.get(generic.rank, 0, [ir.AffineDimExpr.get(dim) for dim in dims]) for _, dims in found
    ]
    with ir.InsertionPoint(generic.op), generic.op.location:
        op = make_generic(
            [*generic.inputs, *arrays],
            generic.outputs,
            [*generic.input_maps, *maps, *generic.output_maps],
            generic.reductions,
            [result.type for result in generic.op.results],
        )
    for attribute in generic.op.attributes:
        if attribute not in op.attributes:
            op.attributes[attribute] = generic.op.attributes[attribute]
    old_arguments, first = list(generic.body.arguments), len(generic.inputs)
    types = [argument.type for argument in old_arguments]
    elements = [array.type.element_type for array in arrays]
    block = op.regions[0].blocks.append(*types[:first], *elements, *types[first:])
    own = list(block.arguments)
    known = dict(zip(old_arguments, own[:first] + own[first + len(arrays) :], strict=True))
    for extracts, element in zip(found.values(), own[first:], strict=False):
        known.update((extract.results[0], element) for extract in extracts)
    with ir.InsertionPoint(block):
        for inner in generic.body.operations:
            if inner.operation.name != _EXTRACT or inner.operation.results[0] not in known:
                copied(inner.operation, known)
    for old, new in zip(generic.op.results, op.results, strict=True):
        old.replace_all_uses_with(new)
    generic.op.erase()
