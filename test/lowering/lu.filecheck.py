# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.lu."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: lu
# CHECK: stablehlo.custom_call @lamina.lapack.getrf(%arg0)
# CHECK-SAME: (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xi32>, tensor<2x4xi32>)
@print_ir("f32[2,4,3]")
def lu(x):
    return lax.linalg.lu(x)


# CHECK-LABEL: TEST: permutation
# CHECK: stablehlo.custom_call @lamina.lapack.permutation(%arg0)
@print_ir("i32[3]")
def permutation(pivots):
    return lax.linalg.lu_pivots_to_permutation(pivots, 4)
