"""How many steps a loop does, where its counter and its bound are known."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import made_by, splat_of
from lamina.passes.stablehlo.analysis.ranges import growth

_HOLDS = {
    "LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__,
}  # fmt: skip


def trips(loop: ir.Operation, most: int) -> int | None:
    """How many steps a loop does, where that is known and not more than `most`."""
    block = loop.regions[0].blocks[0]
    compare = made_by(block.operations[len(block.operations) - 1].operands[0], "stablehlo.compare")
    if compare is None or len(block.operations) > 3:  # a bound, the question, its answer
        return None
    left, right = compare.operands
    numbers = [n for n, argument in enumerate(block.arguments) if argument == left]
    bound = splat_of(right)
    direction = str(compare.attributes["comparison_direction"]).rsplit(" ", 1)[-1].rstrip(">")
    if not numbers or bound is None or direction not in _HOLDS or left.type.shape:
        return None
    [number] = numbers
    start, by = splat_of(loop.operands[number]), growth(loop, number)
    if start is None or not by or not isinstance(left.type.element_type, ir.IntegerType):
        return None
    holds, value, steps = _HOLDS[direction], int(start), 0
    while holds(value, int(bound)):
        value, steps = value + by, steps + 1
        if steps > most:
            return None
    return steps
