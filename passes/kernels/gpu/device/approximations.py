"""Functions that GPUs have instructions for. Subnormals count as zero; infinities and NaNs are right.

Those of f32 are wrong by some units in the last place, which is less than what 16-bit results are rounded
by; those of f64, some 2^-19 of the result, are where a formula begins.
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import arith, ir
from lamina.passes.math.terms import Lane
from lamina.passes.math.variants import intrinsic


def exp(x: ir.Value) -> ir.Value:
    """e to the power of x, of f32."""
    scale = arith.ConstantOp(x.type, math.log2(math.e)).result
    return power_of_two(arith.MulFOp(x, scale).result)


def power_of_two(x: ir.Value) -> ir.Value:
    """2 to the power of x, of f32."""
    return _instruction("ex2", x)


def reciprocal(x: ir.Value) -> ir.Value:
    """1 / x; a division is a call for the assembler, which then lets no product overlap with another."""
    return _instruction("rcp", x)


def reciprocal_root(x: ir.Value) -> ir.Value:
    """1 / sqrt(x)."""
    return _instruction("rsqrt", x)


def _instruction(name: str, x: ir.Value) -> ir.Value:
    lane = Lane.of(x.type)
    return intrinsic(f"llvm.nvvm.{name}.approx.ftz.{'f' if lane.width == 32 else 'd'}", lane, x).value
