# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.select."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: two_cases
# CHECK: stablehlo.select %arg0, %arg2, %arg1 : tensor<i1>, tensor<5xf32>
@print_ir("bool[]", "f32[5]", "f32[5]")
def two_cases(which, x, y):
    return lax.select_n(which, x, y)


# A binary search for the case.
# CHECK-LABEL: TEST: three_cases
# CHECK: %[[FIRST:.+]] = stablehlo.compare LT, %arg0, %{{.+}}, SIGNED
# CHECK: %[[SECOND:.+]] = stablehlo.compare LT, %arg0, %{{.+}}, SIGNED
# CHECK: %[[REST:.+]] = stablehlo.select %[[SECOND]], %arg2, %arg3
# CHECK: stablehlo.select %[[FIRST]], %arg1, %[[REST]]
@print_ir("i32[5]", "f32[5]", "f32[5]", "f32[5]")
def three_cases(which, x, y, z):
    return lax.select_n(which, x, y, z)


# CHECK-LABEL: TEST: clamp
# CHECK: stablehlo.clamp
@print_ir("f32[5]")
def clamp(x):
    return lax.clamp(-1.0, x, 1.0)
