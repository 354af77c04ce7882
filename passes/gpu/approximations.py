"""Functions of f32 that GPUs have instructions for: wrong by some units in the last place, which is less
than what 16-bit results are rounded by. Subnormals count as zero; infinities and NaNs are right."""

from __future__ import annotations

import math

from lamina.dialects.vendors import arith, ir


def exp(x: ir.Value) -> ir.Value:
    """e to the power of x."""
    scale = arith.ConstantOp(x.type, math.log2(math.e)).result
    return _instruction("ex2.approx.ftz.f32", arith.MulFOp(x, scale).result)


def reciprocal(x: ir.Value) -> ir.Value:
    """1 / x; a division is a call for the assembler, which then lets no product overlap with another."""
    return _instruction("rcp.approx.ftz.f32", x)


def _instruction(name: str, x: ir.Value) -> ir.Value:
    return ir.Operation.create(
        "llvm.inline_asm", results=[x.type], operands=[x],
        attributes={
            "asm_string": ir.StringAttr.get(f"{name} $0, $1;"), "constraints": ir.StringAttr.get("=f,f")
        },
    ).result  # fmt: skip
