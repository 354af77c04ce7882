# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.powers."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: integer_pow
# CHECK: %[[SQUARE:.+]] = stablehlo.multiply %arg0, %arg0
# CHECK: %[[FOURTH:.+]] = stablehlo.multiply %[[SQUARE]], %[[SQUARE]]
# CHECK: stablehlo.multiply %arg0, %[[FOURTH]]
@print_ir("f32[5]")
def integer_pow(x):
    return lax.integer_pow(x, 5)


# CHECK-LABEL: TEST: reciprocal
# CHECK: stablehlo.divide %{{.+}}, %arg0
@print_ir("f32[5]")
def reciprocal(x):
    return lax.reciprocal(x)


# CHECK-LABEL: TEST: pow_integer_exponent
# CHECK: %[[Y:.+]] = stablehlo.convert %arg1
# CHECK: stablehlo.power %arg0, %[[Y]]
@print_ir("f32[5]", "i32[5]")
def pow_integer_exponent(x, y):
    return lax.pow(x, y)


# CHECK-LABEL: TEST: square
# CHECK: stablehlo.multiply %arg0, %arg0
@print_ir("f32[5]")
def square(x):
    return lax.square(x)


# CHECK-LABEL: TEST: square_of_complex
# CHECK: %[[LESS:.+]] = stablehlo.subtract %[[A:.+]], %[[B:.+]] : tensor<5xf32>
# CHECK: %[[MORE:.+]] = stablehlo.add %[[A]], %[[B]]
# CHECK: stablehlo.multiply %[[LESS]], %[[MORE]]
# CHECK: stablehlo.complex
@print_ir("c64[5]")
def square_of_complex(x):
    return lax.square(x)
