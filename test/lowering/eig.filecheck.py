# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.eig."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: eig
# CHECK: stablehlo.custom_call @lamina.lapack.geev(%arg0)
# CHECK-SAME: left = false, right = true
# CHECK-SAME: (tensor<3x3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)
@print_ir("f32[3,3]")
def eig(x):
    return lax.linalg.eig(x, compute_left_eigenvectors=False)
