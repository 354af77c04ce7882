"""Put together what a constant part of an array is replaced in, if the array may not be overwritten.

    %0 = stablehlo.add %y, %z : tensor<7xf32>             %0 = stablehlo.add %y, %z : tensor<7xf32>
    %1 = stablehlo.dynamic_update_slice %x, %0, %one  ->  %1 = stablehlo.slice %x [0:1]
                                                          %2 = stablehlo.concatenate %1, %0, dim = 0

`x.at[1:].add(y[1:])` is one kernel then, which writes each element once; as an update it would store what
is new, copy all of x, and copy what is new over it. Leaves alone donated arguments and what the program
makes itself and reads no more, which are updated in place, parts smaller than half of the array that are not
whole rows, and parts in the middle of more than two dimensions (of what the program made: one), around which
there are too many others.

In a step of a loop, or in a branch, an update that replaces most of an array by what ops on elements make
for it alone is put together, too. If these read the array at the places that they replace, if at all, it is
overwritten as an update would do; if at others, too, the step writes an array beside it, and the loop lets
both change places.

example: test/passes/stablehlo/piecewise/update_in_parts.mlir
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import DONATION
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import CONTROL, constant_starts, ints, made_by
from lamina.passes.stablehlo.canonicalize.rewriting import replace
from lamina.passes.stablehlo.fusion.fuse_ops import is_elementwise

_UPDATE = "stablehlo.dynamic_update_slice"
_MOST_PARTS = 9  # code
_FEW_PARTS = 3  # code: of what may be updated in place if its other readers come first
_MOST_FOLLOWED = 16  # search: ops that need a value
_LEAST_ELEMENTS = 1024  # code: fewer are copied in no time
_LEAST_IN_STEPS = 256  # code: the same in loops
_LEAST_ROW = 40  # code: elements of the last dimension, where that is cut


class UpdateInParts(Pass):
    """The pass `stablehlo-update-in-parts`."""

    only_with = frozenset(("stablehlo.dynamic_update_slice",))

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            if function.operation.name != "func.func" or function.attributes["sym_name"].value != "main":
                continue
            block = function.regions[0].blocks[0]
            kept = set(block.arguments)
            if "arg_attrs" in function.attributes:
                pairs = zip(block.arguments, function.attributes["arg_attrs"], strict=True)
                kept = {a for a, given in pairs if not any(n in given for n in DONATION)}
            for op in [inner.operation for inner in block.operations]:
                if op.name == _UPDATE and _reshaped(op.operands[0]) in kept:
                    self._look_at(op, _MOST_PARTS)
                elif op.name == _UPDATE and _is_read_later(op):
                    self._look_at(op, _FEW_PARTS)
                elif op.name in CONTROL:
                    self._look_into(op)

    def _look_into(self, control: ir.Operation) -> None:
        for update in find_ops(control, _UPDATE):
            if update.block.region.owner.name in CONTROL and _is_most_of_it(update):
                self._look_at(update, _MOST_PARTS, _LEAST_IN_STEPS)

    def _look_at(self, op: ir.Operation, most: int, least: int = _LEAST_ELEMENTS) -> None:
        operand, update, *starts = op.operands
        whole, part = shape_of(operand.type), shape_of(update.type)
        rows = part[1:] == whole[1:]
        if prod(part) < least or (not rows and 2 * prod(part) < prod(whole)):
            return
        lows = constant_starts(starts, whole, part)
        if lows is None:
            return
        parts = prod(
            1 + (low > 0) + (low + size < of) for low, size, of in zip(lows, part, whole, strict=True)
        )
        if parts > most or (part[-1] != whole[-1] and whole[-1] < _LEAST_ROW):
            return
        with ir.InsertionPoint(op), op.location:
            put_together = _put_together(operand, update, lows)
            for use in [use.owner.operation for use in update.uses]:
                if use.name == "stablehlo.slice":
                    _cut_out_of(use, put_together, lows)
        replace(op, [put_together])
        self.count("updates")


def _is_most_of_it(update: ir.Operation) -> bool:
    """Whether an update replaces most of an array by what a loop computes, and nothing else uses but for
    parts that are cut out later."""
    new = update.operands[1]
    if isinstance(new.owner, ir.Block) or not is_elementwise(new.owner.operation):
        return False
    whole, part = (prod(shape_of(value.type)) for value in update.operands[:2])
    if 3 * part < 2 * whole:
        return False
    others = [use.owner.operation for use in new.uses if use.owner.operation != update]
    return all(op.name == "stablehlo.slice" and update.is_before_in_block(op) for op in others)


def _cut_out_of(part: ir.Operation, whole: ir.Value, lows: Sequence[int]) -> None:
    """Let a part of what is put into an array be cut out of the array."""
    starts, ends, strides = (ints(part, n) for n in ("start_indices", "limit_indices", "strides"))
    with ir.InsertionPoint(part), part.location:
        first, last = ([low + at for low, at in zip(lows, where, strict=True)] for where in (starts, ends))
        replace(part, [hlo.slice(whole, first, last, strides)])


def _reshaped(value: ir.Value) -> ir.Value:
    """What a value holds the elements of in another shape."""
    while (op := made_by(value, "stablehlo.reshape")) is not None:
        value = op.operands[0]
    return value


def _is_read_later(update: ir.Operation) -> bool:
    """Whether what an update would overwrite is returned, too, or used together with its result."""
    if isinstance(update.operands[0].owner, ir.Block):
        return False
    readers = [use.owner.operation for use in update.operands[0].uses]
    if any(reader.name == "func.return" for reader in readers):
        return True
    others = [reader for reader in readers if reader != update]
    return bool(others) and not _followers([update]).isdisjoint(_followers(others))


def _followers(ops: Sequence[ir.Operation]) -> set[ir.Operation]:
    """The first ops of a block that use what these make, or what is made of it, and they themselves."""
    found = dict.fromkeys(ops)
    work = list(ops)
    for op in work:
        for user in [use.owner.operation for result in op.results for use in result.uses]:
            is_new = user not in found and user.block == op.block and user.name != "func.return"
            if is_new and len(found) < _MOST_FOLLOWED:
                found[user] = None
                work.append(user)
    return set(found)


def _put_together(operand: ir.Value, update: ir.Value, lows: Sequence[int]) -> ir.Value:
    """The update with what is around it in the operand, dimension by dimension from the last."""
    whole, part = shape_of(operand.type), shape_of(update.type)
    highs = [low + size for low, size in zip(lows, part, strict=True)]
    for dim in reversed(range(len(whole))):
        before, after = ([*lows[:dim], *[0] * (len(whole) - dim)], [*highs[:dim], *whole[dim:]])
        rows = []
        for low, high in ((0, lows[dim]), (highs[dim], whole[dim])):
            before[dim], after[dim] = low, high
            rows.append([hlo.slice(operand, before, after)] if low < high else [])
        if any(rows):
            update = hlo.concatenate([*rows[0], update, *rows[1]], dim)
    return update
