# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.exponentials."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: exponentials
# CHECK: stablehlo.exponential %
# CHECK: stablehlo.exponential_minus_one
# CHECK: stablehlo.log %
# CHECK: stablehlo.log_plus_one
@print_ir("f32[5]")
def exponentials(x):
    return lax.log1p(lax.log(lax.expm1(lax.exp(x))))


# A power, for exp(x * log 2) is inexact.
# CHECK-LABEL: TEST: exp2
# CHECK: %[[TWO:.+]] = stablehlo.constant dense<2.000000e+00>
# CHECK: stablehlo.power %[[TWO]], %arg0
@print_ir("f32[5]")
def exp2(x):
    return lax.exp2(x)


# CHECK-LABEL: TEST: log2
# CHECK: stablehlo.log %
# CHECK: stablehlo.constant dense<1.442695
# CHECK: stablehlo.multiply
@print_ir("f32[5]")
def log2(x):
    return lax.log2(x)


# CHECK-LABEL: TEST: log2_of_complex
# CHECK: stablehlo.log %
# CHECK: stablehlo.real
# CHECK: stablehlo.imag
# CHECK: stablehlo.complex
@print_ir("c64[5]")
def log2_of_complex(x):
    return lax.log2(x)
