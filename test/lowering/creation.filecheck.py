# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.creation."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: full
# CHECK: %[[C:.+]] = stablehlo.constant dense<2.000000e+00> : tensor<2x3xf32>
# CHECK-NEXT: return %[[C]]
@print_ir()
def full():
    return lax.full((2, 3), 2.0)


# CHECK-LABEL: TEST: iota
# CHECK: stablehlo.iota dim = 1 : tensor<2x3xi32>
@print_ir()
def iota():
    return lax.broadcasted_iota("int32", (2, 3), 1)
