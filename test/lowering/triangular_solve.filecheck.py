# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.triangular_solve."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: adjoint
# CHECK: "stablehlo.triangular_solve"(%arg0, %arg1)
# CHECK-SAME: left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>
# CHECK-SAME: unit_diagonal = false
@print_ir("c64[3,3]", "c64[3,2]")
def adjoint(a, b):
    return lax.linalg.triangular_solve(
        a, b, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


# StableHLO has no conjugation alone: the matrix is conjugated.
# CHECK-LABEL: TEST: conjugate
# CHECK: transpose_a = #stablehlo<transpose NO_TRANSPOSE>
@print_ir("c64[3,3]", "c64[2,3]")
def conjugate(a, b):
    return lax.linalg.triangular_solve(a, b, conjugate_a=True)
