# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.rng."""

from print_ir import print_ir

from lamina import lax


# A key of words is two numbers; narrow numbers are the lower bits of words.
# CHECK-LABEL: TEST: bits
# CHECK: stablehlo.bitcast_convert {{.*}} -> tensor<2xui64>
# CHECK: stablehlo.rng_bit_generator {{.*}}algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
# CHECK: stablehlo.convert {{.*}} -> tensor<5xui8>
@print_ir("u32[4]")
def bits(key):
    return lax.rng_bit_generator(key, (5,), "uint8")


# CHECK-LABEL: TEST: uniform
# CHECK: stablehlo.rng {{.*}} distribution = UNIFORM
@print_ir("f32[]", "f32[]")
def uniform(a, b):
    return lax.rng_uniform(a, b, (3,))
