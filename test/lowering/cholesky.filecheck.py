# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.cholesky."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: cholesky
# CHECK: stablehlo.cholesky %arg0, lower = true : tensor<2x3x3xf32>
@print_ir("f32[2,3,3]")
def cholesky(x):
    return lax.linalg.cholesky(x, symmetrize_input=False)


# CHECK-LABEL: TEST: update
# CHECK: stablehlo.custom_call @lamina.lapack.cholesky_update(%arg0, %arg1)
@print_ir("f64[3,3]", "f64[3]")
def update(r, w):
    return lax.linalg.cholesky_update(r, w)
