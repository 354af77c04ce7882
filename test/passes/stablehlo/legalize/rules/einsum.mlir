// RUN: %lamina-opt %s --stablehlo-legalize-ops=only=einsum | FileCheck %s

// CHECK-LABEL: func.func @batched
// CHECK: %[[P:.*]] = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<5x2x3xui8>, tensor<5x3x4xui8>) -> tensor<5x2x4xui32>
// CHECK: stablehlo.transpose %[[P]], dims = [0, 2, 1]
func.func @batched(%x: tensor<5x2x3xui8>, %y: tensor<5x3x4xui8>) -> tensor<5x4x2xui32> {
  %0 = stablehlo.einsum %x, %y, config = "...ab,...bc->...ca" : (tensor<5x2x3xui8>, tensor<5x3x4xui8>) -> tensor<5x4x2xui32>
  return %0 : tensor<5x4x2xui32>
}

// What only one operand has is summed before; what it has twice is a diagonal.
// CHECK-LABEL: func.func @one_operand
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%arg0 {{.*}} across dimensions = [1]
// CHECK: stablehlo.compare EQ
// CHECK: %[[MASKED:.*]] = stablehlo.select {{.*}}, %arg1
// CHECK: %[[DIAGONAL:.*]] = stablehlo.reduce(%[[MASKED]] {{.*}} across dimensions = [1]
// CHECK: stablehlo.dot_general %[[SUM]], %[[DIAGONAL]], batching_dims = [0] x [0], contracting_dims = [] x []
func.func @one_operand(%x: tensor<3x2xf32>, %y: tensor<3x3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.einsum %x, %y, config = "bz,bb->b" : (tensor<3x2xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
