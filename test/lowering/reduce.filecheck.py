# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.reduce."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: sum_and_prod
# CHECK: stablehlo.reduce(%arg0 init: %{{.+}}) applies stablehlo.add across dimensions = [1]
# CHECK: stablehlo.reduce(%{{.+}} init: %{{.+}}) applies stablehlo.multiply across dimensions = [0]
@print_ir("f32[2,3]")
def sum_and_prod(x):
    return lax.reduce_prod(lax.reduce_sum(x, (1,)), (0,))


# CHECK-LABEL: TEST: extrema
# CHECK: %[[LEAST:.+]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
# CHECK: stablehlo.reduce(%arg0 init: %[[LEAST]]) applies stablehlo.maximum
# CHECK: %[[GREATEST:.+]] = stablehlo.constant dense<127> : tensor<i8>
# CHECK: stablehlo.reduce(%arg1 init: %[[GREATEST]]) applies stablehlo.minimum
@print_ir("f32[2,3]", "i8[3]")
def extrema(x, y):
    return lax.reduce_max(x, (0, 1)), lax.reduce_min(y, (0,))


# CHECK-LABEL: TEST: logic
# CHECK: stablehlo.constant dense<-1> : tensor<i32>
# CHECK: applies stablehlo.and
# CHECK: applies stablehlo.or
# CHECK: applies stablehlo.xor
@print_ir("i32[2,3,4]")
def logic(x):
    return lax.reduce_xor(lax.reduce_or(lax.reduce_and(x, (0,)), (0,)), (0,))


# Pairs of a value and its index are reduced together.
# CHECK-LABEL: TEST: argmax
# CHECK: %[[I:.+]] = stablehlo.iota dim = 1 : tensor<2x3xi32>
# CHECK: stablehlo.reduce(%arg0 init: %{{.+}}), (%[[I]] init: %{{.+}}) across dimensions = [1]
@print_ir("f32[2,3]")
def argmax(x):
    return lax.argmax(x, 1, "int32")


# CHECK-LABEL: TEST: argmin
# CHECK: stablehlo.compare LT
@print_ir("i32[3]")
def argmin(x):
    return lax.argmin(x, 0, "int32")
