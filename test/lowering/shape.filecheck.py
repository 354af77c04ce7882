# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.shape."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: broadcast_in_dim
# CHECK: stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
@print_ir("f32[3]")
def broadcast_in_dim(x):
    return lax.broadcast_in_dim(x, (2, 3), (1,))


# CHECK-LABEL: TEST: reshapes
# CHECK: stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6x1xf32>
# CHECK: stablehlo.reshape %{{.+}} : (tensor<6x1xf32>) -> tensor<6xf32>
@print_ir("f32[2,3]")
def reshapes(x):
    return lax.squeeze(lax.reshape(x, (6, 1)), (1,))


# A reshape to the same shape and a transpose that keeps the order do nothing.
# CHECK-LABEL: TEST: identities
# CHECK-NEXT: module
# CHECK-NEXT: func.func
# CHECK-NEXT: return %arg0
@print_ir("f32[2,3]")
def identities(x):
    return lax.reshape(lax.transpose(lax.copy(x), (0, 1)), (2, 3))


# CHECK-LABEL: TEST: transpose
# CHECK: stablehlo.transpose %arg0, dims = [1, 0]
@print_ir("f32[2,3]")
def transpose(x):
    return lax.transpose(x, (1, 0))


# CHECK-LABEL: TEST: rev
# CHECK: stablehlo.reverse %arg0, dims = [1]
@print_ir("f32[2,3]")
def rev(x):
    return lax.rev(x, (1,))
