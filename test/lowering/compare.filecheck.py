# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.compare."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: floats
# CHECK: stablehlo.compare EQ, %arg0, %arg1, FLOAT
# CHECK: stablehlo.compare NE, %arg0, %arg1, FLOAT
# CHECK: stablehlo.compare LT, %arg0, %arg1, FLOAT
@print_ir("f32[5]", "f32[5]")
def floats(x, y):
    return lax.eq(x, y), lax.ne(x, y), lax.lt(x, y)


# CHECK-LABEL: TEST: signed
# CHECK: stablehlo.compare LE, %arg0, %arg1, SIGNED
# CHECK: stablehlo.compare GT, %arg0, %arg1, SIGNED
@print_ir("i32[5]", "i32[5]")
def signed(x, y):
    return lax.le(x, y), lax.gt(x, y)


# CHECK-LABEL: TEST: unsigned
# CHECK: stablehlo.compare GE, %arg0, %arg1, UNSIGNED
@print_ir("u8[5]", "u8[5]")
def unsigned(x, y):
    return lax.ge(x, y)
