# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.math."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: sigmoid
# CHECK: stablehlo.logistic
@print_ir("f32[5]")
def sigmoid(x):
    return lax.logistic(x)


# CHECK-LABEL: TEST: trigonometric
# CHECK: stablehlo.sine
# CHECK: stablehlo.cosine
# CHECK: stablehlo.tan %
# CHECK: stablehlo.tanh
# CHECK: stablehlo.atan2
@print_ir("f32[5]")
def trigonometric(x):
    return lax.atan2(lax.tanh(lax.tan(lax.cos(lax.sin(x)))), x)


# CHECK-LABEL: TEST: roots
# CHECK: stablehlo.sqrt
# CHECK: stablehlo.rsqrt
# CHECK: stablehlo.cbrt
@print_ir("f32[5]")
def roots(x):
    return lax.cbrt(lax.rsqrt(lax.sqrt(x)))


# CHECK-LABEL: TEST: inverse_functions
# CHECK: chlo.asin
# CHECK: chlo.acos
# CHECK: chlo.atan
# CHECK: chlo.asinh
# CHECK: chlo.acosh
# CHECK: chlo.atanh
@print_ir("f32[5]")
def inverse_functions(x):
    return lax.atanh(lax.acosh(lax.asinh(lax.atan(lax.acos(lax.asin(x))))))


# CHECK-LABEL: TEST: hyperbolic_functions
# CHECK: %[[ROOT:.*]] = stablehlo.exponential
# CHECK: stablehlo.divide {{.*}}, %[[ROOT]]
# CHECK: stablehlo.exponential_minus_one
# CHECK: chlo.cosh
@print_ir("f32[5]", "c64[5]")
def hyperbolic_functions(x, z):
    return lax.sinh(x), lax.cosh(z)
