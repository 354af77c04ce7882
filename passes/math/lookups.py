"""Tables that stand in two registers of AVX-512: 32 floats, one of which each lane picks.

Reading memory at sixteen places takes longer than computing does; choosing from registers takes one
instruction. LLVM never turns the one into the other, so the choice is a function with a variant for
vectors, as in `near_and_far`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir
from lamina.passes.math.near_and_far import define, variants_of
from lamina.passes.math.terms import Lane, Term, enclosing_module, is_named, table

ENTRIES = 32
_LANES = 16  # of f32 in a register
_CHOICE = "llvm.x86.avx512.vpermi2var.ps.512"


def lookup(name: str, values: Sequence[float], at: Term) -> Term:
    """The f32 that stands at the place which the low bits of an i32 number, each lane its own."""
    if at.lane.shape == (_LANES,):
        return _choice(values, at)
    if at.lane.shape is not None:
        return _entry(name, values, at)
    symbol = f"lamina_lookup_{name}"
    body = enclosing_module().regions[0].blocks[0]
    if not any(is_named(op, symbol) for op in body.operations):
        with ir.InsertionPoint.at_block_begin(body):
            _define(symbol, name, values)
    called = ir.Operation.create(
        "func.call",
        [at.lane.float],
        [at.value],
        attributes={"callee": ir.FlatSymbolRefAttr.get(symbol)},
    )
    return Term(called.result, at.lane, "float")


def _define(symbol: str, name: str, values: Sequence[float]) -> None:
    variant = f"{symbol}_x{_LANES}"
    for lane, symbol_, attributes in (
        (Lane.make(32, (_LANES,)), variant, [ir.StringAttr.get("alwaysinline")]),
        (
            Lane.make(32, None),
            symbol,
            [
                ir.StringAttr.get("noinline"),
                variants_of(symbol, {_LANES: variant}, 1),
            ],
        ),
    ):
        [at], function = define(symbol_, [lane.int], lane.float, attributes)
        with ir.InsertionPoint(function.regions[0].blocks[0]):
            term = Term(at, lane, "int")
            chosen = _choice(values, term) if lane.shape else _entry(name, values, term)
            ir.Operation.create("func.return", operands=[chosen.value])


def _choice(values: Sequence[float], at: Term) -> Term:
    low, high = (_constant(at.lane, part) for part in (values[:_LANES], values[_LANES:]))
    attributes = {
        "intrin": ir.StringAttr.get(_CHOICE),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
    }
    operands = [low, at.value, high]
    op = ir.Operation.create("llvm.call_intrinsic", [at.lane.float], operands, attributes)
    return Term(op.result, at.lane, "float")


def _constant(lane: Lane, values: Sequence[float]) -> ir.Value:
    element = lane.float.element_type
    numbers = [ir.FloatAttr.get(element, value) for value in values]
    attributes = {"value": ir.DenseElementsAttr.get(numbers, lane.float)}
    return ir.Operation.create("arith.constant", [lane.float], attributes=attributes).result


def _entry(name: str, values: Sequence[float], at: Term) -> Term:
    [entry] = table(name, [[value] for value in values], at & (ENTRIES - 1), 32)
    return entry
