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
other composites alone in any case, and those whose functions have other types than their lanes.

example: test/passes/stablehlo/legalize/expand_lanes.mlir
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import functions_of
from lamina.passes.stablehlo.analysis.signatures import has_types
from lamina.passes.stablehlo.loops.lane_blocks import block_of, by_blocks
from lamina.passes.stablehlo.loops.step_form import is_a_lanes
from lamina.records import Record

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
        functions = functions_of(module)
        batches = [(op, batch) for op in found if (batch := _Batch.of(op, functions)) is not None]
        if self.form == "threads":
            batches = [
                (op, taken)
                for op, batch in batches
                if (taken := _with_a_thread_each(batch, functions)) is not None
            ]
        for op, batch in batches:
            with ir.InsertionPoint(op), op.location:
                results = _loop(op, batch)
            for old, new in zip(op.results, results):
                old.replace_all_uses_with(new)
            op.erase()
        self.count("loops", len(batches))


class _Batch(Record):
    """What such a composite says."""

    lanes: str
    lane: str | None
    size: int
    block: int
    batched: tuple[bool, ...]

    @staticmethod
    def of(op: ir.Operation, functions: dict[str, ir.Operation]) -> _Batch | None:
        """None where its parts do not fit each other, as in a program from outside: its decomposition
        says what it computes."""
        given = op.attributes["composite_attributes"]
        try:
            batch = _Batch(
                lanes=ir.FlatSymbolRefAttr(given["lanes"]).value,
                lane=ir.FlatSymbolRefAttr(given["lane"]).value if "lane" in given else None,
                size=ir.IntegerAttr(given["size"]).value,
                block=ir.IntegerAttr(given["block"]).value,
                batched=tuple(map(bool, ir.DenseI64ArrayAttr(given["batched"]))),
            )
        except (KeyError, ValueError):
            return None
        return batch if batch._fits(op, functions) else None

    def _fits(self, op: ir.Operation, functions: dict[str, ir.Operation]) -> bool:
        operands, results = (
            [value.type for value in values] for values in (op.operands, op.results)
        )
        if not 1 <= self.block <= self.size or len(self.batched) != len(operands):
            return False
        whole = [
            t for t, of_lanes in zip(operands, self.batched, strict=True) if of_lanes
        ] + results
        if any(not t.rank or t.is_dynamic_dim(0) or t.shape[0] != self.size for t in whole):
            return False
        computing = [(self.lanes, self.block)]
        if self.lane is not None:
            computing.append((self.lane, 1))
        return all(
            has_types(functions.get(name), *self._types(operands, results, block))
            for name, block in computing
        )

    def _types(
        self, operands: list[ir.Type], results: list[ir.Type], block: int
    ) -> tuple[list[ir.Type], list[ir.Type]]:
        """Of a function that computes so many lanes."""
        parts = [
            _without_lanes(t, block) if of_lanes else t
            for t, of_lanes in zip(operands, self.batched, strict=True)
        ]
        return parts, [_without_lanes(t, block) for t in results]


def _with_a_thread_each(batch: _Batch, functions: dict[str, ir.Operation]) -> _Batch | None:
    """The batch with lanes one by one, where each is a thread's."""
    lane = batch.lane or (batch.lanes if batch.block == 1 else None)
    if lane is None or not is_a_lanes(functions[lane], functions):
        return None
    return replace(batch, lanes=lane, block=1)


def _loop(op: ir.Operation, batch: _Batch) -> list[ir.Value]:
    block = batch.block
    types = [result.type for result in op.results]

    def compute(first: ir.Value) -> list[ir.Value]:
        operands = [
            _part(value, first, block) if of_lanes else value
            for value, of_lanes in zip(op.operands, batch.batched, strict=True)
        ]
        made = hlo.call(batch.lanes, operands, [_without_lanes(t, block) for t in types])
        return [hlo.reshape(part, [block, *list(part.type.shape)]) for part in made] if block == 1 else made

    return by_blocks(batch.size, block, types, compute)


def _part(value: ir.Value, first: ir.Value, block: int) -> ir.Value:
    part = block_of(value, first, block)
    return hlo.reshape(part, list(part.type.shape)[1:]) if block == 1 else part


def _without_lanes(of: ir.Type, block: int) -> ir.Type:
    shape = list(of.shape)[1:]
    return ir.RankedTensorType.get(shape if block == 1 else [block, *shape], of.element_type)
