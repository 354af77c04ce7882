# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.bitwise."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: logic
# CHECK: stablehlo.and
# CHECK: stablehlo.or
# CHECK: stablehlo.xor
# CHECK: stablehlo.not
@print_ir("i32[5]", "i32[5]")
def logic(x, y):
    return lax.bitwise_not(lax.bitwise_xor(lax.bitwise_or(lax.bitwise_and(x, y), y), y))


# CHECK-LABEL: TEST: shifts
# CHECK: stablehlo.shift_left
# CHECK: stablehlo.shift_right_logical
# CHECK: stablehlo.shift_right_arithmetic
@print_ir("i32[5]", "i32[5]")
def shifts(x, y):
    return lax.shift_right_arithmetic(lax.shift_right_logical(lax.shift_left(x, y), y), y)


# CHECK-LABEL: TEST: counts
# CHECK: stablehlo.popcnt
# CHECK: stablehlo.count_leading_zeros
@print_ir("u8[5]")
def counts(x):
    return lax.clz(lax.population_count(x))
