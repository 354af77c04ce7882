# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.identity."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: stop_gradient
# CHECK-NEXT: module
# CHECK-NEXT: func.func
# CHECK-NEXT: return %arg0
@print_ir("f32[3]")
def stop_gradient(x):
    return lax.stop_gradient(x)


# CHECK-LABEL: TEST: barrier
# CHECK: stablehlo.optimization_barrier %arg0, %arg1
@print_ir("f32[3]", "i32[2]")
def barrier(x, y):
    return lax.optimization_barrier((x, y))
