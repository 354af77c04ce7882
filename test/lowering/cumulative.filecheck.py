# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.cumulative."""

from print_ir import print_ir

from lamina import lax


# A short axis: each element with those before it, in one reduction.
# CHECK-LABEL: TEST: cumsum
# CHECK: %[[PAIRS:.+]] = stablehlo.broadcast_in_dim %arg0, dims = [1]
# CHECK-SAME: -> tensor<5x5xf32>
# CHECK: stablehlo.compare LE
# CHECK: %[[MASKED:.+]] = stablehlo.select %{{.+}}, %[[PAIRS]]
# CHECK: stablehlo.reduce(%[[MASKED]] init: %{{.+}}) applies stablehlo.add across dimensions = [1]
@print_ir("f32[5]")
def cumsum(x):
    return lax.cumsum(x)


# A long one: a window over all that comes before.
# CHECK-LABEL: TEST: window
# CHECK: "stablehlo.reduce_window"(%arg0, %{{.+}}) <{
# CHECK-SAME: padding = dense<{{\[\[}}0, 0], [99, 0{{\]\]}}>
# CHECK-SAME: window_dimensions = array<i64: 1, 100>
# CHECK: stablehlo.maximum
@print_ir("f32[3,100]")
def window(x):
    return lax.cummax(x, 1)


# Complex numbers: blocks of 32, their totals, and both combined.
# CHECK-LABEL: TEST: blocks
# CHECK: stablehlo.pad %arg0, %{{.+}}, low = [0], high = [28]
# CHECK: stablehlo.reshape %{{.+}} : (tensor<128xcomplex<f32>>) -> tensor<4x32xcomplex<f32>>
# CHECK: applies stablehlo.multiply across dimensions = [2]
# CHECK: applies stablehlo.multiply across dimensions = [1]
# CHECK: stablehlo.multiply
# CHECK: stablehlo.slice %{{.+}} [0:100]
@print_ir("c64[100]")
def blocks(x):
    return lax.cumprod(x)


# CHECK-LABEL: TEST: others
# CHECK: stablehlo.reverse
# CHECK: applies stablehlo.multiply
# CHECK: stablehlo.reverse
# CHECK: applies stablehlo.minimum
@print_ir("f32[2]")
def others(x):
    return lax.cummin(lax.cumprod(x, reverse=True))
