# RUN: %PYTHON %s | FileCheck %s
"""How arrays are lowered that are spread, or that get dimensions of 1: once, late, from before these."""

from print_ir import print_ir

import lamina.numpy as jnp
from lamina import lax


# CHECK-LABEL: TEST: kept_dimensions
# CHECK: %[[SUM:.+]] = stablehlo.reduce
# CHECK: %[[MEAN:.+]] = stablehlo.divide %[[SUM]], %{{.+}} : tensor<2xf32>
# CHECK: %[[ROOT:.+]] = stablehlo.sqrt %[[MEAN]] : tensor<2xf32>
# CHECK: %[[SPREAD:.+]] = stablehlo.broadcast_in_dim %[[ROOT]], dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
# CHECK: stablehlo.subtract %arg0, %[[SPREAD]]
# CHECK-NOT: tensor<2x1xf32>
@print_ir("f32[2,3]")
def kept_dimensions(x):
    return x - jnp.sqrt(jnp.mean(x, axis=1, keepdims=True))


# CHECK-LABEL: TEST: once
# CHECK: %[[SPREAD:.+]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
# CHECK-NEXT: %[[PRODUCT:.+]] = stablehlo.multiply %arg0, %[[SPREAD]]
# CHECK-NEXT: stablehlo.add %[[PRODUCT]], %[[SPREAD]]
@print_ir("f32[2,3]", "f32[3]")
def once(x, y):
    return x * y + y


# The number has the shape of the result here, not of what is spread.
# CHECK-LABEL: TEST: beside_a_number
# CHECK: %[[SPREAD:.+]] = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
# CHECK: stablehlo.add %{{.+}}, %[[SPREAD]] : tensor<2x3xf32>
@print_ir("f32[2]")
def beside_a_number(x):
    return jnp.full((2, 3), 5.0) + x[:, None]


# Of dimensions that were added in different places nothing is left out.
# CHECK-LABEL: TEST: of_different_places
# CHECK-DAG: %[[ROWS:.+]] = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<2xf32>) -> tensor<2x2xf32>
# CHECK-DAG: %[[COLUMNS:.+]] = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
# CHECK: stablehlo.add %[[ROWS]], %[[COLUMNS]]
@print_ir("f32[2]")
def of_different_places(x):
    return x[:, None] + x[None, :]


# CHECK-LABEL: TEST: of_ones
# CHECK-NEXT: module
# CHECK-NEXT: func.func
# CHECK-NEXT: return %arg0
@print_ir("f32[2]")
def of_ones(x):
    return jnp.sum(x[:, None], axis=1)


# A region can read what was spread outside of it; outside, nothing that was spread in it.
# CHECK-LABEL: TEST: regions
# CHECK: "stablehlo.case"
# CHECK: stablehlo.broadcast_in_dim %arg1, dims = [1]
# CHECK: stablehlo.broadcast_in_dim %arg1, dims = [1]
# CHECK: return
@print_ir("f32[2,3]", "f32[3]", "i32[]")
def regions(x, y, which):
    chosen = lax.cond(which > 0, lambda: x + y, lambda: x)
    return chosen * y
