# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.polynomial."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: polynomial
# CHECK: stablehlo.multiply %{{.*}}, %arg0
# CHECK: stablehlo.add
# CHECK: stablehlo.multiply %{{.*}}, %arg0
# CHECK: stablehlo.add
# CHECK-NOT: stablehlo.multiply
@print_ir("f32[5]")
def polynomial(x):
    return lax.polynomial(x, [1.0, 2.0, 3.0])


# Many coefficients: a loop over them.
# CHECK-LABEL: TEST: long_polynomial
# CHECK: stablehlo.while
@print_ir("f32[5]")
def long_polynomial(x):
    return lax.polynomial(x, [1.0] * 100)


# CHECK-LABEL: TEST: one_minus_square
# CHECK: stablehlo.add
# CHECK: stablehlo.subtract
# CHECK: stablehlo.multiply
@print_ir("f32[5]")
def one_minus_square(x):
    return lax.one_minus_square(x)
