# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.special.integer_power."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: wide
# CHECK: call @integer_power(
# CHECK: stablehlo.composite "lamina.two_forms"
# CHECK: stablehlo.case
@print_ir("i32[5]", "i32[5]")
def wide(x, y):
    return lax.integer_power(x, y)


# Of narrow integers all squarings take no longer than a look at the exponents.
# CHECK-LABEL: TEST: narrow
# CHECK-NOT: two_forms
# CHECK-COUNT-13: stablehlo.multiply
# CHECK-NOT: stablehlo.multiply
# CHECK: return
@print_ir("i8[5]", "i8[]")
def narrow(x, y):
    return lax.integer_power(x, y)
