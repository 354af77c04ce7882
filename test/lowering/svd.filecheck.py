# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.linalg.svd."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: values
# CHECK: stablehlo.custom_call @lamina.lapack.gesdd(%arg0)
# CHECK-SAME: full = true, vectors = false
# CHECK-SAME: (tensor<4x3xcomplex<f32>>) -> tensor<3xf32>
@print_ir("c64[4,3]")
def values(x):
    return lax.linalg.svd(x, compute_uv=False)


# Nothing to compute: unitary matrices all the same.
# CHECK-LABEL: TEST: empty
# CHECK-NOT: custom_call
# CHECK: stablehlo.iota
@print_ir("f32[3,0]")
def empty(x):
    return lax.linalg.svd(x)
