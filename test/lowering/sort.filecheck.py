# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.sort."""

from print_ir import print_ir

from lamina import lax


# NaN comes last: x < y, or only y is NaN.
# CHECK-LABEL: TEST: floats
# CHECK: "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}>
# CHECK: ^bb0(%[[X:.+]]: tensor<f32>, %[[Y:.+]]: tensor<f32>)
# CHECK: stablehlo.compare LT, %[[X]], %[[Y]], FLOAT
# CHECK: stablehlo.compare EQ, %[[X]], %[[X]]
# CHECK: stablehlo.compare NE, %[[Y]], %[[Y]]
@print_ir("f32[2,3]")
def floats(x):
    return lax.sort(x)


# CHECK-LABEL: TEST: two_keys
# CHECK: "stablehlo.sort"(%arg0, %arg1, %arg2)
# CHECK: %[[LESS:.+]] = stablehlo.compare LT
# CHECK: %[[MORE:.+]] = stablehlo.compare LT
# CHECK: %[[TIED:.+]] = stablehlo.not %[[MORE]]
@print_ir("i32[3]", "i32[3]", "f32[3]")
def two_keys(x, y, z):
    return lax.sort((x, y, z), num_keys=2)
