# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.slicing."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: slices
# CHECK: stablehlo.slice %arg0 [1:3, 0:4:2]
@print_ir("f32[4,5]")
def slices(x):
    return lax.slice(x, (1, 0), (3, 4), (1, 2))
