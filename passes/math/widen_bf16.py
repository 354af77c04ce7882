"""Compute bf16 in f32 while loops are still loops over scalars, and say which roundings are the processor's.

    %c = arith.mulf %a, %b : bf16      ->      %x = arith.extf %a : bf16 to f32, and %y of %b
                                               %z = arith.mulf %x, %y : f32
                                               %c = arith.truncf %z {lamina.native} : f32 to bf16

Loops are written over vectors after that. A processor that rounds to bf16 takes its denormals for zero: that
is what arithmetic makes of them in any case, so that what it made is rounded so, and what was loaded is not
(see `math-expand-small-floats`). Results that are operands, remainders, or integers of 8 bits, are not
rounded at all: they have no more bits than bf16. Leaves alone vectors, and what `features` does not have.

example: test/passes/math/widen_bf16.mlir
"""

from __future__ import annotations

from lamina.dialects.attributes import NATIVE
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass

_FROM_INTEGERS = frozenset(("arith.sitofp", "arith.uitofp"))
_CARRIED = frozenset(("arith.select", "arith.bitcast", "arith.constant"))
_SAME_BITS = frozenset(
    "arith.negf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf math.absf math.copysign".split()
)
"""Ops that give one of their operands, but for its sign."""
_FLUSHING = frozenset("arith.addf arith.subf arith.mulf arith.divf".split())
_MOST_STEPS = 8  # search: back from a rounding to what made the number
_LEAST_NORMAL = 2.0**-126  # range


class WidenBf16(Pass):
    """See the module's docstring."""

    features: str = ""
    """`avx512bf16`, among others with `+` between them; without it roundings are not marked."""

    def run(self, module: ir.Module) -> None:
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name.startswith(("arith.", "math.")) and op.name not in _CARRIED:
                if any(isinstance(value.type, ir.BF16Type) for value in (*op.results, *op.operands)):
                    found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        rounds = "avx512bf16" in self.features.split("+")
        for op in reversed(found):  # what reads a number sees how it was made
            with ir.InsertionPoint(op), op.location:
                _widen(op, rounds)
        self.count("widened", len(found))


def _widen(op: ir.Operation, rounds: bool) -> None:
    result = op.results[0]
    if op.name == "arith.truncf":
        if rounds and isinstance(op.operands[0].type, ir.F32Type) and _is_flushed(op.operands[0]):
            op.attributes[NATIVE] = ir.UnitAttr.get()
        return
    if op.name == "arith.extf":
        if isinstance(result.type, ir.F32Type) and (number := _integer_of(op.operands[0])) is not None:
            result.replace_all_uses_with(remade(number, [result.type], list(number.operands)).result)
            op.erase()
        return
    operands = [_in_f32(value) for value in op.operands]
    if not isinstance(result.type, ir.BF16Type):
        result.replace_all_uses_with(remade(op, [result.type], operands).result)
    else:
        # f64 holds every i32; what it rounds of an i64 lies far below the last bit of bf16.
        wide = op.name in _FROM_INTEGERS and op.operands[0].type.width > 16
        through = ir.F64Type.get() if wide else ir.F32Type.get()
        number = remade(op, [through], operands).result
        result.replace_all_uses_with(_cut(number) if _has_few_bits(op) else _rounded(number, rounds))
    op.erase()


def _in_f32(value: ir.Value) -> ir.Value:
    if not isinstance(value.type, ir.BF16Type):
        return value
    f32, number = ir.F32Type.get(), _integer_of(value)
    return arith.ExtFOp(f32, value).result if number is None else remade(number, [f32], list(number.operands)).result


def _integer_of(value: ir.Value) -> ir.Operation | None:
    """The conversion that makes a bf16 of an integer that it can hold."""
    if isinstance(value.owner, ir.Block):
        return None
    maker = value.owner.operation
    return maker if maker.name in _FROM_INTEGERS and _has_few_bits(maker) else None


def _has_few_bits(op: ir.Operation) -> bool:
    """Whether bf16 has all bits of an op's result in f32."""
    if op.name in _FROM_INTEGERS:
        return op.operands[0].type.width <= 8
    return op.name in _SAME_BITS or op.name == "arith.remf"  # less than one operand, a multiple of the last bit of one


def _cut(number: ir.Value) -> ir.Value:
    """The bf16 that an f32 is."""
    word, half = (ir.IntegerType.get_signless(bits) for bits in (32, 16))
    high = arith.ShRUIOp(arith.BitcastOp(word, number).result, arith.ConstantOp(word, 16).result).result
    return arith.BitcastOp(ir.BF16Type.get(), arith.TruncIOp(half, high).result).result


def _rounded(number: ir.Value, rounds: bool) -> ir.Value:
    op = arith.TruncFOp(ir.BF16Type.get(), number)
    if rounds and isinstance(number.type, ir.F32Type) and _is_flushed(number):
        op.operation.attributes[NATIVE] = ir.UnitAttr.get()
    return op.result


def _is_flushed(number: ir.Value, steps: int = _MOST_STEPS) -> bool:
    """Whether a float was made by arithmetic, which gives no denormals."""
    if isinstance(number.owner, ir.Block) or not steps:
        return False
    op = number.owner.operation
    if op.name in _FLUSHING or op.name in _FROM_INTEGERS:
        return True
    if op.name == "arith.constant":
        value = op.attributes["value"]
        return isinstance(value, ir.FloatAttr) and not 0 < abs(value.value) < _LEAST_NORMAL
    if op.name in _SAME_BITS or op.name == "arith.select":
        chosen = list(op.operands)[op.name == "arith.select" :]
        return all(_is_flushed(value, steps - 1) for value in chosen)
    return op.name.startswith("math.")
