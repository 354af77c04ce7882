# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.qr and of its parts."""

from print_ir import print_ir

from lamina import lax


# R is the upper triangle of what geqrf leaves, Q the product of its reflectors.
# CHECK-LABEL: TEST: reduced
# CHECK: %[[PACKED:.+]]:2 = stablehlo.custom_call @lamina.lapack.geqrf(%arg0)
# CHECK: stablehlo.custom_call @lamina.lapack.orgqr(%[[PACKED]]#0, %[[PACKED]]#1)
# CHECK: stablehlo.select
@print_ir("f32[4,3]")
def reduced(x):
    return lax.linalg.qr(x, full_matrices=False)


# CHECK-LABEL: TEST: full
# CHECK: stablehlo.pad
# CHECK: @lamina.lapack.orgqr
# CHECK-SAME: -> tensor<4x4xf32>
@print_ir("f32[4,3]")
def full(x):
    return lax.linalg.qr(x)


# CHECK-LABEL: TEST: product
# CHECK: stablehlo.custom_call @lamina.lapack.ormqr(%arg0, %arg1, %arg2) {{.*}}left = false
@print_ir("f32[4,3]", "f32[3]", "f32[2,4]")
def product(a, taus, c):
    return lax.linalg.ormqr(a, taus, c, left=False)
