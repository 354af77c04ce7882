# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.symmetric_product."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: product
# CHECK: stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [1]
# CHECK: stablehlo.add
@print_ir("f32[3,2]", "f32[3,3]")
def product(a, c):
    return lax.linalg.symmetric_product(a, c, beta=2.0)
