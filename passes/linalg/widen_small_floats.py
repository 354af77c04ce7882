"""Compute bf16 arithmetic in f32, rounding to bf16 after each operation.

No processor of ours has bf16 arithmetic. Each `arith` or `math` op on bf16 gets its operands extended to f32 and
its result rounded back, so that a chain of operations rounds as often as it would on paper. Narrowing f64 to bf16 or
f16 goes through an f32 rounded to odd, which makes the second rounding right; integers go to bf16 through f64. All
other types are left alone.

example: test/passes/linalg/widen_small_floats.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, math
from lamina.passes.base import Pass

_CASTS = ("arith.bitcast", "arith.extf", "arith.select", "arith.constant", "arith.index_cast")


@dataclass(frozen=True)
class WidenSmallFloats(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        computing: list[ir.Operation] = []
        narrowing: list[ir.Operation] = []
        bf16 = ir.BF16Type.get()

        def visit(op: ir.Operation) -> ir.WalkResult:
            if not op.name.startswith(("arith.", "math.")) or op.name in _CASTS:
                return ir.WalkResult.ADVANCE
            if op.name == "arith.truncf":
                if isinstance(op.operands[0].type, ir.F64Type) and isinstance(op.results[0].type, (ir.BF16Type, ir.F16Type)):
                    narrowing.append(op)
            elif any(value.type == bf16 for value in (*op.operands, *op.results)):
                computing.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in computing:
            with ir.InsertionPoint(op), op.location:
                _widen(op, narrowing)
        for op in narrowing:
            with ir.InsertionPoint(op), op.location:
                odd = _round_to_odd(op.operands[0])
                op.results[0].replace_all_uses_with(arith.TruncFOp(op.results[0].type, odd).result)
            op.erase()


def _widen(op: ir.Operation, narrowing: list[ir.Operation]) -> None:
    bf16, f32, f64 = ir.BF16Type.get(), ir.F32Type.get(), ir.F64Type.get()
    wide = f64 if op.name in ("arith.sitofp", "arith.uitofp") else f32
    operands = [arith.ExtFOp(f32, value).result if value.type == bf16 else value for value in op.operands]
    computed = ir.Operation.create(
        op.name,
        results=[wide if result.type == bf16 else result.type for result in op.results],
        operands=operands,
        attributes={named.name: named.attr for named in _attributes(op)},
    )
    for old, new in zip(op.results, computed.results, strict=True):
        if old.type == bf16:
            narrowed = arith.TruncFOp(bf16, new)
            if wide == f64:
                narrowing.append(narrowed.operation)
            new = narrowed.result
        old.replace_all_uses_with(new)
    op.erase()


def _attributes(op: ir.Operation) -> list[ir.NamedAttribute]:
    return [op.attributes[i] for i in range(len(op.attributes))]


def _round_to_odd(value: ir.Value) -> ir.Value:
    """f64 to f32: the value itself where exact, else the neighbour whose last bit is 1."""
    f32, f64, i32 = ir.F32Type.get(), ir.F64Type.get(), ir.IntegerType.get_signless(32)
    near = arith.TruncFOp(f32, value).result
    back = arith.ExtFOp(f64, near).result
    beyond = arith.CmpFOp(arith.CmpFPredicate.OGT, math.absf(back), math.absf(value)).result
    inexact = arith.CmpFOp(arith.CmpFPredicate.UNE, back, value).result
    bits = arith.BitcastOp(i32, near).result
    bits = arith.SubIOp(bits, arith.ExtUIOp(i32, beyond).result).result
    bits = arith.OrIOp(bits, arith.ExtUIOp(i32, inexact).result).result
    return arith.BitcastOp(f32, bits).result
