"""Tables that stand in two registers of AVX-512: 32 floats, one of which each lane picks.

Reading memory at sixteen places takes longer than computing does; choosing from registers takes one
instruction, which LLVM does not make of the other by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir
from lamina.passes.math.terms import Term, table
from lamina.passes.math.variants import LANES, call_variant, intrinsic

ENTRIES = 2 * LANES


def lookup(name: str, values: Sequence[float], at: Term) -> Term:
    """The f32 that stands at the place which the low bits of an i32 number, each lane its own."""

    def read(at: Term) -> Term:
        [entry] = table(name, [[value] for value in values], at & (ENTRIES - 1), 32)
        return entry

    def choose(at: Term) -> Term:
        low, high = (_constant(at, part) for part in (values[:LANES], values[LANES:]))
        return intrinsic("llvm.x86.avx512.vpermi2var.ps.512", at.lane, low, at.value, high)

    return call_variant(f"lookup_{name}", read, choose, at)


def _constant(like: Term, values: Sequence[float]) -> ir.Value:
    type_ = like.lane.float
    numbers = [ir.FloatAttr.get(type_.element_type, value) for value in values]
    attributes = {"value": ir.DenseElementsAttr.get(numbers, type_)}
    return ir.Operation.create("arith.constant", [type_], attributes=attributes).result
