"""Which elements are there whether or not a loop around their reading does anything."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import constant_of

_MOST_STEPS = 8  # search


def is_in_bounds(buffer: ir.Value, indices: Sequence[ir.Value]) -> bool:
    """Whether an element is known to be one of a buffer's: its indices are made of constants and of the
    variables of loops whose bounds are known."""
    shape = ir.MemRefType(buffer.type).shape
    ranges = map(_range_of, indices)
    return all(
        found is not None and 0 <= found[0] and found[1] < size
        for found, size in zip(ranges, shape, strict=True)
    )


def _range_of(value: ir.Value, steps: int = _MOST_STEPS) -> tuple[int, int] | None:
    """The least and the greatest number that an index may be."""
    number = constant_of(value)
    if number is not None:
        return number, number
    if steps == 0:
        return None
    if isinstance(value.owner, ir.Block):
        return _of_variable(value)
    op = value.owner.operation
    if op.name not in ("arith.addi", "arith.muli"):
        return None
    one, other = (_range_of(operand, steps - 1) for operand in op.operands)
    if one is None or other is None:
        return None
    if op.name == "arith.addi":
        return one[0] + other[0], one[1] + other[1]
    ends = [a * b for a in one for b in other]
    return min(ends), max(ends)


def _of_variable(value: ir.Value) -> tuple[int, int] | None:
    loop = value.owner.owner.operation
    if loop.name != "scf.for" or value != value.owner.arguments[0]:
        return None
    low, high = constant_of(loop.operands[0]), constant_of(loop.operands[1])
    return None if low is None or high is None or high <= low else (low, high - 1)
