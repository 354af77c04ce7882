# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.schur and hessenberg."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: schur
# CHECK: stablehlo.custom_call @lamina.lapack.gees(%arg0)
# CHECK-SAME: vectors = true
@print_ir("f32[3,3]")
def schur(x):
    return lax.linalg.schur(x)


# CHECK-LABEL: TEST: hessenberg
# CHECK: stablehlo.custom_call @lamina.lapack.gehrd(%arg0)
@print_ir("f32[3,3]")
def hessenberg(x):
    return lax.linalg.hessenberg(x)
