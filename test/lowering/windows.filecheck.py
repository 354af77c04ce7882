# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.windows."""

from print_ir import print_ir

import lamina
from lamina import lax

WINDOWS = dict(window_dimensions=(2, 2), window_strides=(2, 2), padding="SAME")


# CHECK-LABEL: TEST: sums
# CHECK: "stablehlo.reduce_window"(%arg0, %{{.+}}) <{
# CHECK-SAME: window_dimensions = array<i64: 2, 2>
# CHECK: stablehlo.add
@print_ir("f32[5,6]")
def sums(x):
    return lax.reduce_window(x, 0.0, lax.add, **WINDOWS)


# CHECK-LABEL: TEST: extrema
# CHECK: stablehlo.maximum
# CHECK: stablehlo.minimum
@print_ir("f32[5,6]")
def extrema(x):
    low, high = float("-inf"), float("inf")
    x = lax.reduce_window(x, low, lax.max, **WINDOWS)
    return lax.reduce_window(x, high, lax.min, **WINDOWS)


# The derivative of a maximum takes the tangent of the element that was chosen.
# CHECK-LABEL: TEST: derivative
# CHECK: "stablehlo.reduce_window"
# CHECK: stablehlo.compare GT
# CHECK: "stablehlo.gather"
@print_ir("f32[5,6]", "f32[5,6]")
def derivative(x, g):
    def pool(x):
        return lax.reduce_window(x, float("-inf"), lax.max, **WINDOWS)

    return lamina.jvp(pool, (x,), (g,))[1]
