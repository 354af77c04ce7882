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
from lamina.passes.stablehlo.ranges import Range, range_of
from lamina.passes.stablehlo.rewriting import Rule


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


RULES: dict[str, Sequence[Rule]] = {
    "stablehlo.compare": (_decided_comparison,),
    "stablehlo.clamp": (_clamp_within,),
    "stablehlo.minimum": (_smaller,),
    "stablehlo.maximum": (_smaller,),
}
