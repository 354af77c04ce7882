# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.arithmetic."""

from print_ir import print_ir

from lamina import lax


# A scalar operand is spread before the operation, a number of the program as one constant.
# CHECK-LABEL: TEST: add_scalar
# CHECK: %[[S:.+]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<5xf32>
# CHECK: stablehlo.add %arg0, %[[S]] : tensor<5xf32>
@print_ir("f32[5]", "f32[]")
def add_scalar(x, y):
    return lax.add(x, y)


# CHECK-LABEL: TEST: add_number
# CHECK-NOT: tensor<f32>
# CHECK: %[[S:.+]] = stablehlo.constant dense<1.000000e+00> : tensor<5xf32>
# CHECK-NOT: constant
# CHECK: %[[Y:.+]] = stablehlo.add %arg0, %[[S]] : tensor<5xf32>
# CHECK: stablehlo.multiply %[[Y]], %[[S]] : tensor<5xf32>
@print_ir("f32[5]")
def add_number(x):
    return lax.mul(lax.add(x, 1.0), 1.0)


# A number that is also read as a scalar, and with a loop's body between.
# CHECK-LABEL: TEST: number_in_body
# CHECK-DAG: stablehlo.constant dense<3.000000e+00> : tensor<f32>
# CHECK-DAG: stablehlo.constant dense<3.000000e+00> : tensor<5xf32>
# CHECK: stablehlo.while
@print_ir("f32[5]")
def number_in_body(x):
    y = lax.fori_loop(0, 3, lambda i, v: lax.mul(v, 3.0), lax.add(x, 3.0))
    return lax.add(y, 3.0), 3.0


# CHECK-LABEL: TEST: four_operations
# CHECK: stablehlo.add
# CHECK: stablehlo.subtract
# CHECK: stablehlo.multiply
# CHECK: stablehlo.divide
# CHECK: stablehlo.remainder
@print_ir("f32[5]", "f32[5]")
def four_operations(x, y):
    return lax.rem(lax.div(lax.mul(lax.sub(lax.add(x, y), y), y), y), y)


# CHECK-LABEL: TEST: add_any
# CHECK: stablehlo.add
@print_ir("f32[5]", "f32[5]")
def add_any(x, y):
    return lax.add_any(x, y)


# CHECK-LABEL: TEST: max_min
# CHECK: stablehlo.maximum
# CHECK: stablehlo.minimum
@print_ir("f32[5]", "f32[5]")
def max_min(x, y):
    return lax.min(lax.max(x, y), y)


# By the real part, and by the imaginary part where that is equal.
# CHECK-LABEL: TEST: max_complex
# CHECK: stablehlo.real
# CHECK: stablehlo.imag
# CHECK: stablehlo.compare EQ
# CHECK: stablehlo.select
# CHECK: stablehlo.select %{{.+}}, %arg0, %arg1
@print_ir("c64[5]", "c64[5]")
def max_complex(x, y):
    return lax.max(x, y)
