# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.special.digamma."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: digamma
# CHECK: call @digamma(%{{.*}}) : (tensor<5xf32>) -> tensor<5xf32>
# CHECK: func.func private @digamma
# CHECK: stablehlo.log {{.*}}f64
# CHECK: stablehlo.divide
@print_ir("f32[5]")
def digamma(x):
    return lax.digamma(x)
