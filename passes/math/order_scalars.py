"""Find the lesser or greater of two scalars in a few cycles: for chains in which each waits for the one before.

    %r = arith.minimumf %a, %b : f64   ->   %x = select(%a < %b, %a, %b);  %y = select(%b < %a, %b, %a)
                                            %r = bits of %x | bits of %y

Processors select as on the right in one instruction, which gives its second operand where one is NaN or both
are zeros. So both selections are the same number; or -0 and 0, of which the bits together are -0; or a NaN
and either operand, which together are a NaN. (Numbers below the normal ones are zeros to these
instructions, here as everywhere in compiled code.) LLVM looks at the sign of an operand instead and moves both
around, three times as long. The greater one is that of the negated, negated. Leaves alone what is in loops:
there vectors do several at a time, and reductions are found by their op.

example: test/passes/math/order_scalars.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import arith, ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import ancestors, find_ops

_LOOPS = frozenset(("scf.for", "scf.while", "scf.forall"))


class OrderScalars(Pass):
    """The pass `math-order-scalars`."""

    only_with = frozenset(("arith.minimumf", "arith.maximumf"))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, *self.only_with):
            of = op.results[0].type
            if isinstance(of, (ir.F32Type, ir.F64Type)) and not _LOOPS & {up.name for up in ancestors(op)}:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_ordered(op))
                op.erase()
                self.count("scalars")


def _ordered(op: ir.Operation) -> ir.Value:
    a, b = op.operands
    if op.name == "arith.minimumf":
        return _least(a, b)
    return arith.negf(_least(arith.negf(a), arith.negf(b)))


def _least(a: ir.Value, b: ir.Value) -> ir.Value:
    bits = ir.IntegerType.get_signless(a.type.width)
    first, second = (
        arith.bitcast(bits, arith.select(arith.cmpf(arith.CmpFPredicate.OLT, x, y), x, y))
        for x, y in ((a, b), (b, a))
    )
    return arith.bitcast(a.type, arith.ori(first, second))
