# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.cumulative."""

from print_ir import print_ir

from lamina import lax


# Two elements: the first, and both combined.
# CHECK-LABEL: TEST: cumsum
# CHECK: %[[A:.+]] = stablehlo.slice %arg0 [0:1:2]
# CHECK: %[[B:.+]] = stablehlo.slice %arg0 [1:2:2]
# CHECK: stablehlo.add %[[A]], %[[B]]
# CHECK: stablehlo.concatenate
@print_ir("f32[2]")
def cumsum(x):
    return lax.cumsum(x)


# CHECK-LABEL: TEST: others
# CHECK: stablehlo.reverse
# CHECK: stablehlo.multiply
# CHECK: stablehlo.reverse
# CHECK: stablehlo.maximum
# CHECK: stablehlo.minimum
@print_ir("f32[2]")
def others(x):
    return lax.cummin(lax.cummax(lax.cumprod(x, reverse=True)))
