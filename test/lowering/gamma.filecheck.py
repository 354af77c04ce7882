# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.special.gamma."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: incomplete_gamma
# CHECK: call @lower(
# CHECK: call @upper(
# CHECK: func.func private @lower(%{{.*}}: tensor<5xf32>, %{{.*}}: tensor<5xf32>)
# CHECK: stablehlo.convert %{{.*}} : (tensor<5xf32>) -> tensor<5xf64>
# CHECK: stablehlo.while
@print_ir("f32[5]", "f32[5]")
def incomplete_gamma(a, x):
    return lax.add(lax.igamma(a, x), lax.igammac(a, x))


# CHECK-LABEL: TEST: derivatives
# CHECK: call @lower_by_a(
# CHECK: call @sample_by_a(
@print_ir("f32[5]", "f32[5]")
def derivatives(a, x):
    return lax.add(lax.igamma_grad_a(a, x), lax.random_gamma_grad(a, x))
