"""Turn StableHLO's control flow into structured control flow on tensors.

    stablehlo.while   ->  scf.while; its condition reads one boolean
    stablehlo.if      ->  scf.if
    stablehlo.case    ->  scf.index_switch, whose default is the last branch: as StableHLO says,
                          an index out of range takes it

Runs after fusion: what is inside the regions is calls, views and constants, and stays as it is.
Leaves everything else alone: regions of reductions and the like, and kernels (`lamina.kind`).
example: test/passes/stablehlo/lower/legalize_control_flow.mlir
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.attributes import COUNTED, KIND, TRIP_COUNT, attributes_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass


class LegalizeControlFlow(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name in _LEGALIZE:
                found.append(op)
            return ir.WalkResult.ADVANCE

        # Inner ones first, so that a region is moved when all in it is done.
        for view in module.body.operations:
            if KIND not in view.operation.attributes:
                view.operation.walk(visit, ir.WalkOrder.POST_ORDER)
        for op in found:
            self.count(op.name.removeprefix("stablehlo."))
            with op.location, ir.InsertionPoint(op):
                _LEGALIZE[op.name](op)


def _while(op: ir.Operation) -> None:
    known = attributes_of(op, TRIP_COUNT, COUNTED)
    loop = _replace(op, "scf.while", list(op.operands), regions=2, attributes=known)
    cond, body = (region.blocks[0] for region in loop.regions)
    leave = _terminator(cond)
    with leave.location, ir.InsertionPoint(leave):
        predicate = _scalar(leave.operands[0])
        ir.Operation.create("scf.condition", operands=[predicate, *cond.arguments])
    leave.erase()
    _yield(body)


def _if(op: ir.Operation) -> None:
    branch = _replace(op, "scf.if", [_scalar(op.operands[0])], regions=2)
    for region in branch.regions:
        _yield(region.blocks[0])


def _case(op: ir.Operation) -> None:
    number = ir.Operation.create(
        "arith.index_cast", results=[ir.IndexType.get()], operands=[_scalar(op.operands[0])]
    ).result
    count = len(op.regions)
    cases = ir.DenseI64ArrayAttr.get(list(range(count - 1)))
    switch = _replace(
        op,
        "scf.index_switch",
        [number],
        regions=count,
        attributes={"cases": cases},
        first=count - 1,
    )
    for region in switch.regions:
        _yield(region.blocks[0])


_LEGALIZE: dict[str, Callable[[ir.Operation], None]] = {
    "stablehlo.while": _while,
    "stablehlo.if": _if,
    "stablehlo.case": _case,
}


def _replace(
    op: ir.Operation,
    name: str,
    operands: list[ir.Value],
    *,
    regions: int,
    attributes: dict[str, ir.Attribute] | None = None,
    first: int = 0,
) -> ir.Operation:
    """A new op with the results and the regions of `op`, the region `first` moved to the front."""
    new = ir.Operation.create(
        name,
        results=[result.type for result in op.results],
        operands=operands,
        attributes=attributes,
        regions=regions,
    )
    order = [first, *(i for i in range(regions) if i != first)]
    for region, source in zip(new.regions, order):
        op.regions[source].blocks[0].append_to(region)
    for old, result in zip(op.results, new.results):
        old.replace_all_uses_with(result)
    op.erase()
    return new


def _scalar(tensor: ir.Value) -> ir.Value:
    return ir.Operation.create(
        "tensor.extract", results=[tensor.type.element_type], operands=[tensor]
    ).result


def _yield(block: ir.Block) -> None:
    leave = _terminator(block)
    with leave.location, ir.InsertionPoint(leave):
        ir.Operation.create("scf.yield", operands=list(leave.operands))
    leave.erase()


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1]
