# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.special.beta."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: incomplete_beta
# CHECK: call @betainc(
# CHECK: func.func private @betainc(
# CHECK: stablehlo.while
@print_ir("f32[5]", "f32[5]", "f32[5]")
def incomplete_beta(a, b, x):
    return lax.betainc(a, b, x)
