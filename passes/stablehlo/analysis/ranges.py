"""Between what the elements of integer values lie: of counters of loops, positions, and what is computed of them.

A counter begins somewhere, grows by a constant, and is compared with an end before each step: that bounds it in
the loop's body, whatever the end is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import made_by, splat_of
from lamina.passes.stablehlo.analysis.lapack import TARGET

_MOST_STEPS = 10  # search: from a value to what bounds it
_VIEWS = frozenset(
    f"stablehlo.{name}" for name in "broadcast_in_dim reshape slice transpose reverse dynamic_slice gather".split()
)


class Range(NamedTuple):
    """All integers from `low` to `high`, both included."""

    low: int
    high: int

    def either(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    def plus(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def minus(self, other: Range) -> Range:
        return Range(self.low - other.high, self.high - other.low)

    def times(self, other: Range) -> Range:
        products = [a * b for a in self for b in other]
        return Range(min(products), max(products))

    def lies_in(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high


def range_of(value: ir.Value, steps: int = _MOST_STEPS) -> Range | None:
    """Between what all elements of a value lie; None for what is no integer."""
    of = value.type
    if not isinstance(of, ir.RankedTensorType) or not isinstance(of.element_type, ir.IntegerType):
        return None
    dtype = dtype_of(of)
    if dtype.kind not in "iu":
        return None
    info = np.iinfo(dtype)
    every = Range(int(info.min), int(info.max))
    found = _found(value, steps) if steps else None
    # What is not in the type's range went around: then nothing is known.
    return every if found is None or not found.lies_in(every) else found


def _found(value: ir.Value, steps: int) -> Range | None:
    splat = splat_of(value)
    if splat is not None:
        return Range(int(splat), int(splat))
    owner = value.owner
    if isinstance(owner, ir.Block):
        return _of_carried(value, owner, steps)
    if owner.name == "stablehlo.custom_call":
        return _of_factorisation(owner.operation, ir.OpResult(value).result_number)
    return _of_result(owner.operation, steps)


def _of_factorisation(call: ir.Operation, number: int) -> Range | None:
    """Rows of a matrix, by which an LU factorisation says what it exchanged."""
    if call.attributes["call_target_name"].value != TARGET + "getrf" or number == 0:
        return None
    rows = shape_of(call.results[0].type)[-2]
    return Range(0, rows - 1) if rows > 0 else None


def _of_result(op: ir.Operation, steps: int) -> Range | None:
    if op.name == "stablehlo.iota":
        shape = shape_of(op.results[0].type)
        size = shape[ir.IntegerAttr(op.attributes["iota_dimension"]).value]
        return Range(0, size - 1) if size > 0 else None
    operands = list(op.operands)
    if op.name in _VIEWS:
        return range_of(operands[0], steps - 1)
    if op.name == "stablehlo.convert":
        return _of_converted(operands[0], steps)
    if op.name == "stablehlo.select":
        operands = operands[1:]
    if op.name not in _KNOWN:
        return None
    parts = [range_of(operand, steps - 1) for operand in operands]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    first, second = known[0], known[-1]
    match op.name:
        case "stablehlo.add":
            return first.plus(second)
        case "stablehlo.subtract":
            return first.minus(second)
        case "stablehlo.multiply":
            return first.times(second)
        case "stablehlo.minimum":
            return Range(min(first.low, second.low), min(first.high, second.high))
        case "stablehlo.maximum":
            return Range(max(first.low, second.low), max(first.high, second.high))
        case "stablehlo.clamp":
            low, within, high = known
            return Range(
                min(max(within.low, low.low), high.low), min(max(within.high, low.high), high.high)
            )
        case "stablehlo.remainder" if first.low >= 0 and second.low > 0:
            return Range(0, min(first.high, second.high - 1))
        case "stablehlo.divide" if first.low >= 0 and second.low > 0:
            return Range(first.low // second.high, first.high // second.low)
        case "stablehlo.select" | "stablehlo.concatenate":
            together = first
            for part in known:
                together = together.either(part)
            return together
    return None


_KNOWN = frozenset(
    f"stablehlo.{name}"
    for name in "add subtract multiply minimum maximum clamp remainder divide select concatenate".split()
)


def _of_converted(operand: ir.Value, steps: int) -> Range | None:
    if dtype_of(operand.type).kind == "b":
        return Range(0, 1)
    return range_of(operand, steps - 1)


def _of_carried(value: ir.Value, block: ir.Block, steps: int) -> Range | None:
    """What a loop carries, in a step: from where it begins on, as many times as it grows."""
    loop = block.owner
    if loop.name != "stablehlo.while" or block.region != loop.regions[1]:
        return None
    number = ir.BlockArgument(value).arg_number
    by = growth(loop, number)
    begin = range_of(loop.operands[number], steps - 1)
    if block.operations[len(block.operations) - 1].operands[number] == value:
        return begin  # handed on
    if not by or begin is None:
        return None
    own = _bound(loop, number, by, steps)
    info = np.iinfo(dtype_of(value.type))
    if own is not None and info.min <= own + by <= info.max:  # the next step's doesn't go around
        return Range(begin.low, own) if by > 0 else Range(own, begin.high)
    for other in range(len(loop.operands)):
        pace = 0 if other == number else growth(loop, other)
        bound = _bound(loop, other, pace, steps) if pace else None
        start = range_of(loop.operands[other], steps - 1)
        if bound is None or start is None:
            continue
        times = (bound - start.low) // pace if pace > 0 else (start.high - bound) // -pace
        ends = (0, by * max(times, 0))
        return begin.plus(Range(min(ends), max(ends)))
    return None


def growth(loop: ir.Operation, number: int) -> int:
    """What a step adds to a value that the loop carries; 0 where that is no constant."""
    block = loop.regions[1].blocks[0]
    following = block.operations[len(block.operations) - 1].operands[number]
    argument = block.arguments[number]
    for name, sign in (("stablehlo.add", 1), ("stablehlo.subtract", -1)):
        op = made_by(following, name)
        if op is None or argument.type.shape:
            continue
        for old, by in ((op.operands[0], op.operands[1]), (op.operands[1], op.operands[0])):
            splat = splat_of(by)
            if old == argument and splat is not None and (sign > 0 or op.operands[0] == argument):
                return sign * int(splat)
    return 0


def _bound(loop: ir.Operation, number: int, by: int, steps: int) -> int | None:
    """The last value of a counter for which the loop's condition may hold, in the direction that it goes."""
    block = loop.regions[0].blocks[0]
    condition = block.operations[len(block.operations) - 1].operands[0]
    return _bound_by(condition, block.arguments[number], by, steps)


def _bound_by(condition: ir.Value, argument: ir.Value, by: int, steps: int) -> int | None:
    both = made_by(condition, "stablehlo.and")
    if both is not None and steps:
        bounds = [_bound_by(part, argument, by, steps - 1) for part in both.operands]
        known = [bound for bound in bounds if bound is not None]
        if not known:
            return None
        return min(known) if by > 0 else max(known)
    compare = made_by(condition, "stablehlo.compare")
    if compare is None:
        return None
    name = stablehlo_ext.ComparisonDirectionAttr(compare.attributes["comparison_direction"]).value
    left, right = compare.operands
    if right == argument:
        left, right, name = right, left, _MIRRORED.get(name, name)
    wanted = ("LT", "LE") if by > 0 else ("GT", "GE")
    end = range_of(right, steps - 1) if left == argument and name in wanted and steps else None
    if end is None:
        return None
    strict = name in ("LT", "GT")
    return end.high - strict if by > 0 else end.low + strict


_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
