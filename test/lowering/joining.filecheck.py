# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.joining."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: concatenate
# CHECK: stablehlo.concatenate %arg0, %arg1, dim = 0
@print_ir("f32[2,3]", "f32[1,3]")
def concatenate(x, y):
    return lax.concatenate([x, y], 0)


# CHECK-LABEL: TEST: split
# CHECK: stablehlo.slice %arg0 [0:2, 0:1]
# CHECK: stablehlo.slice %arg0 [0:2, 1:3]
@print_ir("f32[2,3]")
def split(x):
    return lax.split(x, (1, 2), 1)


# CHECK-LABEL: TEST: pad
# CHECK: stablehlo.pad %arg0, %{{.+}}, low = [1], high = [-1], interior = [2]
@print_ir("f32[3]")
def pad(x):
    return lax.pad(x, 0.0, [(1, -1, 2)])
