# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.dot_general."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: matmul
# CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
# CHECK-SAME: -> tensor<2x4xf32>
@print_ir("f32[2,3]", "f32[3,4]")
def matmul(x, y):
    return lax.dot(x, y)


# CHECK-LABEL: TEST: batch_matmul
# CHECK: stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0]
# CHECK-SAME: contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST]
@print_ir("f32[5,2,3]", "f32[5,3,4]")
def batch_matmul(x, y):
    return lax.batch_matmul(x, y, lax.Precision.HIGHEST)


# CHECK-LABEL: TEST: accumulate
# CHECK: (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
@print_ir("i8[2,3]", "i8[3,4]")
def accumulate(x, y):
    return lax.dot(x, y, preferred_element_type="int32")
