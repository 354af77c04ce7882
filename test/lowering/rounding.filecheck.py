# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.rounding."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: signs
# CHECK: stablehlo.negate
# CHECK: stablehlo.abs
# CHECK: stablehlo.sign
@print_ir("f32[5]")
def signs(x):
    return lax.sign(lax.abs(lax.neg(x)))


# StableHLO's sign takes no unsigned integers.
# CHECK-LABEL: TEST: sign_unsigned
# CHECK: stablehlo.compare NE
# CHECK: stablehlo.convert
@print_ir("u8[5]")
def sign_unsigned(x):
    return lax.sign(x)


# CHECK-LABEL: TEST: rounding
# CHECK: stablehlo.floor
# CHECK: stablehlo.ceil
# CHECK: stablehlo.round_nearest_afz
# CHECK: stablehlo.round_nearest_even
# CHECK: stablehlo.is_finite
@print_ir("f32[5]")
def rounding(x):
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    return lax.is_finite(lax.round(lax.round(lax.ceil(lax.floor(x))), even))


# CHECK-LABEL: TEST: nextafter
# CHECK: chlo.next_after
@print_ir("f32[5]", "f32[5]")
def nextafter(x, y):
    return lax.nextafter(x, y)
