# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.top_k."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: last_axis
# CHECK: chlo.top_k(%arg0, k = 2) : tensor<3x5xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
@print_ir("f32[3,5]")
def last_axis(x):
    return lax.top_k(x, 2)


# Another axis changes places with the last, and back.
# CHECK-LABEL: TEST: first_axis
# CHECK: %[[X:.+]] = stablehlo.transpose %arg0, dims = [2, 1, 0]
# CHECK: %[[V:.+]], %[[I:.+]] = chlo.top_k(%[[X]], k = 2) : tensor<4x3x5xui8> -> (tensor<4x3x2xui8>, tensor<4x3x2xi32>)
# CHECK-DAG: stablehlo.transpose %[[V]], dims = [2, 1, 0]
# CHECK-DAG: stablehlo.transpose %[[I]], dims = [2, 1, 0]
@print_ir("u8[5,3,4]")
def first_axis(x):
    return lax.top_k(x, 2, axis=0)
