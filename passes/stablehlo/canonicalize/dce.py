"""Erase what nobody uses: ops, results of control flow, functions and their arguments.

    %r:2 = stablehlo.while(%i = %0, %unused = %x)  ->   %r = stablehlo.while(%i = %0)

Drops unused pure ops; loop carries that don't reach a used result or the condition, or that the
loop hands on unchanged; results of `if` and `case` without users; private functions nobody calls,
and their arguments and results that nobody reads. Public functions keep their types.

example: test/passes/stablehlo/canonicalize/dce.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.facts import is_droppable, is_unused
from lamina.passes.stablehlo.canonicalize import dce_functions

_BRANCHES = ("stablehlo.if", "stablehlo.case")


class Dce(Pass):
    """The pass `stablehlo-dce`."""

    def run(self, module: ir.Module) -> None:
        dce_functions.drop_uncalled(module, self)
        for function in module.body.operations:
            self._function(function.operation)
        # Users that are gone may leave arguments unread, and calls whose results are.
        while changed := dce_functions.shrink_signatures(module, self):
            for name in changed:
                self._function(name)
            dce_functions.drop_uncalled(module, self)

    def _function(self, function: ir.Operation) -> None:
        for region in function.regions:
            self._region(region)

    def _region(self, region: ir.Region) -> None:
        """Erase unused ops, users before what they use."""
        for block in region.blocks:
            for op in reversed([inner.operation for inner in block.operations]):
                if op.results and is_unused(op) and is_droppable(op):
                    op.erase()
                    self.count("ops")
                elif op.name == "stablehlo.while":
                    self._while(op)
                elif op.name in _BRANCHES:
                    self._branches(op)
                else:
                    for nested in op.regions:
                        self._region(nested)

    def _while(self, op: ir.Operation) -> None:
        self._forward_unchanging(op)
        live = _live_carries(op)
        dead = [number for number in range(len(live)) if not live[number]]
        if dead:
            op = _without_carries(op, live)
            self.count("carries", len(dead))
        for region in op.regions:
            self._region(region)

    def _forward_unchanging(self, op: ir.Operation) -> None:
        """Read a carry that the body hands on as it is from outside the loop."""
        condition, body = (region.blocks[0] for region in op.regions)
        yielded = body.operations[-1].operation.operands
        for number, (init, after) in enumerate(zip(list(op.operands), list(yielded))):
            if after == body.arguments[number] or after == init:
                condition.arguments[number].replace_all_uses_with(init)
                body.arguments[number].replace_all_uses_with(init)
                op.results[number].replace_all_uses_with(init)

    def _branches(self, op: ir.Operation) -> None:
        live = [next(iter(result.uses), None) is not None for result in op.results]
        if not all(live):
            for region in op.regions:
                _shrink_terminator(region.blocks[0], live)
            op = _rebuilt(op, list(op.operands), live)
            self.count("results", live.count(False))
        for region in op.regions:
            self._region(region)


def _live_carries(op: ir.Operation) -> list[bool]:
    """Which carries reach a used result, the condition, or an op with an effect."""
    condition, body = (region.blocks[0] for region in op.regions)
    yielded = list(body.operations[-1].operation.operands)
    live = [next(iter(result.uses), None) is not None for result in op.results]
    position = {argument: number for number, argument in enumerate(body.arguments)}
    for number, argument in enumerate(condition.arguments):
        live[number] = live[number] or next(iter(argument.uses), None) is not None
    reached: set[ir.Value] = set()
    work: list[ir.Value] = []
    for inner in body.operations:
        inner = inner.operation
        if inner.name != "stablehlo.return" and not is_droppable(inner):
            work += _read_by(inner)
    work += [yielded[number] for number in range(len(live)) if live[number]]
    while work:
        value = work.pop()
        if value in reached:
            continue
        reached.add(value)
        carry = position.get(value)
        if carry is not None:
            if not live[carry]:
                live[carry] = True
                work.append(yielded[carry])
            continue
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.operation.block == body:
            work += _read_by(owner.operation)
    return live


def _read_by(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op and of all ops in it."""
    found = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += _read_by(inner.operation)
    return found


def _without_carries(op: ir.Operation, live: list[bool]) -> ir.Operation:
    condition, body = (region.blocks[0] for region in op.regions)
    _shrink_terminator(body, live)
    for number in reversed(range(len(live))):
        if not live[number]:
            # Ops that still read the argument only made dropped values; a read of the initial
            # value keeps them valid until they are erased.
            for block in (condition, body):
                block.arguments[number].replace_all_uses_with(op.operands[number])
                block.erase_argument(number)
    operands = [value for value, keep in zip(op.operands, live) if keep]
    return _rebuilt(op, operands, live)


def _shrink_terminator(block: ir.Block, live: list[bool]) -> None:
    terminator = block.operations[-1].operation
    kept = [value for value, keep in zip(terminator.operands, live) if keep]
    with ir.InsertionPoint(terminator), terminator.location:
        ir.Operation.create(terminator.name, operands=kept)
    terminator.erase()


def _rebuilt(op: ir.Operation, operands: list[ir.Value], live: list[bool]) -> ir.Operation:
    """The op with fewer results and the regions of the old one, which it replaces."""
    types = [result.type for result, keep in zip(op.results, live) if keep]
    with ir.InsertionPoint(op), op.location:
        new = remade(op, types, operands, regions=len(op.regions))
    for old_region, new_region in zip(op.regions, new.regions):
        old_region.blocks[0].append_to(new_region)
    kept = [result for result, keep in zip(op.results, live) if keep]
    for old, fresh in zip(kept, new.results):
        old.replace_all_uses_with(fresh)
    op.erase()
    return new.operation
