# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.tridiagonal_solve."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: solve
# CHECK: stablehlo.custom_call @lamina.lapack.gtsv(%arg0, %arg1, %arg2, %arg3)
@print_ir("f32[3]", "f32[3]", "f32[3]", "f32[3,2]")
def solve(dl, d, du, b):
    return lax.linalg.tridiagonal_solve(dl, d, du, b)
