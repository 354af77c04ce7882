# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.eigh and tridiagonal."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: eigh
# CHECK: stablehlo.custom_call @lamina.lapack.syevd(%arg0)
# CHECK-SAME: lower = false
# CHECK-SAME: -> (tensor<2x3x3xcomplex<f32>>, tensor<2x3xf32>)
@print_ir("c64[2,3,3]")
def eigh(x):
    return lax.linalg.eigh(x, lower=False, symmetrize_input=False)


# CHECK-LABEL: TEST: tridiagonal
# CHECK: stablehlo.custom_call @lamina.lapack.sytrd(%arg0)
@print_ir("f32[3,3]")
def tridiagonal(x):
    return lax.linalg.tridiagonal(x)
