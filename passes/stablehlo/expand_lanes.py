"""Run the lanes of a batch one after the other, each with control flow of its own.

    stablehlo.composite "lamina.lanes" %xs {            stablehlo.while(%i = 0, %o = zeros)
      composite_attributes = {lanes = @f, size = n,  ->   cond { %i < n }
      block = 1, batched = array<i64: 1>},                do { %x = dynamic_slice %xs, %i
      decomposition = @all_lanes}                              %y = call @f(%x)
                                                               dynamic_update_slice %o, %y, %i }

`lanes` computes `block` lanes from that many of each operand that `batched` marks and from the
others whole; with a block of 1 it has no dimension of lanes. The last block of a size that is not a
multiple does some lanes again. The loop is marked `lamina.lanes`: its steps depend on each other in
nothing and may run in any order, at the same time. With `form=select` the composite is left for its
decomposition, which computes all lanes at once; with `form=threads` it is where a lane is more than a
few scalars, and others go one by one, by `lane`, which is what `lanes` is with a block of 1. Leaves
other composites alone in any case.

example: test/passes/stablehlo/expand_lanes.mlir
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.stablehlo.step_form import is_a_lanes

NAME = "lamina.lanes"


class ExpandLanes(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.composite",))

    form: Literal["branch", "select", "threads"] = "branch"

    def run(self, module: ir.Module) -> None:
        if self.form == "select":
            return
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "stablehlo.composite" and op.attributes["name"].value == NAME:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        if self.form == "threads":
            functions = {
                view.operation.attributes["sym_name"].value: view.operation
                for view in module.body.operations
            }
            found = [op for op in found if _take_lane(op, functions)]
        for op in found:
            with ir.InsertionPoint(op), op.location:
                results = _loop(op)
            for old, new in zip(op.results, results):
                old.replace_all_uses_with(new)
            op.erase()
        self.count("loops", len(found))


def _take_lane(op: ir.Operation, functions: dict[str, ir.Operation]) -> bool:
    """Lets lanes go one by one where each is a thread's; whether they do."""
    given = ir.DictAttr(op.attributes["composite_attributes"])
    if "lane" not in given and given["block"].value > 1:
        return False
    lane = ir.FlatSymbolRefAttr(given["lane" if "lane" in given else "lanes"])
    if not is_a_lanes(functions[lane.value], functions):
        return False
    one = ir.IntegerAttr.get(given["block"].type, 1)
    every = {entry.name: entry.attr for entry in given} | {"lanes": lane, "block": one}
    op.attributes["composite_attributes"] = ir.DictAttr.get(every)
    return True


def _loop(op: ir.Operation) -> list[ir.Value]:
    given = ir.DictAttr(op.attributes["composite_attributes"])
    size, block = given["size"].value, given["block"].value
    batched = list(given["batched"])
    function = ir.FlatSymbolRefAttr(given["lanes"]).value
    steps = -(-size // block)
    types = [result.type for result in op.results]
    zero = hlo.constant(np.int32(0))
    one, by, limit = (hlo.constant(np.int32(n)) for n in (1, block, steps))
    outs = [
        hlo.broadcast_in_dim(hlo.constant(np.zeros((), dtype_of(t))), list(t.shape), ())
        for t in types
    ]

    def cond(step: ir.Value, *_: ir.Value) -> ir.Value:
        return hlo.compare(step, limit, "LT")

    def body(step: ir.Value, *carried: ir.Value) -> list[ir.Value]:
        first = step if block == 1 else hlo.multiply(step, by)
        operands = [
            _part(value, first, zero, block) if of_lanes else value
            for value, of_lanes in zip(op.operands, batched, strict=True)
        ]
        made = hlo.call(function, operands, [_without_lanes(t, block) for t in types])
        updated = []
        for whole, part in zip(carried, made):
            shape = [block, *list(whole.type.shape)[1:]]
            if block == 1:
                part = hlo.reshape(part, shape)
            starts = [first, *[zero] * (len(shape) - 1)]
            updated.append(hlo.dynamic_update_slice(whole, part, starts))
        return [hlo.add(step, one), *updated]

    results = hlo.while_([zero, *outs], cond, body)
    loop = results[0].owner.operation
    loop.attributes[NAME] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), steps)
    return results[1:]


def _part(value: ir.Value, first: ir.Value, zero: ir.Value, block: int) -> ir.Value:
    shape = [block, *list(value.type.shape)[1:]]
    part = hlo.dynamic_slice(value, [first, *[zero] * (len(shape) - 1)], shape)
    return hlo.reshape(part, shape[1:]) if block == 1 else part


def _without_lanes(of: ir.Type, block: int) -> ir.Type:
    shape = list(of.shape)[1:]
    return ir.RankedTensorType.get(shape if block == 1 else [block, *shape], of.element_type)
