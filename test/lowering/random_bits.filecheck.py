# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.random_bits."""

from print_ir import print_ir

from lamina import lax
from lamina.lax import random_bits


# Twenty rounds of add, rotate, xor.
# CHECK-LABEL: TEST: threefry
# CHECK: stablehlo.constant dense<466688986> : tensor<4xui32>
# CHECK-COUNT-20: stablehlo.shift_right_logical
# CHECK-NOT: stablehlo.shift_right_logical
# CHECK: return
@print_ir("u32[]", "u32[]", "u32[4]", "u32[4]")
def threefry(k1, k2, x1, x2):
    return lax.threefry2x32(k1, k2, x1, x2)


# CHECK-LABEL: TEST: threefry_of_four
# CHECK-COUNT-40: stablehlo.shift_right_logical
# CHECK-NOT: stablehlo.shift_right_logical
# CHECK: return
@print_ir(*["u32[]"] * 4, *["u32[4]"] * 4)
def threefry_of_four(*words):
    return random_bits.threefry4x32(words[:4], words[4:])


# Ten rounds, each with a product of double width.
# CHECK-LABEL: TEST: philox
# CHECK-COUNT-10: stablehlo.multiply {{.*}} : tensor<4xui64>
# CHECK: return
@print_ir("u32[]", "u32[4]", "u32[4]")
def philox(key, x1, x2):
    return random_bits.philox2x32(key, (x1, x2))


# CHECK-LABEL: TEST: philox_of_four
# CHECK-COUNT-20: stablehlo.multiply {{.*}} : tensor<4xui64>
# CHECK: return
@print_ir(*["u32[]"] * 2, *["u32[4]"] * 4)
def philox_of_four(*words):
    return random_bits.philox4x32(words[:2], words[2:])
