# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.random_bits."""

from print_ir import print_ir

from lamina import lax


# Twenty rounds of add, rotate, xor.
# CHECK-LABEL: TEST: threefry
# CHECK: stablehlo.constant dense<466688986> : tensor<4xui32>
# CHECK-COUNT-20: stablehlo.shift_right_logical
# CHECK-NOT: stablehlo.shift_right_logical
# CHECK: return
@print_ir("u32[]", "u32[]", "u32[4]", "u32[4]")
def threefry(k1, k2, x1, x2):
    return lax.threefry2x32(k1, k2, x1, x2)
