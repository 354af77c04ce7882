"""The rules of `stablehlo-simplify` on integers whose bounds are known: what is always so is not asked.

    stablehlo.while(%i = 0, ...) cond { %i < 1000 } do {
      %0 = stablehlo.compare LT, %i, 0               ->     false
      %1 = stablehlo.clamp 0, %i, 1999               ->     %i

Whether an index is negative, and whether it is in bounds, NumPy's indexing asks in each step of a loop whose
counter is neither.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import defining, splat_of
from lamina.passes.stablehlo.analysis.ranges import Range, range_of
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

_MOST_NARROWED = 6  # search: ops from a position to its conversion


def _decided_comparison(op: ir.Operation) -> ir.Value | None:
    """Of what lies on one side of the other -> the answer."""
    lhs, rhs = op.operands
    if dtype_of(lhs.type).kind not in "iu":
        return None
    left, right = range_of(lhs), range_of(rhs)
    if left is None or right is None:
        return None
    name = stablehlo_ext.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    answer = _answer(name, left, right)
    return None if answer is None else hlo.full(answer, shape_of(lhs.type), np.bool_)


def _answer(name: str, left: Range, right: Range) -> bool | None:
    match name:
        case "LT" | "GE":
            if left.high < right.low or left.low >= right.high:
                return (left.high < right.low) == (name == "LT")
        case "LE" | "GT":
            if left.high <= right.low or left.low > right.high:
                return (left.high <= right.low) == (name == "LE")
        case "EQ" | "NE":
            if left.high < right.low or left.low > right.high:
                return name == "NE"
    return None


def _clamp_within(op: ir.Operation) -> ir.Value | None:
    """Of what lies between -> as it is."""
    low, value, high = op.operands
    if dtype_of(value.type).kind not in "iu":
        return None
    within, least, most = range_of(value), range_of(low), range_of(high)
    if within is None or least is None or most is None:
        return None
    return value if least.high <= within.low and within.high <= most.low else None


def _smaller(op: ir.Operation) -> ir.Value | None:
    """The minimum of two of which one is never larger -> that; the maximum likewise."""
    first, second = op.operands
    if dtype_of(first.type).kind not in "iu":
        return None
    one, other = range_of(first), range_of(second)
    if one is None or other is None:
        return None
    least = op.name == "stablehlo.minimum"
    if one.high <= other.low:
        return first if least else second
    if other.high <= one.low:
        return second if least else first
    return None


def _all_shifted_out(op: ir.Operation) -> ir.Value | None:
    """The high bits of what has none -> zeros."""
    value, by = op.operands
    count = int(splat_of(by) or 0)
    if not 0 < count < dtype_of(value.type).itemsize * 8:
        return None
    bounds = range_of(value)
    if bounds is None or bounds.low < 0 or bounds.high >> count:
        return None
    return hlo.full(0, shape_of(value.type), dtype_of(value.type))


@needs_operand_of("iota", "add", "multiply", "subtract")
def _narrow_position(op: ir.Operation) -> ir.Value | None:
    """Of a position to fewer bits -> computed in these: a loop has as many lanes as its widest type allows."""
    (value,) = op.operands
    source, target = dtype_of(value.type), dtype_of(op.result.type)
    if source.kind not in "iu" or target.kind not in "iu" or target.itemsize >= source.itemsize:
        return None
    if not _is_of_positions(value, target, _MOST_NARROWED):
        return None
    return _narrowed(value, target)


def _is_of_positions(value: ir.Value, target: np.dtype, steps: int) -> bool:
    """Whether a value is made of positions that the type holds, by what loses no low bits."""
    if splat_of(value) is not None:
        return True
    op = defining(value)
    if op is None or not steps:
        return False
    if op.name == "stablehlo.iota":
        bounds = range_of(value)
        return bounds is not None and bounds.high <= np.iinfo(target).max
    return op.name in _NARROWED and all(
        _is_of_positions(operand, target, steps - 1) for operand in op.operands
    )


def _narrowed(value: ir.Value, target: np.dtype) -> ir.Value:
    splat, shape = splat_of(value), shape_of(value.type)
    if splat is not None:
        return hlo.full(np.asarray(splat).astype(target)[()], shape, target)
    op = defining(value)
    assert op is not None
    if op.name == "stablehlo.iota":
        return hlo.iota(shape, target, ir.IntegerAttr(op.attributes["iota_dimension"]).value)
    return _NARROWED[op.name](*(_narrowed(operand, target) for operand in op.operands))


_NARROWED = {
    "stablehlo.add": hlo.add, "stablehlo.multiply": hlo.multiply, "stablehlo.subtract": hlo.subtract,
}  # fmt: skip

RULES: dict[str, Sequence[Rule]] = {
    "stablehlo.compare": (_decided_comparison,),
    "stablehlo.clamp": (_clamp_within,),
    "stablehlo.minimum": (_smaller,),
    "stablehlo.maximum": (_smaller,),
    "stablehlo.shift_right_logical": (_all_shifted_out,),
    "stablehlo.convert": (_narrow_position,),
}
