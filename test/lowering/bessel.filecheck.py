# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.special.bessel."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: modified_bessel
# CHECK: call @i0e(
# CHECK: call @i1e(
@print_ir("f32[5]")
def modified_bessel(x):
    return lax.bessel_i1e(lax.bessel_i0e(x))
